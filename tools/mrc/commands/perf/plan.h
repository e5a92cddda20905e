// What `mrc perf` was asked to do, what client and server agree on before they start, and what a
// measurement found.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "commands/perf/losses.h"
#include "commands/perf/waits.h"

namespace mrc::tool::perf {

enum class Test : std::uint8_t { kWriteBandwidth, kWriteLatency, kWriteImmediate };

const char* name_of(Test test);
std::optional<Test> test_of(const std::string& name);

constexpr std::uint64_t kMaxBytes = std::uint64_t{1} << 30;
constexpr std::uint64_t kMaxIterations = std::uint64_t{1} << 40;
constexpr double kMaxSeconds = 86'400;
constexpr unsigned kMaxQps = 16'384;
constexpr unsigned kMaxDepth = 8'192;
constexpr unsigned kMaxSizes = 64;

// The part that must be the same on both sides. The client's choice counts; the server checks it.
struct Plan {
  Test test = Test::kWriteBandwidth;
  std::vector<std::uint64_t> sizes;  // bytes, one measurement each
  std::uint64_t iterations = 0;      // per queue pair; not used with seconds > 0
  double seconds = 0;                // 0 = by iterations
  unsigned qps = 1;
  unsigned depth = 128;  // most messages in flight of a queue pair
  bool both_ways = false;
  bool spin = false;  // write_lat: watch memory only, and poll when completions are needed
  bool verify = true;
  bool verify_all = false;  // every byte of every message, where the test can
};

// Empty when the plan can be carried out, else one line that says why not.
std::string why_not(const Plan& plan);

struct Options {
  Plan plan;
  std::string host;    // empty = server
  std::string device;  // empty = the first one
  std::uint16_t tcp_port = 18'515;
  int gid_index = 0;
  std::uint32_t mtu = 0;  // bytes of payload per packet; 0 = the port's
  unsigned signal_every = 0;
  std::optional<std::uint64_t> ev_profile;
  std::optional<std::uint64_t> cc_profile;
  double timeout_s = 30;
  double report_every_s = 0;
  bool explain = false;
  bool losses = false;           // count them; -b: what the peer counted comes with its result
  double longest_silence_s = 0;  // of the peer; 0: as long as it is there
  bool gbits = false;
  bool json = false;
  std::string json_file;

  bool is_server() const { return host.empty(); }
};

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
  double peak_bits_per_second = 0;  // best stretch of at least 100 ms
  double cpu_s = 0;                 // of this side while measuring
  double peer_cpu_s = 0;
  double peer_bits_per_second = 0;  // -b: what came back at the same time
  LatencySummary latency;           // write_lat only
  std::optional<Waits> waits;       // --explain
  std::optional<Losses> losses;
  std::optional<Losses> peer_losses;
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
