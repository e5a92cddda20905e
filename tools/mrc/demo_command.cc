// mrc demo: a virtual cluster moves data while its network breaks.
#include <fmt/core.h>

#include <CLI/CLI.hpp>
#include <cstdio>
#include <map>
#include <string>

#include "command.h"
#include "demo/cluster.h"
#include "demo/options.h"
#include "demo/report.h"
#include "terminal.h"

namespace mrc::tool {
namespace {

const std::map<std::string, demo::FailMode> kFailModes = {{"none", demo::FailMode::kNone},
                                                          {"path", demo::FailMode::kPath},
                                                          {"plane", demo::FailMode::kPlane},
                                                          {"port", demo::FailMode::kPort},
                                                          {"storm", demo::FailMode::kStorm}};

class DemoCommand final : public Command {
 public:
  CLI::App* declare(CLI::App& program) override;
  ExitCode run() override;

 private:
  std::string objection() const;

  demo::Options options_;
  bool json_ = false;
};

CLI::App* DemoCommand::declare(CLI::App& program) {
  CLI::App* app = program.add_subcommand(
      "demo", "Move data through a virtual cluster while its network breaks");
  app->add_option("--hosts", options_.hosts, "Hosts in the cluster")
      ->check(CLI::Range(demo::kMinHosts, demo::kMaxHosts))
      ->capture_default_str();
  app->add_option("--planes", options_.planes, "Network planes, each a 100 Gb/s port per host")
      ->check(CLI::Range(1U, kMaxPorts))
      ->capture_default_str();
  app->add_option("--mbytes", options_.mbytes, "Megabytes that each host sends")
      ->check(CLI::Range(1U, demo::kMaxMbytes))
      ->capture_default_str();
  app->add_option("--seed", options_.seed, "The same seed gives the same run")
      ->capture_default_str();
  app->add_option_function<std::string>(
         "--fail", [this](const std::string& name) { options_.fail = kFailModes.at(name); },
         "What breaks: nothing, a path, a plane, a host's port, or all of them (default: storm)")
      ->check(CLI::IsMember(&kFailModes));
  app->add_flag("--json", json_, "Print the report as JSON");
  return app;
}

// Why these options make no run, empty when they do.
std::string DemoCommand::objection() const {
  const bool loses_plane =
      options_.fail != demo::FailMode::kNone && options_.fail != demo::FailMode::kPath;
  if (loses_plane && options_.planes < 2) {
    return "with --planes 1 a lost plane is the whole network; use --fail none or path";
  }
  if (demo::memory_mbytes(options_) > demo::kMaxMemoryMbytes) {
    return fmt::format("{} hosts with {} MB each need {} MB of memory, at most {} are allowed",
                       options_.hosts, options_.mbytes, demo::memory_mbytes(options_),
                       demo::kMaxMemoryMbytes);
  }
  return "";
}

ExitCode DemoCommand::run() {
  const std::string why_not = objection();
  if (!why_not.empty()) {
    fmt::print(stderr, "mrc demo: {}\n", why_not);
    return ExitCode::kUsage;
  }
  const Terminal out(stdout);
  const Terminal err(stderr);
  double wall_seconds = 0;
  demo::Report report;
  {
    Progress progress(err, "moving data");
    demo::Cluster cluster(options_);
    report = cluster.run([&progress](double share) { progress.update(share); });
    wall_seconds = progress.seconds();
  }
  if (json_) {
    demo::print_json(report);
  } else {
    demo::print_text(report, out, wall_seconds);
  }
  return demo::exit_code(report.verdict);
}

}  // namespace

std::unique_ptr<Command> make_demo_command() { return std::make_unique<DemoCommand>(); }

}  // namespace mrc::tool
