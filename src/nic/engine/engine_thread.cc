// The engine thread: when it works and when it does not. engine_waker.h has the rules.
#include <pthread.h>
#include <sched.h>
#include <sys/prctl.h>

#include <algorithm>
#include <array>
#include <csignal>
#include <memory>
#include <new>
#include <system_error>
#include <utility>

#include "nic/engine/engine.h"
#include "nic/telemetry_publisher.h"
#include "os/notice.h"

namespace mrc::nic {
namespace {

using enum EnginePump::Driver;

// How long the thread goes round in vain before it gives the engine back; longer where a program
// waits in the same way.
constexpr DurationNs kTakenOverIdleNs = 100 * kMicrosecondNs;
constexpr DurationNs kTakenOverPolledNs = kMillisecondNs;
constexpr DurationNs kHousekeepingNs = kSecondNs;
constexpr DurationNs kPolledHousekeepingNs = 5 * kMillisecondNs;
constexpr std::array kOwnSignals{SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP, SIGABRT, SIGSYS};

}  // namespace

// --- Start and end ---

int Engine::watch_descriptors() {
  const int opened = waker_.open();
  if (opened != 0) return opened;
  const WakeDescriptors& all = waker_.descriptors();
  const int error = all.watch(pump_.backend().wait_descriptor(), WakeSource::kBackend);
  if (error != 0 || !is_lead()) return error;
  return all.watch(group_.node->change_descriptor(), WakeSource::kNode);
}

// The thread gets no signals: they belong to the program's threads. Those by which it says itself
// what it did wrong stay: blocked, they would end the process past the program's handlers.
int Engine::start(const std::string& name) {
  const int watched = watch_descriptors();
  if (watched != 0) return watched;
  if (is_lead()) read_node_state();
  sigset_t all;
  sigset_t before;
  sigfillset(&all);
  for (const int own : kOwnSignals)
    sigdelset(&all, own);
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
  if (!thread_.joinable()) return;
  waker_.stop();
  thread_.join();
  tell_news();
}

// --- The loop ---

void Engine::run() {
  clockid_t own = 0;
  if (::pthread_getcpuclockid(::pthread_self(), &own) == 0) cpu_clock_.store(own);
  prctl(PR_SET_TIMERSLACK, 1);  // naps and deadlines are meant as they are
  WakeDescriptors& descriptors = waker_.descriptors();
  while (!waker_.stopping()) {
    if (waker_.take_over_wanted()) run_taken_over();
    tell_news();
    const TimeNs now = clock();
    const TimeNs telemetry_at = tell_telemetry(now);
    if (waker_.program_polls(now)) {
      if (now - housekept_at_ >= kPolledHousekeepingNs) housekeep(now);
      waker_.nap();
      continue;
    }
    if (descriptors.take_fired(WakeSource::kNode)) read_node_state();
    // Another thread at work does ours as well. Waiting in line would only keep it from going on.
    if (!waker_.try_lock()) {
      waker_.nap();
      continue;
    }
    {
      const EngineGuard guard(*this, std::adopt_lock);
      if (descriptors.take_fired(WakeSource::kBackend) || now - housekept_at_ >= kHousekeepingNs) {
        housekept_at_ = now;
        look_after_links();
      }
      if (pump_.round(kThread, clock())) waker_.end_naps();
      note_load();
    }
    waker_.sleep(std::min(housekept_at_ + kHousekeepingNs, telemetry_at));
  }
}

// Waiting for packets without sleeping costs a processor that a device with several engines has,
// and saves being woken for each of them.
void Engine::run_taken_over() {
  waker_.take_over();
  TimeNs busy_at = clock();
  for (TimeNs now = busy_at; !waker_.stopping(); now = clock()) {
    const bool polled = waker_.polled_recently(now);
    if (now - busy_at >= (polled ? kTakenOverPolledNs : kTakenOverIdleNs)) break;
    if (now - housekept_at_ >= kPolledHousekeepingNs) housekeep(now);
    bool busy = false;
    tell_news();
    tell_telemetry(now);
    if (waker_.try_lock()) {
      const EngineGuard guard(*this, std::adopt_lock);
      busy = pump_.round(kThread, clock());
    }
    if (busy) {
      busy_at = now;
    } else {
      sched_yield();
    }
  }
  waker_.give_back();
  const EngineGuard guard(*this);
  pump_.progress();
}

// What only the descriptors tell, while a program does all the rest by polling.
void Engine::housekeep(TimeNs now) {
  WakeDescriptors& descriptors = waker_.descriptors();
  housekept_at_ = now;
  descriptors.look();
  if (descriptors.take_fired(WakeSource::kNode)) read_node_state();
  const EngineGuard guard(*this);
  descriptors.take_fired(WakeSource::kBackend);
  look_after_links();
}

// When it is due again.
TimeNs Engine::tell_telemetry(TimeNs now) {
  if (!is_lead() || !group_.telemetry) return kNever;
  TelemetryPublisher& telemetry = *group_.telemetry;
  if (now < telemetry.due_at()) return telemetry.due_at();
  try {
    telemetry.publish(group_, now);
  } catch (const std::bad_alloc&) {
    return telemetry.due_at();  // until then the page stays as it was
  }
  return telemetry.due_at();
}

std::uint64_t Engine::cpu_ns() const {
  const clockid_t own = cpu_clock_.load();
  timespec used{};
  if (own == 0 || ::clock_gettime(own, &used) != 0) return 0;
  return static_cast<std::uint64_t>(used.tv_sec * kSecondNs + used.tv_nsec);
}

void Engine::read_node_state() {
  group_.node->acknowledge_change();
  try {
    const std::shared_ptr<const node::NodeSnapshot> snapshot = group_.node->snapshot();
    std::uint64_t stranded = 0;
    for (const auto& engine : group_.engines) {
      const EngineGuard guard(*engine);
      stranded += engine->apply_node_state(*snapshot);
    }
    group_.node->note_applied(snapshot->version, stranded);
    group_.node->forget_replaced_evs(*snapshot);
    if (!group_.node->is_behind()) return;
  } catch (const std::bad_alloc&) {
    // As with a file that cannot be read now.
  }
  waker_.descriptors().mark_fired(WakeSource::kNode);  // try again in the next round
}

bool Engine::take_news(node::NodeEvEvent& out) {
  if (!news_waits_.load(std::memory_order_relaxed)) return false;
  const EngineGuard guard(*this);
  return pump_.take_news(out);
}

// Without the lock: it writes files, and a disk that stands still must not stop packets.
void Engine::tell_news() {
  for (const std::string& line : std::exchange(notices_, {}))
    os::notice(line);
  node::NodeEvEvent news;
  while (take_news(news)) {
    try {
      tell(*group_.node, news);
    } catch (const std::bad_alloc&) {
      continue;  // the next change of that path tells more than this one would have
    }
  }
}

}  // namespace mrc::nic
