// The clock of one host: it drifts against virtual time and may jump ahead, but never runs
// backwards.
#pragma once

#include "base/types.h"

namespace mrc::dst {

class HostClock {
 public:
  void set_drift_ppm(int ppm) { drift_ppm_ = ppm; }
  void jump(DurationNs ahead_ns) { offset_ns_ += ahead_ns; }

  TimeNs read(TimeNs world) const { return world + world * drift_ppm_ / 1'000'000 + offset_ns_; }
  // The first moment at which the clock shows `shown` or later; kNever stays kNever.
  TimeNs moment_of(TimeNs shown) const {
    if (shown == kNever) return kNever;
    TimeNs moment = shown - offset_ns_;
    for (int step = 0; step < 4; ++step)
      moment -= read(moment) - shown;
    while (read(moment) < shown)
      ++moment;
    while (read(moment - 1) >= shown)
      --moment;
    return moment;
  }

 private:
  int drift_ppm_ = 0;
  DurationNs offset_ns_ = 0;
};

}  // namespace mrc::dst
