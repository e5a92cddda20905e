// A lock for sections of a few dozen instructions. Works with std::lock_guard.
#pragma once

#include <sched.h>

#include <atomic>

namespace mrc::os {

class SpinLock {
 public:
  void lock() {
    for (unsigned tries = 1; taken_.exchange(true, std::memory_order_acquire); ++tries) {
      // The holder may have lost its processor; spinning on would keep it from coming back.
      if (tries % kTriesBeforeYield == 0) sched_yield();
    }
  }
  bool try_lock() { return !taken_.exchange(true, std::memory_order_acquire); }
  void unlock() { taken_.store(false, std::memory_order_release); }

 private:
  static constexpr unsigned kTriesBeforeYield = 64;
  std::atomic<bool> taken_{false};
};

}  // namespace mrc::os
