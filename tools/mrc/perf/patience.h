// Waiting by looking again and again, without standing in the way of whom we wait for: on a machine
// with fewer processors than busy threads the peer may need ours.
#pragma once

#include <sched.h>

namespace mrc::tool::perf {

class Patience {
 public:
  // To be told of every look, and whether it found anything.
  void looked(bool found) {
    looks_ = found ? 0 : looks_ + 1;
    if (looks_ > kLooks) sched_yield();
  }

 private:
  static constexpr unsigned kLooks = 256;
  unsigned looks_ = 0;
};

}  // namespace mrc::tool::perf
