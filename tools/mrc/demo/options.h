// What the user may choose about the demonstration.
#pragma once

#include <cstdint>

namespace mrc::demo {

enum class FailMode : std::uint8_t { kNone, kPath, kPlane, kPort, kStorm };

struct Options {
  unsigned hosts = 8;
  unsigned planes = 4;
  unsigned mbytes = 24;  // sent by each host, in units of 10^6 bytes
  std::uint64_t seed = 1;
  FailMode fail = FailMode::kStorm;
};

inline constexpr unsigned kMinHosts = 2;
inline constexpr unsigned kMaxHosts = 64;
inline constexpr unsigned kMaxMbytes = 4096;
inline constexpr std::uint64_t kMaxMemoryMbytes = 8192;  // of all hosts together

// Every host holds what it sends and what it receives.
constexpr std::uint64_t memory_mbytes(const Options& options) {
  return std::uint64_t{2} * options.hosts * options.mbytes;
}

}  // namespace mrc::demo
