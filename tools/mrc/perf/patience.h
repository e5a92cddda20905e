// Waiting by looking again and again, without standing in the way of whom we wait for: on a machine
// with fewer processors than busy threads the peer may need ours.
#pragma once

#include <sched.h>

#include <ctime>

namespace mrc::tool::perf {

class Patience {
 public:
  // To be told of every look, and whether it found anything.
  void looked(bool found) {
    looks_ = found ? 0 : looks_ + 1;
    if (looks_ > kLooks + kYields) {
      constexpr timespec kNap{.tv_sec = 0, .tv_nsec = 50'000};
      nanosleep(&kNap, nullptr);
    } else if (looks_ > kLooks) {
      sched_yield();
    }
  }

 private:
  static constexpr unsigned kLooks = 256;
  // Whoever yields is ready to run all the time. Many of them can keep a scheduler from ever
  // running what they wait for, so that long waits are slept through.
  static constexpr unsigned kYields = 256;
  unsigned looks_ = 0;
};

}  // namespace mrc::tool::perf
