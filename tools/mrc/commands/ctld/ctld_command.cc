// mrc ctld: the controller of a node as a daemon.
#include <fmt/core.h>

#include <CLI/CLI.hpp>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <memory>
#include <string>

#include "command.h"
#include "commands/ctld/daemon.h"
#include "controller/session.h"
#include "controller/setup_file.h"
#include "fabric/input_error.h"
#include "instance_lock.h"
#include "text.h"

namespace mrc::tool {
namespace {

class CtldCommand final : public Command {
 public:
  CLI::App* declare(CLI::App& program) override;
  ExitCode run() override;

 private:
  ExitCode check() const;
  ExitCode serve() const;

  std::string device_;
  std::string file_;
  bool check_ = false;
  bool reload_ = false;
};

CLI::App* CtldCommand::declare(CLI::App& program) {
  CLI::App* app =
      program.add_subcommand("ctld", "Control a device from a file, and log what happens to paths");
  app->add_option("file", file_, "TOML, as for `mrc ctl apply`");
  app->add_option("-d,--device", device_, "Which device (default: the first)");
  app->add_flag("--check", check_, "Only say whether the file is sound");
  app->add_flag("--reload", reload_, "Tell the running one to read its file again (SIGHUP)");
  app->footer(
      "Stays in the foreground until SIGTERM or Ctrl-C; what is set stays. SIGHUP reads the file\n"
      "again: if it is broken, a line says where and nothing changes. One for each device. See\n"
      "docs/controller.md.\n"
      "Example:\n"
      "  mrc ctld /etc/mrc/controller.toml");
  return app;
}

ExitCode CtldCommand::check() const {
  const controller::Setup setup = controller::read_setup(file_);
  fmt::print("{}: {}, {}, {}\n", file_, counted(setup.formats.size(), "EV format", "EV formats"),
             counted(setup.ev_profiles.size(), "EV profile", "EV profiles"),
             counted(setup.cc_profiles.size(), "CC profile", "CC profiles"));
  return ExitCode::kOk;
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
    if (::kill(lock.holder(), SIGHUP) != 0)
      throw controller::CtlError(
          fmt::format("process {} cannot be told: {}", lock.holder(), std::strerror(errno)));
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
