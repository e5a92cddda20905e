#include "demo/report.h"

#include <algorithm>
#include <numeric>

namespace mrc::demo {

const char* verdict_name(Verdict verdict) {
  switch (verdict) {
    case Verdict::kPassed:
      return "passed";
    case Verdict::kFailed:
      return "failed";
    case Verdict::kWrongData:
      return "wrong_data";
    case Verdict::kStalled:
      return "stalled";
  }
  return "unknown";
}

const char* fail_mode_name(FailMode mode) {
  switch (mode) {
    case FailMode::kNone:
      return "none";
    case FailMode::kPath:
      return "path";
    case FailMode::kPlane:
      return "plane";
    case FailMode::kPort:
      return "port";
    case FailMode::kStorm:
      return "storm";
  }
  return "unknown";
}

tool::ExitCode exit_code(Verdict verdict) {
  switch (verdict) {
    case Verdict::kPassed:
      return tool::ExitCode::kOk;
    case Verdict::kWrongData:
      return tool::ExitCode::kWrongData;
    case Verdict::kStalled:
      return tool::ExitCode::kTimeout;
    case Verdict::kFailed:
      break;
  }
  return tool::ExitCode::kFailed;
}

DurationNs FaultReport::bypass_ns() const {
  if (trace.last_data_sent_at == kNever) return 0;
  return trace.last_data_sent_at - fault.at;
}

std::uint64_t Report::line_rate_bits_per_second() const {
  return std::uint64_t{options.hosts} * options.planes * kPortBitsPerSecond;
}

double Report::goodput_bits_per_second() const {
  if (finished_at == 0) return 0;
  return static_cast<double>(bytes_moved) * 8e9 / static_cast<double>(finished_at);
}

std::uint64_t Report::plane_bytes(unsigned plane_index) const {
  std::uint64_t sum = 0;
  for (const Measurements::PlaneBytes& bucket : buckets)
    sum += bucket[plane_index];
  return sum;
}

double bucket_bits_per_second(const Report& report, std::size_t bucket) {
  const Measurements::PlaneBytes& planes = report.buckets[bucket];
  const std::uint64_t bytes = std::accumulate(planes.begin(), planes.end(), std::uint64_t{0});
  const TimeNs begin = static_cast<TimeNs>(bucket) * kBucketNs;
  const DurationNs span = std::clamp<DurationNs>(report.finished_at - begin, 1, kBucketNs);
  return static_cast<double>(bytes) * 8e9 / static_cast<double>(span);
}

}  // namespace mrc::demo
