// The delay that all paths share. Packets take many paths, so what even the fastest of a round trip
// suffers is the queue that all of them stand in: the last hop, which does not mark.
#pragma once

#include <algorithm>
#include <limits>

#include "base/types.h"

namespace mrc::core {

class CommonDelay {
 public:
  void observe(TimeNs now, DurationNs delay_ns, DurationNs base_rtt_ns) {
    if (now >= round_end_) {
      last_least_ns_ = least_ns_;
      least_ns_ = delay_ns;
      round_end_ = now + base_rtt_ns;
    }
    least_ns_ = std::min(least_ns_, delay_ns);
  }
  // Of this round trip and the one before.
  DurationNs value_ns() const { return std::min(last_least_ns_, least_ns_); }

 private:
  DurationNs least_ns_ = 0;
  DurationNs last_least_ns_ = 0;
  TimeNs round_end_ = std::numeric_limits<TimeNs>::min();
};

}  // namespace mrc::core
