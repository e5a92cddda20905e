// A queue of EV events with a channel to wait at.
#pragma once

#include "controller/session.h"

namespace mrc::controller {

class EventQueue {
 public:
  explicit EventQueue(const Session& session);
  ~EventQueue();
  EventQueue(const EventQueue&) = delete;
  EventQueue& operator=(const EventQueue&) = delete;

  bool next(mrc_ctl_ev_event& event) { return mrc_ctl_poll_ev_event(cq_, 1, &event) == 1; }
  // After arm() this becomes readable when there is an event; acknowledge() then.
  int descriptor() const { return fd_; }
  void arm() { mrc_req_notify_cq(cq_, 0); }
  void acknowledge();
  // Until there may be an event, at most `timeout_ms`; -1: for ever.
  void wait(int timeout_ms);

 private:
  mrc_comp_channel* channel_ = nullptr;
  mrc_cq* cq_ = nullptr;
  int fd_ = -1;
};

}  // namespace mrc::controller
