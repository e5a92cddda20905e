// Streams of decisions, all derived from the one seed of a run. Each part of the world draws from
// its own stream, so that one more draw in one part does not reshuffle the others. Integers only:
// the same seed must mean the same run on every machine and compiler.
#pragma once

#include <bit>
#include <cstdint>
#include <vector>

#include "base/prng.h"
#include "base/types.h"

namespace mrc::dst {

enum class Stream : std::uint64_t {
  kSwarm,
  kNetwork,
  kPacketFaults,
  kPathFaults,
  kHostFaults,
  kHosts,
  kWorkload,
  kApi,
  kAdversary,
  kChecks,
  kTeardown,
  kTheme,
};

// A bijection that scatters its input; also the step of order-sensitive hashes.
constexpr std::uint64_t mix64(std::uint64_t value) { return Prng(value).next64(); }

class Random {
 public:
  Random(std::uint64_t seed, Stream stream)
      : prng_(mix64(seed ^ mix64(0xD57'0000 + static_cast<std::uint64_t>(stream)))) {}

  std::uint64_t bits() { return prng_.next64(); }
  std::uint32_t below(std::uint32_t bound) { return prng_.below(bound); }
  // Uniform in [low, high].
  std::uint32_t between(std::uint32_t low, std::uint32_t high) {
    return low + below(high - low + 1);
  }
  DurationNs duration(DurationNs low_ns, DurationNs high_ns) {
    const auto span = static_cast<std::uint64_t>(high_ns - low_ns) + 1;
    return low_ns + static_cast<DurationNs>(bits() % span);
  }
  // In [low, high], each octave equally likely; low > 0.
  std::uint32_t logarithmic(std::uint32_t low, std::uint32_t high) {
    const auto octaves = static_cast<std::uint32_t>(std::bit_width(high / low));
    const std::uint64_t bottom = std::uint64_t{low} << below(octaves);
    const std::uint64_t top = 2 * bottom - 1 < high ? 2 * bottom - 1 : high;
    return between(static_cast<std::uint32_t>(bottom), static_cast<std::uint32_t>(top));
  }
  bool one_in(std::uint32_t n) { return below(n) == 0; }
  bool percent(std::uint32_t rate) { return below(100) < rate; }
  bool ppm(std::uint32_t rate) { return rate != 0 && below(1'000'000) < rate; }

  template <typename T>
  const T& pick(const std::vector<T>& items) {
    return items[below(static_cast<std::uint32_t>(items.size()))];
  }

 private:
  Prng prng_;
};

}  // namespace mrc::dst
