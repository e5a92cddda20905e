#include "nic/async_events.h"

#include <algorithm>
#include <cerrno>
#include <new>

#include "base/assert.h"

namespace mrc::nic {

const void* AsyncHub::object_of(const AsyncEvent& event) {
  if (event.qp != nullptr) return event.qp;
  return event.cq;
}

std::unique_ptr<AsyncEvents> AsyncHub::subscribe() {
  os::EventDescriptor descriptor;
  if (descriptor.open() != 0) return nullptr;
  try {
    auto stream = std::make_unique<AsyncStream>(shared_from_this(), std::move(descriptor));
    const std::lock_guard lock(mutex_);
    streams_.push_back(stream.get());
    return stream;
  } catch (const std::bad_alloc&) {
    return nullptr;
  }
}

void AsyncHub::publish(const AsyncEvent& event) {
  const std::lock_guard lock(mutex_);
  for (AsyncStream* stream : streams_) {
    if (stream->events_.push_back(event)) stream->descriptor_.add_one();
  }
}

void AsyncHub::retire(const void* object) {
  std::unique_lock lock(mutex_);
  for (AsyncStream* stream : streams_) {
    for (std::size_t n = stream->events_.size(); n > 0; --n) {
      const AsyncEvent event = stream->events_.front();
      stream->events_.pop_front();
      if (object_of(event) != object) {
        stream->events_.push_back(event);
      } else {
        stream->descriptor_.withdraw_one();
      }
    }
  }
  acknowledged_.wait(lock, [&] { return held_.count(object) == 0; });
}

AsyncStream::AsyncStream(std::shared_ptr<AsyncHub> hub, os::EventDescriptor descriptor)
    : hub_(std::move(hub)), descriptor_(std::move(descriptor)), events_(kCapacity) {}

AsyncStream::~AsyncStream() {
  if (fork_guard_.in_child()) return;
  const std::lock_guard lock(hub_->mutex_);
  std::erase(hub_->streams_, this);
}

// A unit without an event was taken while its object was going.
int AsyncStream::wait(AsyncEvent& out) {
  if (fork_guard_.in_child()) return EIO;
  for (;;) {
    const int taken = descriptor_.take_one();
    if (taken != 0) return taken;
    const std::lock_guard lock(hub_->mutex_);
    if (events_.empty()) continue;
    const AsyncEvent event = events_.front();
    const void* object = AsyncHub::object_of(event);
    try {
      if (object != nullptr) ++hub_->held_[object];
    } catch (const std::bad_alloc&) {
      descriptor_.add_one();
      return ENOMEM;
    }
    events_.pop_front();
    out = event;
    return 0;
  }
}

void AsyncStream::acknowledge(const AsyncEvent& event) {
  const void* object = AsyncHub::object_of(event);
  if (object == nullptr || fork_guard_.in_child()) return;
  const std::lock_guard lock(hub_->mutex_);
  const auto held = hub_->held_.find(object);
  if (held == hub_->held_.end()) return;
  if (--held->second == 0) hub_->held_.erase(held);
  hub_->acknowledged_.notify_all();
}

}  // namespace mrc::nic
