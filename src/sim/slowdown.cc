#include "sim/slowdown.h"

#include <algorithm>
#include <array>

#include "sim/report.h"

namespace mrc::sim {
namespace {

constexpr std::array<std::uint64_t, 5> kLimits = {10'000, 100'000, 1'000'000, 10'000'000, 0};

std::size_t class_of(std::uint64_t bytes) {
  const auto last = kLimits.end() - 1;
  return static_cast<std::size_t>(std::lower_bound(kLimits.begin(), last, bytes) - kLimits.begin());
}

}  // namespace

std::vector<SlowdownClass> slowdown_by_size(const Workload& workload, const SimResult& result,
                                            const IdealTimes& ideal) {
  std::array<std::vector<double>, kLimits.size()> values;
  for (TaskId id = 0; id < workload.tasks.size(); ++id) {
    const Task& task = workload.tasks[id];
    const FlowResult& flow = result.flows[id];
    if (task.kind != Task::Kind::kTransfer || flow.sent < 0 || flow.failed) continue;
    const double us = static_cast<double>(flow.sent - flow.posted) / 1e6;
    values[class_of(task.bytes)].push_back(us / ideal.us(task.bytes));
  }
  std::vector<SlowdownClass> classes;
  for (std::size_t i = 0; i < values.size(); ++i) {
    if (values[i].empty()) continue;
    const auto flows = static_cast<std::uint64_t>(values[i].size());
    const Distribution d = distribution(std::move(values[i]));
    classes.push_back({kLimits[i], flows, d.mean, d.p50, d.p99, d.max});
  }
  return classes;
}

}  // namespace mrc::sim
