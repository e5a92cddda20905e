#include "api/async_source.h"

#include <fcntl.h>
#include <poll.h>

#include <cerrno>

namespace mrc::api {

int AsyncSource::open(nic::Device& device, std::unique_ptr<AsyncSource>& out) {
  auto source = std::make_unique<AsyncSource>();
  source->events_ = device.subscribe();
  if (source->events_ == nullptr) return ENOMEM;
  // Blocking is done here, where foreign events can be passed over.
  const int fd = source->events_->descriptor();
  const int flags = fcntl(fd, F_GETFL);
  if (flags < 0 || fcntl(fd, F_SETFL, flags | O_NONBLOCK) < 0) return errno;
  out = std::move(source);
  return 0;
}

void AsyncSource::add(const void* object, void* owner) {
  const std::lock_guard lock(mutex_);
  owners_.emplace(object, owner);
}

void AsyncSource::remove(const void* object) {
  const std::lock_guard lock(mutex_);
  owners_.erase(object);
}

bool AsyncSource::find_owner(OwnedEvent& event) {
  const void* object = event.event.qp;
  if (object == nullptr) object = event.event.cq;
  if (object == nullptr) return true;
  const std::lock_guard lock(mutex_);
  const auto found = owners_.find(object);
  if (found == owners_.end()) return false;
  event.owner = found->second;
  return true;
}

int AsyncSource::next(bool block, OwnedEvent& out) {
  for (;;) {
    OwnedEvent taken;
    const int error = events_->wait(taken.event);
    if (error == 0) {
      if (find_owner(taken)) {
        out = taken;
        return 0;
      }
      events_->acknowledge(taken.event);
      continue;
    }
    if (error != EAGAIN || !block) return error;
    pollfd wanted{.fd = descriptor(), .events = POLLIN, .revents = 0};
    if (poll(&wanted, 1, -1) < 0) return errno;
  }
}

}  // namespace mrc::api
