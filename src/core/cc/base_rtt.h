// The round trip of an idle path, as a running minimum that one absurd sample cannot ruin.
#pragma once

#include <algorithm>
#include <cstdint>

#include "base/types.h"

namespace mrc::core {

// Taken when the profile names no base RTT: the reference network of the algorithm.
inline constexpr DurationNs kDefaultBaseRttNs = 12 * kMicrosecondNs;
inline constexpr DurationNs kMinBaseRttNs = 128;  // one unit of the timestamps on the wire
inline constexpr DurationNs kMaxBaseRttNs = DurationNs{1} << 28;  // 268 ms
// Samples lower the estimate to at most this part of where it started: a stamp that wrapped looks
// like a tiny round trip, and since the minimum never rises it would pin the window to the floor
// for ever.
inline constexpr DurationNs kMaxBaseRttFall = 16;

class BaseRtt {
 public:
  // `start_ns` 0 means unknown.
  explicit BaseRtt(DurationNs start_ns)
      : value_ns_(static_cast<std::uint32_t>(
            std::clamp(start_ns > 0 ? start_ns : kDefaultBaseRttNs, kMinBaseRttNs, kMaxBaseRttNs))),
        floor_ns_(static_cast<std::uint32_t>(
            std::max(DurationNs{value_ns_} / kMaxBaseRttFall, kMinBaseRttNs))) {}

  DurationNs value_ns() const { return value_ns_; }

  // Takes one sample (> 0); true when the estimate fell.
  bool observe(DurationNs sample_ns) {
    if (sample_ns >= value_ns_) return false;
    const auto lowered = static_cast<std::uint32_t>(std::max(sample_ns, DurationNs{floor_ns_}));
    const bool fell = lowered < value_ns_;
    value_ns_ = lowered;
    return fell;
  }

 private:
  std::uint32_t value_ns_;
  std::uint32_t floor_ns_;
};

}  // namespace mrc::core
