#include "commands/perf/plan.h"

#include <fmt/core.h>
#include <sys/resource.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <numeric>

namespace mrc::tool::perf {
namespace {

constexpr std::array<const char*, 3> kNames = {"write_bw", "write_lat", "write_imm"};

double seconds_of(const timeval& time) {
  return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_usec) / 1e6;
}

double percentile(const std::vector<std::uint32_t>& sorted, double share) {
  const auto rank = static_cast<std::size_t>(std::ceil(share * static_cast<double>(sorted.size())));
  return sorted[std::clamp<std::size_t>(rank, 1, sorted.size()) - 1];
}

}  // namespace

const char* name_of(Test test) { return kNames.at(static_cast<std::size_t>(test)); }

std::optional<Test> test_of(const std::string& name) {
  const auto* const found = std::find(kNames.begin(), kNames.end(), name);
  if (found == kNames.end()) return std::nullopt;
  return static_cast<Test>(found - kNames.begin());
}

std::string why_not(const Plan& plan) {
  if (plan.sizes.empty() || plan.sizes.size() > kMaxSizes)
    return fmt::format("{} message sizes; 1 to {} are possible", plan.sizes.size(), kMaxSizes);
  for (const std::uint64_t size : plan.sizes) {
    if (size < 1 || size > kMaxBytes)
      return fmt::format("message size {} is not in 1..{}", size, kMaxBytes);
  }
  const bool by_time = plan.seconds > 0;
  if (!by_time && (plan.iterations < 1 || plan.iterations > kMaxIterations))
    return fmt::format("{} iterations; 1 to {} are possible", plan.iterations, kMaxIterations);
  if (!(plan.seconds >= 0 && plan.seconds <= kMaxSeconds))
    return fmt::format("a duration of {} s is not in 0..{}", plan.seconds, kMaxSeconds);
  if (plan.qps < 1 || plan.qps > kMaxQps)
    return fmt::format("{} queue pairs; 1 to {} are possible", plan.qps, kMaxQps);
  if (plan.depth < 1 || plan.depth > kMaxDepth)
    return fmt::format("a depth of {} is not in 1..{}", plan.depth, kMaxDepth);
  if (plan.test == Test::kWriteLatency && plan.qps != 1)
    return "write_lat measures one queue pair; leave -q out";
  if (plan.test != Test::kWriteBandwidth && plan.both_ways)
    return "only write_bw knows -b (write_lat goes both ways by itself)";
  if (plan.test != Test::kWriteLatency && plan.spin) return "only write_lat knows --spin";
  return {};
}

LatencySummary summarize(std::vector<std::uint32_t>& samples_ns) {
  LatencySummary summary;
  if (samples_ns.empty()) return summary;
  std::sort(samples_ns.begin(), samples_ns.end());
  const auto count = static_cast<double>(samples_ns.size());
  summary.min = samples_ns.front();
  summary.max = samples_ns.back();
  summary.median = percentile(samples_ns, 0.5);
  summary.p99 = percentile(samples_ns, 0.99);
  summary.p999 = percentile(samples_ns, 0.999);
  summary.mean = std::accumulate(samples_ns.begin(), samples_ns.end(), 0.0) / count;
  double squares = 0;
  for (const std::uint32_t sample : samples_ns)
    squares += (sample - summary.mean) * (sample - summary.mean);
  summary.deviation = std::sqrt(squares / count);
  return summary;
}

double cpu_seconds() {
  rusage usage = {};
  getrusage(RUSAGE_SELF, &usage);
  return seconds_of(usage.ru_utime) + seconds_of(usage.ru_stime);
}

}  // namespace mrc::tool::perf
