// The endpoint's event stream: a ring that drops and counts when nobody reads it.
#pragma once

#include <cstdint>

#include "base/ring.h"
#include "core/event.h"

namespace mrc::core {

class EventLog {
 public:
  EventLog(unsigned capacity, std::uint64_t& dropped) : events_(capacity), dropped_(&dropped) {}

  // The time stamped on events until the next call.
  void set_time(TimeNs now) { now_ = now; }
  TimeNs time() const { return now_; }

  void push(Event event) {
    event.time = now_;
    if (!events_.push_back(event)) ++*dropped_;
  }
  bool pop(Event& out) {
    if (events_.empty()) return false;
    out = events_.front();
    events_.pop_front();
    return true;
  }

 private:
  Ring<Event> events_;
  std::uint64_t* dropped_;
  TimeNs now_ = 0;
};

}  // namespace mrc::core
