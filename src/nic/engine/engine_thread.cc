// The engine thread: when it works, when it sleeps, and what wakes it. See engine.h for the rules.
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/prctl.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <new>
#include <system_error>

#include "nic/engine/engine.h"

namespace mrc::nic {
namespace {

constexpr DurationNs kPolledRecentlyNs = 50 * kMicrosecondNs;
constexpr DurationNs kNapNs = 100 * kMicrosecondNs;
constexpr DurationNs kAloneIdleNs = 100 * kMicrosecondNs;
constexpr DurationNs kAlonePolledNs = kMillisecondNs;
constexpr DurationNs kHousekeepingNs = kSecondNs;
constexpr DurationNs kPolledHousekeepingNs = 5 * kMillisecondNs;

enum Source : std::uint32_t { kWake, kTimer, kBackend, kNode };

int watch(int epoll, int descriptor, Source source) {
  epoll_event event{};
  event.events = EPOLLIN;
  event.data.u32 = source;
  return epoll_ctl(epoll, EPOLL_CTL_ADD, descriptor, &event) == 0 ? 0 : errno;
}

void close_descriptor(int& descriptor) {
  if (descriptor >= 0) close(descriptor);
  descriptor = -1;
}

}  // namespace

// --- Start and end ---

int Engine::open_descriptors() {
  epoll_ = epoll_create1(EPOLL_CLOEXEC);
  wake_ = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
  timer_ = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);
  if (epoll_ < 0 || wake_ < 0 || timer_ < 0) return errno;
  int error = watch(epoll_, wake_, kWake);
  if (error == 0) error = watch(epoll_, timer_, kTimer);
  if (error == 0) error = watch(epoll_, backend_->wait_descriptor(), kBackend);
  if (error == 0 && is_lead()) error = watch(epoll_, group_.node->change_descriptor(), kNode);
  return error;
}

// The thread gets no signals: they belong to the program's threads.
int Engine::start(const std::string& name) {
  const int opened = open_descriptors();
  if (opened != 0) return opened;
  if (is_lead()) read_node_state();
  sigset_t all;
  sigset_t before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  int error = 0;
  try {
    thread_ = std::thread([this] { run(); });
    pthread_setname_np(thread_.native_handle(), name.substr(0, 15).c_str());
  } catch (const std::system_error& refused) {
    error = refused.code().value();
  }
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  return error;
}

void Engine::stop() {
  if (thread_.joinable()) {
    stopping_.store(true);
    eventfd_write(wake_, 1);
    thread_.join();
  }
}

void Engine::close_descriptors() {
  close_descriptor(timer_);
  close_descriptor(wake_);
  close_descriptor(epoll_);
}

// --- The loop ---

void Engine::run() {
  prctl(PR_SET_TIMERSLACK, 1);  // naps and deadlines are meant as they are
  while (!stopping_.load()) {
    if (alone_wanted_.load()) work_alone();
    const TimeNs now = clock();
    if (polled_recently(now)) {
      if (now - housekept_at_ >= kPolledHousekeepingNs) housekeep(now);
      nap();
      continue;
    }
    if (node_fired_) read_node_state();
    // Another thread at work does ours as well. Waiting in line would only keep it from going on.
    if (!lock_.try_lock()) {
      nap();
      continue;
    }
    if (backend_fired_ || now - housekept_at_ >= kHousekeepingNs) {
      backend_fired_ = false;
      housekept_at_ = now;
      backend_->on_wake();
      apply_ports();
    }
    work_round();
    note_load();
    unlock();
    sleep();
  }
}

void Engine::work_round() {
  now_ = clock();
  receive();
  const bool more = more_work_;
  progress();
  more_work_ = more_work_ || more;
}

