// Probes of a peer, and the stream of EV events.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "ctl/session.h"
#include "exit_code.h"

namespace mrc::tool::ctl {

struct ProbeOptions {
  std::string peer;
  unsigned port = 0;  // 0: all
  unsigned count = 4;
  double interval_s = 0.2;
  double timeout_s = 1;
  std::string ev;  // a path of its own; empty: one per probe
  bool json = false;
};
// As the API takes it: at most 4.29 s.
std::uint32_t probe_timeout_ns(double seconds);
// kTimeout when an answer is missing.
ExitCode probe(const Session& session, const ProbeOptions& options);

struct WatchOptions {
  unsigned count = 0;  // 0: no end
  double seconds = 0;  // 0: no end
  bool json = false;   // one object per line
};
// ", 3 events before it were lost", or nothing.
std::string lost_events_text(const mrc_ctl_ev_event& event);
ExitCode watch(const Session& session, const WatchOptions& options);

}  // namespace mrc::tool::ctl
