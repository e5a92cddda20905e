// mrc sim: the protocol on a simulated fabric.
#include <fmt/core.h>

#include <CLI/CLI.hpp>
#include <cstdio>
#include <string>
#include <vector>

#include "command.h"
#include "commands/sim/memory_need.h"
#include "commands/sim/run.h"
#include "commands/sim/run_options.h"
#include "commands/sim/sim_flags.h"
#include "os/interrupt.h"
#include "terminal.h"

namespace mrc::tool {
namespace {

using simulator::Run;
using simulator::RunOptions;

class SimCommand final : public Command {
 public:
  CLI::App* declare(CLI::App& program) override {
    CLI::App* app = program.add_subcommand("sim", "Run the protocol on a simulated fabric");
    flags_.declare(*app);
    return app;
  }
  ExitCode run() override;

 private:
  simulator::SimFlags flags_;
};

ExitCode exit_code(const std::vector<Run>& runs) {
  ExitCode worst = ExitCode::kOk;
  for (const Run& run : runs) {
    const sim::SimResult& r = run.report.result;
    if (r.bytes_wrong > 0) return ExitCode::kWrongData;
    if (r.failed > 0) worst = ExitCode::kFailed;
    if (!r.complete && r.failed == 0 && worst == ExitCode::kOk) worst = ExitCode::kTimeout;
  }
  return worst;
}

void write_files(const simulator::Outputs& outputs, const std::vector<Run>& runs) {
  if (!outputs.csv.empty()) simulator::write_flows_csv(outputs.csv, runs);
  if (!outputs.series.empty()) simulator::write_series_csv(outputs.series, runs);
  if (!outputs.report.empty()) simulator::write_html(outputs.report, runs);
}

// Of many seeds only figures are kept: flows and series of each would fill the memory. After an
// interruption the run that it hit is the last.
std::vector<Run> run_all(const RunOptions& options, const Terminal& terminal) {
  std::vector<Run> runs;
  if (options.seeds.empty()) {
    for (const sim::Transport transport : options.transports) {
      runs.push_back(simulator::run_once(options, transport, terminal));
      if (os::Interrupt::raised()) break;
    }
    return runs;
  }
  Progress progress(terminal, "seeds");
  const std::size_t all = options.seeds.size() * options.transports.size();
  for (const std::uint64_t seed : options.seeds) {
    RunOptions one = options;
    one.config.seed = one.config.workload.seed = seed;
    for (const sim::Transport transport : options.transports) {
      Run& run = runs.emplace_back(simulator::run_once(one, transport, terminal));
      run.workload = {};
      run.report.result.flows = {};
      run.report.result.series = {};
      if (os::Interrupt::raised()) return runs;
      progress.update(static_cast<double>(runs.size()) / static_cast<double>(all));
    }
  }
  return runs;
}

ExitCode SimCommand::run() {
  const Terminal out(stdout);
  const Terminal err(stderr);
  const RunOptions options = flags_.read();
  simulator::check_memory(options.config);
  const os::Interrupt interrupt;
  const std::vector<Run> runs = run_all(options, err);
  const bool interrupted = os::Interrupt::raised();
  if (interrupted) {
    fmt::print(stderr, "mrc sim: interrupted; this is what had happened until then\n");
    os::Interrupt::clear();
  }
  if (!options.seeds.empty()) {
    if (options.outputs.json) {
      simulator::print_seeds_json(options, runs);
    } else {
      simulator::print_seeds_text(options, runs, out);
    }
    return interrupted ? ExitCode::kInterrupted : exit_code(runs);
  }
  write_files(options.outputs, runs);
  if (options.outputs.json) {
    simulator::print_json(runs);
  } else {
    simulator::print_text(runs, out);
  }
  return interrupted ? ExitCode::kInterrupted : exit_code(runs);
}

}  // namespace

std::unique_ptr<Command> make_sim_command() { return std::make_unique<SimCommand>(); }

}  // namespace mrc::tool
