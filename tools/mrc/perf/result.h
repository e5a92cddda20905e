// What a measurement found.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace mrc::tool::perf {

// Times of single messages, one way, in ns.
struct LatencySummary {
  double min = 0;
  double max = 0;
  double median = 0;
  double mean = 0;
  double deviation = 0;
  double p99 = 0;
  double p999 = 0;
};
LatencySummary summarize(std::vector<std::uint32_t>& samples_ns);

struct Result {
  std::uint64_t message_bytes = 0;
  std::uint64_t messages = 0;  // measured, of all queue pairs
  double seconds = 0;
  double peak_bits_per_second = 0;  // best stretch of at least 10 ms
  double cpu_s = 0;                 // of this side while measuring
  double peer_cpu_s = 0;
  double peer_bits_per_second = 0;  // -b: what came back at the same time
  LatencySummary latency;           // write_lat only
  bool interrupted = false;
  bool verified = false;

  double bits_per_second() const {
    return seconds > 0 ? 8.0 * static_cast<double>(messages * message_bytes) / seconds : 0;
  }
  double messages_per_second() const {
    return seconds > 0 ? static_cast<double>(messages) / seconds : 0;
  }
};

// Processor time of this process so far.
double cpu_seconds();

}  // namespace mrc::tool::perf
