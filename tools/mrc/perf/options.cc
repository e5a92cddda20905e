#include "perf/options.h"

#include <fmt/core.h>

#include <algorithm>
#include <array>

namespace mrc::tool::perf {
namespace {

constexpr std::array<const char*, 3> kNames = {"write_bw", "write_lat", "write_imm"};

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
  return {};
}

}  // namespace mrc::tool::perf
