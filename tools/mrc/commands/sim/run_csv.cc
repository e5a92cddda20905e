#include <fmt/core.h>

#include <algorithm>
#include <fstream>
#include <ostream>
#include <stdexcept>

#include "commands/sim/run.h"
#include "output_file.h"

namespace mrc::tool::simulator {
namespace {

double to_us(sim::Time time) { return static_cast<double>(time) / 1e6; }

void write_flow(std::ostream& out, const Run& run, sim::TaskId id) {
  const sim::Task& task = run.workload.tasks[id];
  const sim::FlowResult& flow = run.report.result.flows[id];
  const auto time = [](sim::Time t) { return t < 0 ? "" : fmt::format("{:.6f}", to_us(t)); };
  const bool done = flow.sent >= 0 && !flow.failed;
  const double fct_us = to_us(flow.sent - flow.posted);
  const double gbps = done ? static_cast<double>(task.bytes) * 8 / (fct_us * 1e3) : 0;
  out << fmt::format("{},{},{},{},{},{},{},{},{},{},{},{:.4f},{}\n",
                     sim::transport_name(run.report.config.transport), id, task.source,
                     task.destination, task.connection, task.bytes, task.victim ? 1 : 0, task.step,
                     time(flow.posted), time(flow.sent), done ? fmt::format("{:.6f}", fct_us) : "",
                     gbps, flow.failed ? "failed" : (done ? "done" : "unfinished"));
}

// Goodput between two times whose distance is a multiple of the bins.
double gbps(const sim::Series& series, unsigned plane, sim::Time from, sim::Time to) {
  std::uint64_t bytes = 0;
  const auto first = static_cast<std::size_t>(from / series.bin_ps());
  const auto last = static_cast<std::size_t>(to / series.bin_ps());
  for (std::size_t bin = first; bin < last; ++bin)
    bytes += series.bytes(plane, bin);
  return static_cast<double>(bytes) * 8e3 / static_cast<double>(to - from);
}

void write_sample(std::ostream& out, const Run& run, const sim::Sample& sample) {
  const sim::Series& series = run.report.result.series;
  const sim::Time from = sample.at - run.samples->period;
  double total = 0;
  std::string planes;
  for (unsigned plane = 0; plane < series.planes(); ++plane) {
    const double rate = gbps(series, plane, from, sample.at);
    total += rate;
    planes += fmt::format(",{:.4f},{}", rate, sample.queued_bytes[plane]);
  }
  const sim::HostGauges& s = sample.senders;
  const std::uint64_t senders = std::max<std::uint64_t>(1, s.connections);
  out << fmt::format("{},{:.6f},{:.4f},{},{},{},{},{},{}{}\n",
                     sim::transport_name(run.report.config.transport), to_us(sample.at), total,
                     sample.deepest_queue_bytes, s.connections, s.window_bytes / senders,
                     s.in_flight_bytes / senders, s.good_evs, s.bad_evs, planes);
}

}  // namespace

void write_flows_csv(const std::string& path, const std::vector<Run>& runs) {
  write_file(path, [&](std::ostream& out) {
    out << "transport,flow,source,destination,connection,bytes,victim,step,posted_us,completed_us,"
           "fct_us,goodput_gbps,state\n";
    for (const Run& run : runs) {
      for (sim::TaskId id = 0; id < run.workload.tasks.size(); ++id)
        if (run.workload.tasks[id].kind == sim::Task::Kind::kTransfer) write_flow(out, run, id);
    }
  });
}

void write_series_csv(const std::string& path, const std::vector<Run>& runs) {
  write_file(path, [&](std::ostream& out) {
    out << "transport,time_us,goodput_gbps,deepest_queue_bytes,sending_connections,mean_cwnd_bytes,"
           "mean_in_flight_bytes,evs_good,evs_bad";
    for (unsigned plane = 0; plane < runs.front().report.result.series.planes(); ++plane)
      out << fmt::format(",goodput_gbps_plane{},queued_bytes_plane{}", plane, plane);
    out << '\n';
    for (const Run& run : runs)
      for (const sim::Sample& sample : run.samples->samples)
        write_sample(out, run, sample);
  });
}

}  // namespace mrc::tool::simulator
