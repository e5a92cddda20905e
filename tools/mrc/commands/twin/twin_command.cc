// mrc twin: one scenario in a lab and in the simulator, side by side.
#include <fmt/core.h>

#include <CLI/CLI.hpp>
#include <cstdio>
#include <filesystem>
#include <string>

#include "collective/placement_flags.h"
#include "command.h"
#include "commands/twin/lab_rank.h"
#include "commands/twin/lab_run.h"
#include "commands/twin/report.h"
#include "commands/twin/scenario.h"
#include "commands/twin/sim_run.h"
#include "controller/session.h"
#include "failure.h"
#include "os/interrupt.h"
#include "terminal.h"

namespace mrc::tool {
namespace {

class TwinCommand final : public Command {
 public:
  CLI::App* declare(CLI::App& program) override;
  ExitCode run() override;

 private:
  ExitCode run_both(const twin::Scenario& scenario) const;

  std::string file_;
  bool json_ = false;
  bool as_host_ = false;
  collective::PlacementRequest place_;
};

CLI::App* TwinCommand::declare(CLI::App& program) {
  CLI::App* app = program.add_subcommand(
      "twin", "Run one scenario on real frames and in the simulator, side by side");
  app->add_option("FILE", file_, "Settings as for `mrc sim --config`, with the rates of a lab")
      ->required()
      ->type_name("FILE");
  app->add_flag("--json", json_, "Print the result as JSON");
  app->add_flag("--as-host", as_host_, "Be a host of the lab; for the command itself")->group("");
  collective::declare_placement(*app, place_);
  for (CLI::Option* option :
       app->get_options([](const CLI::Option* o) { return o->get_group() == "Ranks"; }))
    option->group("");
  app->footer(
      "The lab is made for the run and gone after it; no privileges are needed. Congestion "
      "control,\n"
      "queues, paths, delays and faults are the same on both sides; what processes take to answer "
      "is\n"
      "measured in the idle lab first, and the simulator is told. Exit codes: 0 both sides "
      "finished,\n"
      "1 one failed, 2 usage, 3 wrong bytes, 4 a side did not finish in time. See docs/twin.md.");
  return app;
}

ExitCode TwinCommand::run_both(const twin::Scenario& scenario) const {
  const Terminal err(stderr);
  const twin::LabResult lab = twin::run_in_lab(scenario, err);
  const twin::Twin both{
      .lab = lab.side,
      .simulator = twin::run_in_simulator(twin::simulated(scenario, lab.traits), err),
      .traits = lab.traits};
  if (json_) {
    twin::print_json(scenario, both);
  } else {
    twin::print_text(scenario, both, Terminal(stdout));
  }
  if (both.lab.bytes_wrong + both.simulator.bytes_wrong > 0) return ExitCode::kWrongData;
  return both.lab.complete && both.simulator.complete ? ExitCode::kOk : ExitCode::kTimeout;
}

ExitCode TwinCommand::run() {
  const os::Interrupt interrupt;
  try {
    const twin::Scenario scenario =
        twin::read_scenario(std::filesystem::absolute(file_).lexically_normal().string());
    if (!as_host_) return run_both(scenario);
    twin::run_rank(scenario, collective::resolve(place_));
    return ExitCode::kOk;
  } catch (const Failure& failure) {
    fmt::print(stderr, "mrc twin: {}\n", failure.what());
    return exit_code_of(failure);
  } catch (const controller::CtlError& error) {
    fmt::print(stderr, "mrc twin: {}\n", error.what());
    return ExitCode::kFailed;
  }
}

}  // namespace

std::unique_ptr<Command> make_twin_command() { return std::make_unique<TwinCommand>(); }

}  // namespace mrc::tool
