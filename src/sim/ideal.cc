#include "sim/ideal.h"

#include <algorithm>
#include <iterator>

#include "base/assert.h"
#include "sim/simulation.h"

namespace mrc::sim {
namespace {

// Keeps the ends and what lies evenly between them.
std::vector<std::uint64_t> thin_out(const std::vector<std::uint64_t>& sizes, std::size_t count) {
  if (sizes.size() <= count) return sizes;
  std::vector<std::uint64_t> kept;
  for (std::size_t i = 0; i < count; ++i)
    kept.push_back(sizes[i * (sizes.size() - 1) / (count - 1)]);
  return kept;
}

double run_alone_us(const SimConfig& config, std::uint64_t bytes) {
  Simulation simulation(alone(config, bytes));
  const SimResult result = simulation.run();
  Time last = 0;
  for (const FlowResult& flow : result.flows)
    last = std::max(last, flow.sent);
  return static_cast<double>(last) / 1e6;
}

}  // namespace

SimConfig alone(const SimConfig& config, std::uint64_t bytes) {
  SimConfig single = config;
  fabric::TopologySpec& t = single.topology;
  const unsigned t1_per_pod = t.t1 / t.pods;
  t.pods = std::min(t.pods, 2u);
  t.t0 = std::min(t.t0, 2u);
  t.t1 = t1_per_pod * t.pods;
  t.hosts = 2;
  single.workload = {};
  single.workload.name = "pair";
  single.workload.connections = config.workload.connections;
  single.workload.bytes = bytes * config.workload.connections;
  single.faults.clear();
  single.loss = 0;
  single.verify = false;
  return single;
}

IdealTimes::IdealTimes(const SimConfig& config, std::vector<std::uint64_t> sizes) {
  MRC_ASSERT(!sizes.empty());
  const std::uint64_t largest = *std::max_element(sizes.begin(), sizes.end());
  for (std::uint64_t& size : sizes)
    size = std::min(size, kMaxBytes);
  if (largest > kMaxBytes) sizes.push_back(kMaxBytes / 2);
  std::sort(sizes.begin(), sizes.end());
  sizes.erase(std::unique(sizes.begin(), sizes.end()), sizes.end());
  for (const std::uint64_t size : thin_out(sizes, kMaxRuns))
    known_us_[size] = run_alone_us(config, size);
}

double IdealTimes::us(std::uint64_t bytes) const {
  auto above = known_us_.lower_bound(bytes);
  if (above != known_us_.end() && (above->first == bytes || known_us_.size() == 1))
    return above->second;
  if (known_us_.size() == 1) return known_us_.begin()->second;
  if (above == known_us_.end()) above = std::prev(above);
  if (above == known_us_.begin()) above = std::next(above);
  const auto below = std::prev(above);
  const double slope =
      (above->second - below->second) / static_cast<double>(above->first - below->first);
  const double from_below = static_cast<double>(bytes) - static_cast<double>(below->first);
  return below->second + slope * from_below;
}

}  // namespace mrc::sim
