#include "os/event_descriptor.h"

#include <sys/eventfd.h>
#include <sys/uio.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>

namespace mrc::os {

EventDescriptor::~EventDescriptor() {
  if (fd_ >= 0) close(fd_);
}

int EventDescriptor::open() {
  fd_ = eventfd(0, EFD_CLOEXEC | EFD_SEMAPHORE);
  return fd_ >= 0 ? 0 : errno;
}

void EventDescriptor::add_one() const {
  // Fails only when 2^64 units wait, and then the descriptor is readable anyway.
  [[maybe_unused]] const int ignored = eventfd_write(fd_, 1);
}

int EventDescriptor::take_one() const {
  eventfd_t unit = 0;
  return eventfd_read(fd_, &unit) == 0 ? 0 : errno;
}

// A poll() before the read would not do: another thread may take the unit in between.
bool EventDescriptor::withdraw_one() const {
  eventfd_t unit = 0;
  const iovec where{.iov_base = &unit, .iov_len = sizeof(unit)};
  return preadv2(fd_, &where, 1, -1, RWF_NOWAIT) == static_cast<ssize_t>(sizeof(unit));
}

}  // namespace mrc::os
