// The lock around a device's protocol engine.
//
// Two kinds of takers: those that must have it (set-up, queries) and wait, and those that would do
// the engine's work if it is free and go on otherwise (posting, polling, the engine thread). The
// second kind stands back while one of the first waits, so that a program polling in a loop starves
// nobody.
//
// All operations are sequentially consistent. Whoever publishes work by a sequentially consistent
// store and then fails to take the lock may rely on this: the holder, or the waiter it stood back
// for, gives the lock up after that store, and looks for work after giving it up.
#pragma once

#include <atomic>
#include <cstdint>

namespace mrc::nic {

class EngineLock {
 public:
  bool try_lock() {
    if (wanted_.load() != 0) return false;
    return take();
  }

  void lock() {
    if (take()) return;
    wanted_.fetch_add(1);
    while (!take())
      state_.wait(kHeld);
    wanted_.fetch_sub(1);
  }

  void unlock() {
    state_.exchange(kFree);
    if (wanted_.load() != 0) state_.notify_all();
  }

 private:
  static constexpr std::uint32_t kFree = 0;
  static constexpr std::uint32_t kHeld = 1;

  bool take() {
    std::uint32_t expected = kFree;
    return state_.compare_exchange_strong(expected, kHeld);
  }

  std::atomic<std::uint32_t> state_{kFree};
  std::atomic<std::uint32_t> wanted_{0};
};

}  // namespace mrc::nic
