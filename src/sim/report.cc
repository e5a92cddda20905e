#include "sim/report.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "base/assert.h"
#include "sim/bound.h"
#include "sim/dip.h"
#include "sim/ideal.h"
#include "sim/mrc_host.h"

namespace mrc::sim {
namespace {

double to_us(Time time) { return static_cast<double>(time) / 1e6; }

bool takes_links_down(const fabric::Fault& fault) {
  return fault.kind == fabric::FaultKind::kDown || fault.kind == fabric::FaultKind::kFlap;
}

std::vector<std::uint64_t> flow_sizes(const Workload& workload) {
  std::vector<std::uint64_t> sizes;
  for (const Task& task : workload.tasks)
    if (task.kind == Task::Kind::kTransfer) sizes.push_back(task.bytes);
  std::sort(sizes.begin(), sizes.end());
  sizes.erase(std::unique(sizes.begin(), sizes.end()), sizes.end());
  return sizes;
}

void add_flows(const Workload& workload, const IdealTimes& ideal, Report& report) {
  std::vector<double> fct_us;
  double delivered_bits = 0;
  for (TaskId id = 0; id < workload.tasks.size(); ++id) {
    const Task& task = workload.tasks[id];
    if (task.kind != Task::Kind::kTransfer) continue;
    ++report.flows;
    report.bytes += task.bytes;
    const FlowResult& flow = report.result.flows[id];
    if (flow.sent < 0 || flow.failed) continue;
    const double us = to_us(flow.sent - flow.posted);
    const double alone_us = ideal.us(task.bytes);
    delivered_bits += static_cast<double>(task.bytes) * 8;
    report.finish_us = std::max(report.finish_us, to_us(flow.sent));
    if (task.victim) {
      if (!report.victim || us > report.victim->fct_us)
        report.victim = VictimReport{us, alone_us, us / alone_us};
      continue;
    }
    fct_us.push_back(us);
    report.ratio_max = std::max(report.ratio_max, us / alone_us);
  }
  report.fct_us = distribution(std::move(fct_us));
  if (report.finish_us > 0) report.goodput_gbps = delivered_bits / (report.finish_us * 1e3);
}

void add_faults(const fabric::Topology& topology, const std::vector<fabric::Fault>& faults,
                Report& report) {
  Time first_down = kEndOfTime;
  for (const fabric::Fault& fault : faults) {
    report.faults.push_back(fault.text);
    report.fault_starts.push_back(fault.start_ps);
    if (takes_links_down(fault)) first_down = std::min(first_down, fault.start_ps);
  }
  report.has_down_fault = first_down != kEndOfTime;
  if (!report.has_down_fault) return;
  Time busy_until = report.result.finished_at;
  for (const FlowResult& flow : report.result.flows)
    if (flow.sent >= 0) busy_until = std::min(busy_until, flow.sent);
  // The bytes of a flow are all there half a round trip before its sender knows.
  busy_until -= longest_base_rtt(report.config, topology);
  report.result.dip = measure_dip(report.result.series, {first_down, busy_until});
}

}  // namespace

const char* transport_name(Transport transport) {
  switch (transport) {
    case Transport::kMrc:
      return "mrc";
    case Transport::kRoce:
      return "rocev2";
    case Transport::kSplit:
      break;
  }
  return "split";
}

Distribution distribution(std::vector<double> values) {
  Distribution d;
  if (values.empty()) return d;
  std::sort(values.begin(), values.end());
  const auto at_share = [&](double share) {
    const auto rank =
        static_cast<std::size_t>(std::ceil(share * static_cast<double>(values.size())));
    return values[std::max<std::size_t>(rank, 1) - 1];
  };
  d.mean = std::accumulate(values.begin(), values.end(), 0.0) / static_cast<double>(values.size());
  d.p50 = at_share(0.5);
  d.p99 = at_share(0.99);
  d.max = values.back();
  return d;
}

std::vector<Explanation> explain_slowest(const Report& report, const Workload& workload,
                                         unsigned count, const ProgressFunction& progress) {
  const std::vector<std::uint64_t> sizes = flow_sizes(workload);
  if (sizes.empty()) return {};
  const IdealTimes ideal(report.config, sizes);
  Simulation again(report.config);
  again.follow(slowest_flows(workload, report.result, ideal, count));
  const SimResult result = again.run(progress);
  MRC_ASSERT(result.trace_hash == report.result.trace_hash);  // looking changes nothing
  return again.explain();
}

Report make_report(const SimConfig& config, const fabric::Topology& topology,
                   const Workload& workload, const std::vector<fabric::Fault>& faults,
                   SimResult result) {
  Report report;
  report.config = config;
  report.result = std::move(result);
  const std::vector<std::uint64_t> sizes = flow_sizes(workload);
  if (sizes.empty()) return report;
  const IdealTimes ideal(config, sizes);
  report.ideal_us = ideal.us(sizes.back());
  add_flows(workload, ideal, report);
  const Bound bound = lower_bound(config, topology, workload, faults, ideal);
  report.bound_us = bound.us;
  report.bound_reason = bound.reason;
  report.ratio_bound = report.finish_us / bound.us;
  const auto finish = static_cast<Time>(report.finish_us * 1e6);
  if (report.result.complete && workload.bus_factor > 0)
    report.collective = {algorithm_gbps(workload, finish), bus_gbps(workload, finish)};
  report.fairness = measure_fairness(workload, report.result);
  if (workload.by_size) report.slowdown = slowdown_by_size(workload, report.result, ideal);
  add_faults(topology, faults, report);
  return report;
}

}  // namespace mrc::sim
