#include "commands/twin/sim_run.h"

#include <algorithm>

#include "sim/report_samples.h"
#include "sim/simulation.h"

namespace mrc::tool::twin {
namespace {

constexpr sim::Time kBinPs = 1'000'000'000;

double to_ms(sim::Time time) { return static_cast<double>(time) / 1e9; }

std::uint64_t bytes_by(const sim::Series& series, double at_ms) {
  std::uint64_t bytes = 0;
  for (std::size_t bin = 0; bin < series.bins(); ++bin)
    if (to_ms(series.bin_ps()) * static_cast<double>(bin + 1) <= at_ms) bytes += series.bytes(bin);
  return bytes;
}

void add_points(const sim::SimResult& result, const sim::SampleSeries& samples, Side& side) {
  std::uint64_t last = 0;
  for (unsigned i = 1; i <= kPoints; ++i) {
    Point point{.at_ms = side.finish_ms * i / kPoints};
    const std::uint64_t bytes = i == kPoints ? bytes_by(result.series, side.finish_ms + 1e9)
                                             : bytes_by(result.series, point.at_ms);
    point.goodput_mbps = static_cast<double>(bytes - last) * 8 / 1e3 / (side.finish_ms / kPoints);
    last = bytes;
    for (const sim::Sample& sample : samples.samples)
      if (to_ms(sample.at) <= point.at_ms) point.bad_paths = sample.senders.bad_evs;
    side.points.push_back(point);
  }
}

}  // namespace

Side run_in_simulator(const sim::SimConfig& config, const Terminal& terminal) {
  sim::SimConfig own = config;
  own.bin_ps = kBinPs;
  sim::Simulation simulation(own);
  sim::SampleRecorder recorder(simulation, kBinPs);
  Progress progress(terminal, "simulator");
  const sim::SimResult result =
      simulation.run([&](const sim::Progress& p) { progress.update(p.share); });
  Side side;
  side.complete = result.complete;
  side.bytes_wrong = result.bytes_wrong;
  for (sim::TaskId id = 0; id < result.flows.size(); ++id) {
    const sim::FlowResult& flow = result.flows[id];
    const bool transfer = simulation.workload().tasks[id].kind == sim::Task::Kind::kTransfer;
    const bool sent = transfer && flow.sent >= 0 && !flow.failed;
    side.completion_ms.push_back(sent ? to_ms(flow.sent - flow.posted) : -1);
    if (sent) side.finish_ms = std::max(side.finish_ms, to_ms(flow.sent));
  }
  side.counts = {{"data_packets", result.hosts.data_packets},
                 {"retransmits", result.hosts.retransmits},
                 {"spurious", result.hosts.spurious},
                 {"timeouts", result.hosts.timeouts},
                 {"probes", result.hosts.probes},
                 {"marks", result.network.marks},
                 {"trims", result.network.trims},
                 {"drops", result.network.drops()}};
  side.recovery_ms = result.recovery_us < 0 ? -1 : result.recovery_us / 1e3;
  add_points(result, recorder.take(), side);
  return side;
}

}  // namespace mrc::tool::twin
