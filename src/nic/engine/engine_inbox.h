// What other threads leave for whoever holds the engine lock: queue pairs with new work, and the
// word that a completion queue overran in another engine.
//
// Leaving something takes no lock and never waits. Taking it is the lock holder's business; how the
// holder comes to look, or a thread to hold the lock at all, is engine_waker.h's.
#pragma once

#include <atomic>

namespace mrc::nic {

// A link in the list of what has new work. It must not go while it may be on a list.
class Doorbell {
 private:
  friend class EngineInbox;
  std::atomic<bool> rung_{false};
  Doorbell* next_ = nullptr;
};

class EngineInbox {
 public:
  // `rung_` keeps a doorbell from being on the list twice. take() lowers it before it looks at the
  // work behind it, so a post that finds it raised is still to be looked at.
  void push(Doorbell& doorbell) {
    if (doorbell.rung_.exchange(true)) return;
    Doorbell* first = first_.load(std::memory_order_relaxed);
    do {
      doorbell.next_ = first;
    } while (!first_.compare_exchange_weak(first, &doorbell));
  }

  // Sequentially consistent, as the argument in engine_waker.h needs it.
  bool has_doorbells() const { return first_.load() != nullptr; }

  // The last rung comes first. The relaxed look saves a locked instruction in most rounds; one that
  // misses a doorbell is made good by has_doorbells() after unlocking.
  template <typename Visit>
  void take(Visit visit) {
    if (first_.load(std::memory_order_relaxed) == nullptr) return;
    Doorbell* doorbell = first_.exchange(nullptr);
    while (doorbell != nullptr) {
      Doorbell* const next = doorbell->next_;
      doorbell->rung_.store(false);
      visit(*doorbell);
      doorbell = next;
    }
  }

  void report_overrun() { overrun_.store(true); }
  bool has_overrun() const { return overrun_.load(); }
  bool take_overrun() {
    if (!overrun_.load(std::memory_order_relaxed)) return false;
    overrun_.store(false);
    return true;
  }

 private:
  std::atomic<Doorbell*> first_{nullptr};
  std::atomic<bool> overrun_{false};
};

}  // namespace mrc::nic
