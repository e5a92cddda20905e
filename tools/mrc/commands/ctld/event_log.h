// EV events in words.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <utility>

#include "controller/session.h"

namespace mrc::tool::ctld {

// "port 2, t0:0 t1:3 t0:1 host port 1" for an SRv6 EV, "port 2" for others.
std::string path_words(const mrc_ctl_ev& ev, bool srv6);

class EventLog {
 public:
  explicit EventLog(const controller::Session& session) : session_(&session) {}

  // One line, without time: profile, EV, path, state, losses since its last event and in all.
  std::string line(const mrc_ctl_ev_event& event);
  std::uint64_t events() const { return events_; }

 private:
  const controller::Session* session_;
  std::uint64_t events_ = 0;
};

}  // namespace mrc::tool::ctld
