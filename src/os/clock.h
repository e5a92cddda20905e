// The clock by which back ends look after links and cables; a few milliseconds do not matter.
#pragma once

#include <ctime>

#include "base/types.h"

namespace mrc::os {

inline TimeNs monotonic_now() {
  timespec now{};
  ::clock_gettime(CLOCK_MONOTONIC, &now);
  return now.tv_sec * kSecondNs + now.tv_nsec;
}

}  // namespace mrc::os
