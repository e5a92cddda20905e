#include "nic/engine/wake_descriptors.h"

#include <poll.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include <array>
#include <cerrno>

namespace mrc::nic {

int WakeDescriptors::open() {
  epoll_ = os::Descriptor(epoll_create1(EPOLL_CLOEXEC));
  if (!epoll_.valid()) return errno;
  signal_ = os::Descriptor(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  if (!signal_.valid()) return errno;
  timer_ = os::Descriptor(timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK));
  if (!timer_.valid()) return errno;
  const int error = watch(signal_.get(), WakeSource::kSignal);
  return error != 0 ? error : watch(timer_.get(), WakeSource::kTimer);
}

int WakeDescriptors::watch(int descriptor, WakeSource source) const {
  epoll_event event{};
  event.events = EPOLLIN;
  event.data.u32 = static_cast<std::uint32_t>(source);
  return epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, descriptor, &event) == 0 ? 0 : errno;
}

void WakeDescriptors::signal() const { eventfd_write(signal_.get(), 1); }

// A timer that already stands at `until` is left alone: an idle engine sleeps again and again until
// the same moment, and each setting is a system call.
void WakeDescriptors::wait(TimeNs until) {
  if (timer_set_to_ != until) {
    itimerspec at{};
    at.it_value.tv_sec = until / kSecondNs;
    at.it_value.tv_nsec = until % kSecondNs;
    timerfd_settime(timer_.get(), TFD_TIMER_ABSTIME, &at, nullptr);
    timer_set_to_ = until;
  }
  collect(-1);
}

void WakeDescriptors::wait_for_signal(DurationNs rest_ns) const {
  pollfd signal{.fd = signal_.get(), .events = POLLIN, .revents = 0};
  const timespec rest{.tv_sec = rest_ns / kSecondNs, .tv_nsec = rest_ns % kSecondNs};
  if (ppoll(&signal, 1, &rest, nullptr) > 0) clear_signal();
}

bool WakeDescriptors::take_fired(WakeSource source) {
  const bool fired = (fired_ & bit(source)) != 0;
  fired_ &= ~bit(source);
  return fired;
}

void WakeDescriptors::collect(int timeout_ms) {
  std::array<epoll_event, 4> events;
  const int count =
      epoll_wait(epoll_.get(), events.data(), static_cast<int>(events.size()), timeout_ms);
  for (int i = 0; i < count; ++i) {
    const auto source = static_cast<WakeSource>(events[static_cast<std::size_t>(i)].data.u32);
    if (source == WakeSource::kSignal) {
      clear_signal();
    } else if (source == WakeSource::kTimer) {
      clear_timer();
    } else {
      mark_fired(source);
    }
  }
}

void WakeDescriptors::clear_signal() const {
  eventfd_t count = 0;
  eventfd_read(signal_.get(), &count);
}

void WakeDescriptors::clear_timer() {
  std::uint64_t expirations = 0;
  timer_set_to_ = 0;
  [[maybe_unused]] const ssize_t got = read(timer_.get(), &expirations, sizeof expirations);
}

}  // namespace mrc::nic
