// What `mrc perf` was asked to do, and what client and server agree on before they start.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

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
  bool gbits = false;
  bool json = false;
  std::string json_file;

  bool is_server() const { return host.empty(); }
};

}  // namespace mrc::tool::perf
