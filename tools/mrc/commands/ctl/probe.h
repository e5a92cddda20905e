// Probes of a peer, and the stream of EV events.
#pragma once

#include "controller/peer_probe.h"
#include "exit_code.h"

namespace mrc::tool::ctl {

struct ProbeOptions {
  controller::PeerProbe probe;
  unsigned count = 4;
  double interval_s = 0.2;
  bool json = false;
};
// kTimeout when an answer is missing.
ExitCode probe(const controller::Session& session, const ProbeOptions& options);

struct WatchOptions {
  unsigned count = 0;  // 0: no end
  double seconds = 0;  // 0: no end
  bool json = false;   // one object per line
};
ExitCode watch(const controller::Session& session, const WatchOptions& options);

}  // namespace mrc::tool::ctl
