#include "nic/engine/engine_waker.h"

#include <poll.h>
#include <sched.h>

#include <algorithm>

#include "os/clock.h"

namespace mrc::nic {

// --- Program threads ---

// Who polls in vain while another thread has the lock lets it have the processor too: the holder
// may be waiting for just this one. While the engine thread has taken over, the time of the poll is
// stored once in 50 us only, so that the line it is in stays in both caches.
EngineWaker::Poll EngineWaker::begin_poll() {
  if (taken_over_.load()) {
    const TimeNs now = os::monotonic_now();
    if (!polled_recently(now)) polled_at_.store(now, std::memory_order_relaxed);
    return {};
  }
  if (!lock_.try_lock()) {
    sched_yield();
    return {};
  }
  const TimeNs now = os::monotonic_now();
  const bool without_pause = polled_recently(now);
  polled_at_.store(now, std::memory_order_relaxed);
  return {.has_lock = true, .without_pause = without_pause, .now = now};
}

void EngineWaker::end_poll(bool takes_turns) {
  takes_turns_.store(takes_turns, std::memory_order_relaxed);
  polled_at_.store(os::monotonic_now(), std::memory_order_relaxed);
}

void EngineWaker::wait_for_packet(int backend, TimeNs now) {
  const DurationNs rest = std::min(wanted_at_.load() - now, kPollWaitNs);
  polled_at_.store(now + std::max<DurationNs>(rest, 0), std::memory_order_relaxed);
  if (rest > 0) {
    pollfd packets{.fd = backend, .events = POLLIN, .revents = 0};
    const timespec limit{.tv_sec = 0, .tv_nsec = rest};
    ::ppoll(&packets, 1, &limit, nullptr);
  }
  end_poll(false);
}

void EngineWaker::polling_ends() {
  polled_at_.store(0);
  end_nap();
}

void EngineWaker::report_overrun() {
  inbox_.report_overrun();
  call_thread();
}

void EngineWaker::want_take_over() {
  if (!take_over_wanted_.exchange(true)) call_thread();
}

// The signal is for whichever kind of wait the thread is in or about to begin.
void EngineWaker::stop() {
  stopping_.store(true);
  descriptors_.signal();
}

void EngineWaker::call_thread() {
  end_nap();
  wake_sleeper();
}

void EngineWaker::end_nap() {
  if (napping_.exchange(false)) descriptors_.signal();
}

// The exchange makes one system call of many threads that wake the same sleeper.
void EngineWaker::wake_sleeper() {
  if (sleeps_until_.exchange(0) != 0) descriptors_.signal();
}

// --- The engine thread ---

void EngineWaker::give_back() {
  take_over_wanted_.store(false);
  taken_over_.store(false);
}

void EngineWaker::nap() {
  be_polite(nap_ns_ >= kNapNs);
  napping_.store(true);
  if (!stopping_.load() && !take_over_wanted_.load()) descriptors_.wait_for_signal(nap_ns_);
  napping_.store(false);
  const bool turns = takes_turns_.load(std::memory_order_relaxed);
  nap_ns_ = turns ? kTurnNs : std::min(2 * nap_ns_, kNapNs);
}

// A thread that somebody gave another policy (chrt) keeps it. Where the kernel refuses, naps
// disturb as they would without this.
void EngineWaker::be_polite(bool polite) {
  if (polite == polite_) return;
  polite_ = polite;
  if (::sched_getscheduler(0) != (polite ? SCHED_OTHER : SCHED_BATCH)) return;
  const sched_param none{};
  ::sched_setscheduler(0, polite ? SCHED_BATCH : SCHED_OTHER, &none);
}

void EngineWaker::sleep(TimeNs latest) {
  be_polite(false);
  const TimeNs until = std::min(wanted_at_.load(), latest);
  if (until <= os::monotonic_now()) return;
  sleeps_until_.store(until);
  const bool called = stopping_.load() || take_over_wanted_.load() || inbox_.has_overrun();
  if (!called && !inbox_.has_doorbells() && wanted_at_.load() >= until) descriptors_.wait(until);
  sleeps_until_.store(0);
}

}  // namespace mrc::nic
