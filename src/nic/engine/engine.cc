// The calls of program threads, and the queue pairs they make.
#include "nic/engine/engine.h"

#include <sched.h>
#include <sys/resource.h>

#include <new>
#include <utility>

#include "nic/engine/crowding.h"
#include "nic/queue_pair.h"
#include "os/clock.h"

namespace mrc::nic {
namespace {

constexpr unsigned kLastTries = 1'000;

long times_processor_was_lost() {
  rusage usage{};
  return ::getrusage(RUSAGE_THREAD, &usage) == 0 ? usage.ru_nivcsw : 0;
}

thread_local Crowding crowding;

}  // namespace

Engine::Engine(EngineParts parts)
    : group_(*parts.group), index_(parts.index), pump_(std::move(parts), waker_.inbox()) {}

Engine::~Engine() { stop(); }

TimeNs Engine::clock() { return os::monotonic_now(); }

// --- Program threads ---

void Engine::ring(QueuePairImpl& qp) {
  if (!waker_.ring(qp)) return;
  const EngineGuard guard(*this, std::adopt_lock);
  pump_.progress();
}

void Engine::ring_later(QueuePairImpl& qp) { waker_.ring_later(qp); }

void Engine::poll() {
  using enum EnginePump::Driver;
  const EngineWaker::Poll poll = waker_.begin_poll();
  if (!poll.has_lock) return;
  bool moved = false;
  {
    const EngineGuard guard(*this, std::adopt_lock);
    moved = pump_.round(poll.without_pause ? kEagerPoller : kPoller, poll.now);
    note_load();
  }
  const bool crowded = !moved && crowding.notice(poll.now, times_processor_was_lost);
  if (crowded && group_.engines.size() == 1) {
    waker_.wait_for_packet(pump_.backend().wait_descriptor(), poll.now);
  } else {
    waker_.end_poll(crowding.takes_turns());
  }
}

void Engine::on_exit() {
  for (unsigned tries = 0; tries < kLastTries; ++tries) {
    if (waker_.try_lock()) {
      const EngineGuard guard(*this, std::adopt_lock);
      pump_.send_owed_answers();
      return;
    }
    sched_yield();
  }
}

// Only where a device has several engines: it then has processors for them.
void Engine::note_load() {
  if (group_.engines.size() > 1 && pump_.much_to_do()) waker_.want_take_over();
}

// --- Under the lock ---

void Engine::add_qp(QueuePairImpl& qp) {
  pump_.qps().add(qp);
  qp_count_.fetch_add(1, std::memory_order_relaxed);
}

// Its doorbell must not stay on the list.
void Engine::remove_qp(QueuePairImpl& qp) {
  pump_.take_posted_work();
  pump_.qps().remove(qp);
  qp_count_.fetch_sub(1, std::memory_order_relaxed);
}

unsigned Engine::apply_node_state(const node::NodeSnapshot& snapshot) {
  const unsigned stranded = pump_.apply_node_state(snapshot);
  active_ports_.store(pump_.endpoint().ports_up().bits());
  return stranded;
}

// Without memory the links are as they were until the next look.
void Engine::look_after_links() {
  try {
    pump_.backend().on_wake();
    for (std::string& line : pump_.backend().take_notices())
      notices_.push_back(std::move(line));
  } catch (const std::bad_alloc&) {
    return;
  }
  pump_.apply_ports();
  active_ports_.store(pump_.endpoint().ports_up().bits());
}

}  // namespace mrc::nic
