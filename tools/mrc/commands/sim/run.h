// Runs what the options describe.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "commands/sim/run_options.h"
#include "json_writer.h"
#include "sim/report.h"
#include "sim/report_samples.h"
#include "view/sim_source.h"

namespace mrc::tool {

class Terminal;

namespace simulator {

// A finished run and what it cost on this machine.
struct Run {
  sim::Report report;
  sim::Workload workload;
  std::vector<sim::Explanation> explanations;  // of the slowest flows, if wanted
  std::optional<sim::SampleSeries> samples;    // where an output needs them
  std::uint64_t captured = 0;                  // packets
  std::uint64_t not_captured = 0;              // beyond the limit
  double setup_s = 0;
  double wall_s = 0;  // of the simulation itself
  std::uint64_t peak_rss_bytes = 0;
};

// Writes the capture, if one is wanted. `terminal` shows progress. Throws InputError.
Run run_once(const RunOptions& options, sim::Transport transport, const Terminal& terminal);

view::SimSourceOptions recording_options(const RunOptions& options, sim::Transport transport);

void write_run(JsonWriter& json, const Run& run);
void print_json(const std::vector<Run>& runs);
void print_text(const std::vector<Run>& runs, const Terminal& terminal);
// Of runs with several seeds: statistics.
void print_seeds_json(const RunOptions& options, const std::vector<Run>& runs);
void print_seeds_text(const RunOptions& options, const std::vector<Run>& runs,
                      const Terminal& terminal);
// Throw std::runtime_error when the file cannot be written.
void write_flows_csv(const std::string& path, const std::vector<Run>& runs);
void write_series_csv(const std::string& path, const std::vector<Run>& runs);
void write_html(const std::string& path, const std::vector<Run>& runs);

}  // namespace simulator
}  // namespace mrc::tool
