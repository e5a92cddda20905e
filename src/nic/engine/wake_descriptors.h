// The descriptors an engine thread waits on: a signal from other threads, a timer, and what its
// owner adds (the back end, the node's state).
//
// signal() may be called by any thread; all the rest belongs to the engine thread.
#pragma once

#include <cstdint>

#include "base/types.h"
#include "os/descriptor.h"

namespace mrc::nic {

enum class WakeSource : std::uint32_t { kSignal, kTimer, kBackend, kNode };

class WakeDescriptors {
 public:
  // 0 or an errno, as watch().
  int open();
  // Level triggered. That `source` fired is remembered until take_fired().
  int watch(int descriptor, WakeSource source) const;

  // Ends the wait of the engine thread, or its next one.
  void signal() const;

  // Until one of them fires, at the latest at `until`.
  void wait(TimeNs until);
  // Until a signal, at the latest for `rest_ns`. The others are left as they are.
  void wait_for_signal(DurationNs rest_ns) const;
  // Looks which have fired, without waiting.
  void look() { collect(0); }

  bool take_fired(WakeSource source);
  // As if its descriptor had fired.
  void mark_fired(WakeSource source) { fired_ |= bit(source); }

 private:
  static constexpr unsigned bit(WakeSource source) { return 1U << static_cast<unsigned>(source); }
  void collect(int timeout_ms);
  void clear_signal() const;
  void clear_timer();

  os::Descriptor epoll_;
  os::Descriptor signal_;
  os::Descriptor timer_;
  TimeNs timer_set_to_ = 0;  // 0: not set
  unsigned fired_ = 0;
};

}  // namespace mrc::nic
