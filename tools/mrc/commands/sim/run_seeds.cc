// What is printed of runs that differ in their seeds alone.
#include <fmt/core.h>

#include <algorithm>
#include <cmath>

#include "commands/sim/run.h"
#include "json_writer.h"
#include "sim/seed_statistics.h"
#include "terminal.h"
#include "text.h"

namespace mrc::tool::simulator {
namespace {

std::vector<const sim::Report*> reports_of(const std::vector<Run>& runs, sim::Transport transport) {
  std::vector<const sim::Report*> reports;
  for (const Run& run : runs)
    if (run.report.config.transport == transport) reports.push_back(&run.report);
  return reports;
}

std::string number(double value) {
  if (value != 0 && std::abs(value) < 100) return fmt::format("{:.3f}", value);
  return grouped(static_cast<std::uint64_t>(std::llround(std::max(0.0, value))));
}

void write_statistics(JsonWriter& json, const std::vector<const sim::Report*>& reports) {
  json.begin_object("statistics");
  for (const sim::SeedStatistic& s : sim::statistics_over_seeds(reports)) {
    json.begin_object(s.name);
    json.value("mean", s.mean);
    json.value("ci95_low", s.mean - s.half_width);
    json.value("ci95_high", s.mean + s.half_width);
    json.value("worst", s.worst);
    json.value("worst_seed", s.worst_seed);
    json.value("seeds", std::uint64_t{s.count});
    json.end_object();
  }
  json.end_object();
}

}  // namespace

void print_seeds_json(const RunOptions& options, const std::vector<Run>& runs) {
  JsonWriter json(stdout);
  json.begin_object();
  json.value("schema", "mrc.sim.seeds/1");
  json.array("seeds", options.seeds);
  json.begin_array("transports");
  for (const sim::Transport transport : options.transports) {
    json.begin_object();
    json.value("transport", sim::transport_name(transport));
    write_statistics(json, reports_of(runs, transport));
    json.begin_array("runs");
    for (const Run& run : runs)
      if (run.report.config.transport == transport) write_run(json, run);
    json.end_array();
    json.end_object();
  }
  json.end_array();
  json.end_object();
}

void print_seeds_text(const RunOptions& options, const std::vector<Run>& runs,
                      const Terminal& terminal) {
  for (const sim::Transport transport : options.transports) {
    const std::vector<const sim::Report*> reports = reports_of(runs, transport);
    const auto finished = std::count_if(reports.begin(), reports.end(),
                                        [](const auto* r) { return r->result.complete; });
    fmt::print(terminal.stream(), "{}  {} of {} runs finished\n",
               terminal.bold(fmt::format("{} {}", sim::transport_name(transport),
                                         options.config.workload.name)),
               finished, reports.size());
    fmt::print(terminal.stream(), "  {:<16}{:>12}{:>28}{:>12}{:>8}\n", "", "mean", "95 % interval",
               "worst", "seed");
    for (const sim::SeedStatistic& s : sim::statistics_over_seeds(reports)) {
      const std::string interval =
          s.count > 1 ? fmt::format("{} to {}", number(std::max(0.0, s.mean - s.half_width)),
                                    number(s.mean + s.half_width))
                      : "";
      fmt::print(terminal.stream(), "  {:<16}{:>12}{:>28}{:>12}{:>8}\n", s.name, number(s.mean),
                 interval, number(s.worst), s.worst_seed);
    }
  }
}

}  // namespace mrc::tool::simulator
