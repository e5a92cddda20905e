// mrc ctld: the controller of a node as a daemon.
#include <fmt/core.h>

#include <CLI/CLI.hpp>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstring>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <utility>

#include "command.h"
#include "commands/ctld/daemon.h"
#include "commands/ctld/findings.h"
#include "commands/ctld/healer.h"
#include "commands/drain/fabric_nodes.h"
#include "controller/drain.h"
#include "controller/session.h"
#include "controller/setup_file.h"
#include "fabric/input_error.h"
#include "fabric/routing.h"
#include "instance_lock.h"
#include "lab/directory.h"
#include "os/interrupt.h"
#include "text.h"
#include "topology_flags.h"

namespace mrc::tool {
namespace {

class CtldCommand final : public Command {
 public:
  CLI::App* declare(CLI::App& program) override;
  ExitCode run() override;

 private:
  ExitCode check() const;
  ExitCode serve() const;
  void declare_healing(CLI::App& app);
  ExitCode heal() const;
  drain::FabricNodes find_nodes() const;

  std::string device_;
  std::string file_;
  bool check_ = false;
  bool reload_ = false;

  // Of a whole fabric.
  std::string findings_;
  std::string lab_;
  std::string lab_base_ = lab::Directory::default_base();
  TopologyFlags topology_;
  CLI::Option* host_option_ = nullptr;
  unsigned host_ = 0;
  ctld::Healer::Options healing_;
};

CLI::App* CtldCommand::declare(CLI::App& program) {
  CLI::App* app =
      program.add_subcommand("ctld", "Control a device from a file, and log what happens to paths");
  app->add_option("file", file_, "TOML, as for `mrc ctl apply`");
  app->add_option("-d,--device", device_, "Which device (default: the first)");
  app->add_flag("--check", check_, "Only say whether the file is sound");
  app->add_flag("--reload", reload_, "Tell the running one to read its file again (SIGHUP)");
  declare_healing(*app);
  app->footer(
      "Stays in the foreground until SIGTERM or Ctrl-C; what is set stays. SIGHUP reads the file\n"
      "again: if it is broken, a line says where, nothing changes, and --reload ends with 1. One "
      "for each device. See\n"
      "docs/controller.md.\n"
      "With --findings it takes parts of a fabric out of use that `mrc map` finds at fault, and "
      "gives\n"
      "them back, instead of controlling a device.\n"
      "Examples:\n"
      "  mrc ctld /etc/mrc/controller.toml\n"
      "  mrc map --lab lab --watch --json | mrc ctld --findings - --lab lab --dry-run");
  return app;
}

void CtldCommand::declare_healing(CLI::App& app) {
  constexpr unsigned kMostLooks = 100'000;
  controller::HealingPolicy& policy = healing_.policy;
  app.add_option("--findings", findings_,
                 "Lines of `mrc map --watch --json` to act upon; - is standard input");
  app.add_flag("--dry-run", healing_.dry_run, "Only log what would be done");
  app.add_option("--limit", policy.limit, "Parts that may be out of use at a time by findings")
      ->check(CLI::Range(1U, 256U))
      ->capture_default_str();
  app.add_option("--least-loss", policy.least_loss, "A part that loses less stays in use")
      ->check(CLI::Range(0.0, 1.0))
      ->capture_default_str();
  app.add_option("--deny-after", policy.deny_after, "Looks in a row that find a part at fault")
      ->check(CLI::Range(1U, kMostLooks))
      ->capture_default_str();
  app.add_option("--allow-after", policy.allow_after,
                 "Looks in a row that find it sound; twice as many after each return in vain")
      ->check(CLI::Range(1U, kMostLooks))
      ->capture_default_str();
  app.add_option("--lab", lab_, "All hosts of this lab");
  app.add_option("--dir", lab_base_, "Where labs keep their things");
  host_option_ = app.add_option("--host", host_, "Without a lab: which host of the fabric this is");
  topology_.declare(app);
}

drain::FabricNodes CtldCommand::find_nodes() const {
  if (!lab_.empty()) return drain::nodes_of_lab(lab::Directory(lab_base_, lab_));
  if (host_option_->count() == 0)
    throw fabric::InputError(
        "give a lab (--lab), or the fabric (--topology ...) and this host (--host)");
  return drain::own_node(topology_.spec(), host_, device_);
}

// Until the findings end or a signal comes; what is drained stays drained.
ExitCode CtldCommand::heal() const {
  const os::Interrupt interrupt;
  drain::FabricNodes nodes = find_nodes();
  const InstanceLock lock(nodes.folder + "/healing.lock");
  if (!lock.held()) {
    throw fabric::InputError(
        fmt::format("process {} acts upon findings here already", lock.holder()));
  }
  const fabric::Topology topology(nodes.spec);
  const fabric::Routing routing(topology);
  controller::FabricDrains drains(routing, std::move(nodes.nodes));
  ctld::Healer healer(nodes, routing, drains, healing_);
  ctld::FindingsSource source(findings_);
  std::uint64_t count = 0;
  while (const std::optional<std::string> line = source.next()) {
    ++count;
    try {
      healer.take(ctld::read_findings(*line, topology));
    } catch (const fabric::InputError& error) {
      throw fabric::InputError(fmt::format("{}:{}: {}", findings_, count, error.what()));
    }
  }
  fmt::print("{} ends after {}; what is drained stays\n", wall_time(),
             counted(count, "look", "looks"));
  // A pipe that ends leaves nobody who looks.
  return findings_ == "-" && !os::Interrupt::raised() ? ExitCode::kFailed : ExitCode::kOk;
}

ExitCode CtldCommand::check() const {
  const controller::Setup setup = controller::read_setup(file_);
  fmt::print("{}: {}, {}, {}\n", file_, counted(setup.formats.size(), "EV format", "EV formats"),
             counted(setup.ev_profiles.size(), "EV profile", "EV profiles"),
             counted(setup.cc_profiles.size(), "CC profile", "CC profiles"));
  return ExitCode::kOk;
}

// Throws CtlError with what the controller says where it could not apply its file.
void await_reload(const controller::Session& session, std::uint64_t before) {
  constexpr auto kPatience = std::chrono::seconds(10);
  constexpr auto kPause = std::chrono::milliseconds(20);
  const auto end = std::chrono::steady_clock::now() + kPatience;
  while (std::chrono::steady_clock::now() < end) {
    const ctld::ReloadResult result = ctld::last_reload(session.directory());
    if (result.number == before) {
      std::this_thread::sleep_for(kPause);
      continue;
    }
    if (!result.problem.empty()) throw controller::CtlError(result.problem);
    return;
  }
  throw controller::CtlError("the controller of " + session.device() +
                             " was told to read its file and has not said how that went");
}

ExitCode CtldCommand::serve() const {
  const controller::Session session(device_);
  const InstanceLock lock(session.directory() + "/controller.lock");
  if (reload_) {
    if (lock.held())
      throw controller::CtlError("no controller of " + session.device() + " is running");
    if (lock.holder() == 0)
      throw controller::CtlError("the controller of " + session.device() +
                                 " has not said which process it is; try again");
    const std::uint64_t before = ctld::last_reload(session.directory()).number;
    if (::kill(lock.holder(), SIGHUP) != 0)
      throw controller::CtlError(
          fmt::format("process {} cannot be told: {}", lock.holder(), std::strerror(errno)));
    await_reload(session, before);
    return ExitCode::kOk;
  }
  if (!lock.held()) {
    throw controller::CtlError(
        fmt::format("process {} controls {} already; `mrc ctld --reload` makes it "
                    "read its file again",
                    lock.holder(), session.device()));
  }
  ctld::Daemon(session, file_).run();
  return ExitCode::kOk;
}

ExitCode CtldCommand::run() {
  if (!findings_.empty()) {
    if (!file_.empty() || check_ || reload_)
      throw fabric::InputError("--findings is for a fabric; a device has a process of its own");
    try {
      return heal();
    } catch (const controller::CtlError& error) {
      fmt::print(stderr, "mrc ctld: {}\n", error.what());
      return ExitCode::kFailed;
    } catch (const fabric::InputError&) {
      throw;
    } catch (const std::runtime_error& error) {  // no such lab
      fmt::print(stderr, "mrc ctld: {}\n", error.what());
      return ExitCode::kUsage;
    }
  }
  if (file_.empty() && !reload_) throw fabric::InputError("give a file");
  if (check_) return check();
  // Before the device starts its thread, which would be sent signals otherwise.
  sigset_t signals;
  ::sigemptyset(&signals);
  for (const int number : {SIGHUP, SIGINT, SIGTERM})
    ::sigaddset(&signals, number);
  ::sigprocmask(SIG_BLOCK, &signals, nullptr);
  try {
    return serve();
  } catch (const controller::CtlError& error) {
    fmt::print(stderr, "mrc ctld: {}\n", error.what());
    return ExitCode::kFailed;
  }
}

}  // namespace

std::unique_ptr<Command> make_ctld_command() { return std::make_unique<CtldCommand>(); }

}  // namespace mrc::tool
