// mrc demo: a training job in a virtual cluster of real processes and real packets, while cables,
// a switch and a NIC port fail.
#include <fmt/core.h>

#include <CLI/CLI.hpp>
#include <chrono>
#include <cstdio>
#include <filesystem>
#include <string>

#include "command.h"
#include "commands/demo/drill.h"
#include "commands/demo/options.h"
#include "commands/demo/verdict.h"
#include "failure.h"
#include "launch/rank_group.h"
#include "os/interrupt.h"
#include "quantity_option.h"
#include "terminal.h"

namespace mrc::tool {
namespace {

using demo::Transport;

constexpr unsigned kMinHosts = 4;  // two behind each T0
constexpr unsigned kMaxHosts = 32;
constexpr unsigned kMaxPlanes = 8;

class DemoCommand final : public Command {
 public:
  CLI::App* declare(CLI::App& program) override;
  ExitCode run() override;

 private:
  ExitCode play();

  demo::Options options_;
};

CLI::App* DemoCommand::declare(CLI::App& program) {
  CLI::App* app = program.add_subcommand(
      "demo", "Train in a virtual cluster of real processes while its network breaks");
  app->add_option("--hosts", options_.hosts, "Hosts in the cluster")
      ->check(CLI::Range(kMinHosts, kMaxHosts))
      ->capture_default_str();
  app->add_option("--planes", options_.planes, "Network planes, each a port per host")
      ->check(CLI::Range(2U, kMaxPlanes))
      ->capture_default_str();
  app->add_option("--mbps", options_.mbps,
                  "Rate of a port; lower it where the machine is the limit")
      ->transform(as_mbps())
      ->check(CLI::Range(1.0, 10'000.0))
      ->capture_default_str();
  app->add_option("--fault-seconds", options_.fault_s,
                  "How long each fault lasts, and how long the network is well after it")
      ->transform(as_seconds({0.2, 60}))
      ->capture_default_str();
  app->add_flag("--compare,!--no-compare", options_.compares,
                "The same drill with a single-path transport; on by default");
  app->add_flag("--json", options_.json, "Print the verdict as JSON; what happens goes to stderr");
  app->footer(
      "Prints the address of a page that shows the network while it runs, and opens nothing by\n"
      "itself. Needs no privileges and no network. Exit codes: 0 all data right and no job "
      "interrupted, 1 "
      "an\n"
      "interruption, 3 wrong data, 130 Ctrl-C. See docs/lab.md for a lab to break by hand.");
  return app;
}

ExitCode DemoCommand::play() {
  const auto start = std::chrono::steady_clock::now();
  demo::Show show(options_.json ? stderr : stdout);
  demo::Verdict verdict;
  demo::PagePlace place;
  {
    show.chapter(fmt::format("MRC: {} hosts, {} planes of {} T0 + {} T1, {:g} Mb/s per port",
                             options_.hosts, options_.planes, demo::Options::kT0,
                             demo::Options::kT1, options_.mbps));
    demo::Drill drill(options_, Transport::kMrc, show, place);
    verdict.undisturbed = drill.undisturbed_losses();
    verdict.mrc = drill.run();
  }
  if (options_.compares) {
    show.chapter(
        fmt::format("The same with a single path per connection: one plane, {:g} Mb/s "
                    "per port, one EV",
                    options_.mbps * options_.planes));
    demo::Drill drill(options_, Transport::kSinglePath, show, place);
    verdict.single_path = drill.run();
  }
  show.leave_page();
  verdict.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  if (options_.json) {
    demo::print_json(verdict, options_);
  } else {
    demo::print_text(verdict, options_, Terminal(stdout));
  }
  return verdict.exit_code();
}

ExitCode DemoCommand::run() {
  const std::filesystem::path training =
      std::filesystem::path(own_program()).parent_path() / "mrc-training";
  if (!std::filesystem::exists(training)) {
    fmt::print(stderr, "mrc demo: {} is missing; it is built and installed beside mrc\n",
               training.string());
    return ExitCode::kFailed;
  }
  options_.training = training.string();
  const os::Interrupt interrupt;
  try {
    return play();
  } catch (const Failure& failure) {
    fmt::print(stderr, "mrc demo: {}\n", failure.what());
    return exit_code_of(failure);
  }
}

}  // namespace

std::unique_ptr<Command> make_demo_command() { return std::make_unique<DemoCommand>(); }

}  // namespace mrc::tool
