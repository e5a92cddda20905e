// The clock of engines and back ends. It never goes back and does not follow changes of the date.
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
