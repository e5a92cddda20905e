#include "perf/result.h"

#include <sys/resource.h>

#include <algorithm>
#include <cmath>
#include <numeric>

namespace mrc::tool::perf {
namespace {

double seconds_of(const timeval& time) {
  return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_usec) / 1e6;
}

double percentile(const std::vector<std::uint32_t>& sorted, double share) {
  const auto rank = static_cast<std::size_t>(std::ceil(share * static_cast<double>(sorted.size())));
  return sorted[std::clamp<std::size_t>(rank, 1, sorted.size()) - 1];
}

}  // namespace

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
