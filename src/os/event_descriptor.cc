#include "os/event_descriptor.h"

#include <sys/eventfd.h>
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

}  // namespace mrc::os
