#include "controller/event_queue.h"

#include <poll.h>

#include <cerrno>

namespace mrc::controller {

EventQueue::EventQueue(const Session& session) {
  session.check(mrc_create_comp_channel(session.context(), &channel_), "a channel for events");
  cq_ = mrc_ctl_create_ev_event_cq(session.context(), 1'024, nullptr, channel_, 0);
  if (cq_ == nullptr) {
    const int error = errno;
    mrc_destroy_comp_channel(channel_);
    session.check(error, "listening for EV events");
  }
  mrc_get_comp_channel_fd(channel_, &fd_);
}

EventQueue::~EventQueue() {
  mrc_destroy_cq(cq_);
  mrc_destroy_comp_channel(channel_);
}

void EventQueue::acknowledge() {
  mrc_cq* cq = nullptr;
  void* cookie = nullptr;
  if (mrc_get_cq_event(channel_, &cq, &cookie) == 0) mrc_ack_cq_events(cq, 1);
}

void EventQueue::wait(int timeout_ms) {
  arm();
  pollfd entry{.fd = fd_, .events = POLLIN, .revents = 0};
  if (poll(&entry, 1, timeout_ms) > 0) acknowledge();
}

}  // namespace mrc::controller
