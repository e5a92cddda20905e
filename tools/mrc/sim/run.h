// Runs what the options describe.
#pragma once

#include <cstdint>
#include <vector>

#include "sim/report.h"
#include "sim/run_options.h"
#include "terminal.h"

namespace mrc::tool::simulator {

// A finished run and what it cost on this machine.
struct Run {
  sim::Report report;
  double setup_s = 0;
  double wall_s = 0;  // of the simulation itself
  std::uint64_t peak_rss_bytes = 0;
};

// `terminal` shows progress. Throws InputError.
Run run_once(const sim::SimConfig& config, const Terminal& terminal);

void print_json(const std::vector<Run>& runs);
void print_text(const std::vector<Run>& runs, const Terminal& terminal);

}  // namespace mrc::tool::simulator
