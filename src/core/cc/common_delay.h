// The delay that all paths share. Packets take many paths, so what even the fastest of a round trip
// suffers is the queue that all of them stand in: the last hop, which does not mark.
#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>

#include "base/types.h"

namespace mrc::core {

class CommonDelay {
 public:
  void observe(TimeNs now, DurationNs delay_ns, DurationNs base_rtt_ns) {
    const auto seen_ns = static_cast<std::uint32_t>(std::clamp<DurationNs>(delay_ns, 0, kMostNs));
    if (now >= round_end_) {
      last_least_ns_ = least_ns_;
      least_ns_ = seen_ns;
      round_end_ = now + base_rtt_ns;
    }
    least_ns_ = std::min(least_ns_, seen_ns);
    known_until_ = now + kLastsRoundTrips * (base_rtt_ns + shared_ns());
  }
  // Of this round trip and the one before. None when that was long ago: answers to copies tell no
  // round trip, and a host that had stood still for 72 ms held its window at one packet for a
  // second by that one delay.
  DurationNs value_ns(TimeNs now) const { return now <= known_until_ ? shared_ns() : 0; }

 private:
  static constexpr int kLastsRoundTrips = 2;
  static constexpr DurationNs kMostNs = std::numeric_limits<std::uint32_t>::max();

  DurationNs shared_ns() const { return std::min(last_least_ns_, least_ns_); }

  std::uint32_t least_ns_ = 0;
  std::uint32_t last_least_ns_ = 0;
  TimeNs round_end_ = std::numeric_limits<TimeNs>::min();
  TimeNs known_until_ = std::numeric_limits<TimeNs>::min();
};

}  // namespace mrc::core
