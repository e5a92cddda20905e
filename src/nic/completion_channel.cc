#include "nic/completion_channel.h"

#include <cerrno>
#include <new>

namespace mrc::nic {

int CompletionChannel::create(std::shared_ptr<CompletionChannel>& out) {
  os::EventDescriptor descriptor;
  const int opened = descriptor.open();
  if (opened != 0) return opened;
  try {
    out = std::make_shared<CompletionChannelImpl>(std::move(descriptor));
  } catch (const std::bad_alloc&) {
    return ENOMEM;
  }
  return 0;
}

// A unit without an event was taken while its completion queue was going.
int CompletionChannelImpl::wait(void*& cq_cookie) {
  if (fork_guard_.in_child()) return EIO;
  for (;;) {
    const int taken = descriptor_.take_one();
    if (taken != 0) return taken;
    const std::lock_guard lock(mutex_);
    if (first_ == nullptr) continue;
    ChannelSeat& seat = *first_;
    remove(seat);
    ++seat.taken;
    if (--seat.waiting > 0) append(seat);
    cq_cookie = seat.cookie;
    return 0;
  }
}

unsigned CompletionChannelImpl::users() const {
  const std::lock_guard lock(mutex_);
  return users_;
}

void CompletionChannelImpl::attach() {
  const std::lock_guard lock(mutex_);
  ++users_;
}

void CompletionChannelImpl::detach(ChannelSeat& seat) {
  std::unique_lock lock(mutex_);
  if (seat.in_line) remove(seat);
  // The descriptor must not stay readable for events that are no more: who is told so and then
  // waits would wait for ever.
  for (; seat.waiting > 0; --seat.waiting)
    descriptor_.withdraw_one();
  acknowledged_.wait(lock, [&] { return seat.acknowledged >= seat.taken; });
  --users_;
}

void CompletionChannelImpl::post(ChannelSeat& seat) {
  const std::lock_guard lock(mutex_);
  ++seat.waiting;
  if (!seat.in_line) append(seat);
  descriptor_.add_one();
}

void CompletionChannelImpl::acknowledge(ChannelSeat& seat, unsigned events) {
  const std::lock_guard lock(mutex_);
  seat.acknowledged += events;
  acknowledged_.notify_all();
}

void CompletionChannelImpl::wait_acknowledged(ChannelSeat& seat) {
  std::unique_lock lock(mutex_);
  acknowledged_.wait(lock, [&] { return seat.acknowledged >= seat.taken; });
}

void CompletionChannelImpl::append(ChannelSeat& seat) {
  seat.next = nullptr;
  seat.in_line = true;
  (last_ == nullptr ? first_ : last_->next) = &seat;
  last_ = &seat;
}

void CompletionChannelImpl::remove(ChannelSeat& seat) {
  ChannelSeat* before = nullptr;
  for (ChannelSeat* at = first_; at != &seat; at = at->next)
    before = at;
  (before == nullptr ? first_ : before->next) = seat.next;
  if (last_ == &seat) last_ = before;
  seat.in_line = false;
}

}  // namespace mrc::nic
