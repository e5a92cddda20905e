#include "node/node_state_watch.h"

#include <sys/epoll.h>
#include <sys/inotify.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdint>
#include <cstring>

namespace mrc::node {
namespace {

constexpr long kPollPeriodNs = 250'000'000;

int add(int epoll, int fd) {
  epoll_event event{};
  event.events = EPOLLIN;
  return epoll_ctl(epoll, EPOLL_CTL_ADD, fd, &event) == 0 ? 0 : errno;
}

}  // namespace

int DirectoryWatch::open(const std::string& directory) {
  directory_ = directory;
  epoll_ = os::Descriptor(epoll_create1(EPOLL_CLOEXEC));
  timer_ = os::Descriptor(timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK | TFD_CLOEXEC));
  if (!epoll_.valid() || !timer_.valid()) return errno;
  if (const int error = add(epoll_.get(), timer_.get()); error != 0) return error;
  try_watching();
  return 0;
}

void DirectoryWatch::try_watching() {
  if (!notify_.valid()) {
    notify_ = os::Descriptor(inotify_init1(IN_NONBLOCK | IN_CLOEXEC));
    if (notify_.valid() && add(epoll_.get(), notify_.get()) != 0) notify_.close();
  }
  if (notify_.valid()) {
    watch_ =
        inotify_add_watch(notify_.get(), directory_.c_str(),
                          IN_MOVED_TO | IN_DELETE | IN_DELETE_SELF | IN_MOVE_SELF | IN_ONLYDIR);
  }
  set_timer(watch_ < 0);
}

void DirectoryWatch::set_timer(bool on) {
  if (on == polling_) return;
  itimerspec spec{};
  if (on) spec.it_interval.tv_nsec = spec.it_value.tv_nsec = kPollPeriodNs;
  if (timerfd_settime(timer_.get(), 0, &spec, nullptr) == 0) polling_ = on;
}

void DirectoryWatch::drain_notifications() {
  alignas(inotify_event) std::array<char, 4'096> buffer;
  ssize_t length = 0;
  while ((length = read(notify_.get(), buffer.data(), buffer.size())) > 0) {
    for (std::size_t at = 0; at + sizeof(inotify_event) <= static_cast<std::size_t>(length);) {
      inotify_event event{};
      std::memcpy(&event, buffer.data() + at, sizeof event);
      at += sizeof event + event.len;
      if (event.wd != watch_) continue;
      // The directory was removed or moved away: another may come under its name.
      if ((event.mask & IN_MOVE_SELF) != 0) inotify_rm_watch(notify_.get(), watch_);
      if ((event.mask & (IN_IGNORED | IN_MOVE_SELF)) != 0) watch_ = -1;
    }
  }
}

void DirectoryWatch::acknowledge() {
  std::uint64_t ticks = 0;
  if (read(timer_.get(), &ticks, sizeof ticks) < 0 && errno != EAGAIN) return;
  if (notify_.valid()) drain_notifications();
  if (watch_ < 0) try_watching();
}

}  // namespace mrc::node