// See engine.h. Waiting for packets without sleeping for a while costs a processor that a device
// with several engines has, and saves being woken for each of them; longer where a program waits in
// the same way.
void Engine::work_alone() {
  alone_.store(true);
  TimeNs busy_at = clock();
  for (TimeNs now = busy_at; !stopping_.load(); now = clock()) {
    const bool idle_long = now - busy_at >= (polled_recently(now) ? kAlonePolledNs : kAloneIdleNs);
    if (idle_long) break;
    if (now - housekept_at_ >= kPolledHousekeepingNs) housekeep(now);
    bool busy = false;
    if (lock_.try_lock()) {
      moved_ = 0;
      work_round();
      busy = moved_ > 0 || more_work_;
      unlock();
    }
    if (busy) {
      busy_at = now;
    } else {
      sched_yield();
    }
  }
  alone_wanted_.store(false);
  alone_.store(false);
  const EngineGuard guard(*this);
  progress();
}

bool Engine::polled_recently(TimeNs now) const {
  return now - polled_at_.load(std::memory_order_relaxed) < kPolledRecentlyNs;
}

// What only the descriptors tell, while a program does all the rest by polling.
void Engine::housekeep(TimeNs now) {
  housekept_at_ = now;
  read_descriptors(0);
  if (node_fired_) read_node_state();
  const EngineGuard guard(*this);
  backend_fired_ = false;
  backend_->on_wake();
  apply_ports();
}

void Engine::read_node_state() {
  node_fired_ = false;
  group_.node->acknowledge_change();
  try {
    const std::shared_ptr<const node::NodeSnapshot> snapshot = group_.node->snapshot();
    for (const auto& engine : group_.engines) {
      const EngineGuard guard(*engine);
      engine->apply_node_state(*snapshot);
    }
  } catch (const std::bad_alloc&) {
    node_fired_ = true;  // try again in the next round
  }
}

// --- Sleeping ---

void Engine::sleep() {
  const TimeNs until = std::min(wanted_at_.load(), housekept_at_ + kHousekeepingNs);
  if (until <= clock()) return;
  sleeps_until_.store(until);
  const bool called = stopping_.load() || alone_wanted_.load() || overruns_.load();
  if (!called && doorbells_.load() == nullptr && wanted_at_.load() >= until) {
    if (timer_set_to_ != until) {
      itimerspec at{};
      at.it_value.tv_sec = until / kSecondNs;
      at.it_value.tv_nsec = until % kSecondNs;
      timerfd_settime(timer_, TFD_TIMER_ABSTIME, &at, nullptr);
      timer_set_to_ = until;
    }
    read_descriptors(-1);
  }
  sleeps_until_.store(0);
}

// Ends early when the program announces that it will not poll any more.
void Engine::nap() {
  napping_.store(true);
  if (!stopping_.load() && !alone_wanted_.load()) {
    pollfd wake{.fd = wake_, .events = POLLIN, .revents = 0};
    const timespec rest{.tv_sec = 0, .tv_nsec = kNapNs};
    if (ppoll(&wake, 1, &rest, nullptr) > 0) clear_wake();
  }
  napping_.store(false);
}

void Engine::polling_ends() {
  polled_at_.store(0);
  if (napping_.exchange(false)) eventfd_write(wake_, 1);
}

void Engine::call_thread() {
  if (napping_.exchange(false)) eventfd_write(wake_, 1);
  wake();
}

void Engine::wake() {
  if (sleeps_until_.exchange(0) != 0) eventfd_write(wake_, 1);
}

void Engine::clear_wake() const {
  eventfd_t count = 0;
  eventfd_read(wake_, &count);
}

void Engine::read_descriptors(int timeout_ms) {
  std::array<epoll_event, 4> events;
  const int count = epoll_wait(epoll_, events.data(), static_cast<int>(events.size()), timeout_ms);
  for (int i = 0; i < count; ++i) {
    switch (static_cast<Source>(events[static_cast<std::size_t>(i)].data.u32)) {
      case kWake:
        clear_wake();
        break;
      case kTimer: {
        std::uint64_t expirations = 0;
        timer_set_to_ = 0;
        [[maybe_unused]] const ssize_t got = read(timer_, &expirations, sizeof expirations);
        break;
      }
      case kBackend:
        backend_fired_ = true;
        break;
      case kNode:
        node_fired_ = true;
        break;
    }
  }
}

}  // namespace mrc::nic
