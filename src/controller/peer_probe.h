// Probes of another host, over paths of the device's own choice or over a given one.
#pragma once

#include <string>
#include <vector>

#include "controller/session.h"

namespace mrc::controller {

struct PeerProbe {
  std::string peer;
  unsigned port = 0;  // 0: all
  double timeout_s = 1;
  std::string ev;  // a path of its own; empty: another one in each round
};

struct ProbeAnswer {
  unsigned port = 0;  // the probe left by; the answer may have come by another
  unsigned rtt_ns = 0;
};

struct ProbeRound {
  std::vector<unsigned> ports;  // one probe left by each
  std::vector<ProbeAnswer> answers;
};

// As the API takes it: at most 4.29 s.
std::uint32_t probe_timeout_ns(double seconds);
// The requests of a round. InputError when the peer or the EV are no such thing.
std::vector<mrc_ctl_ep_req> requests_of(const PeerProbe& probe, const ibv_gid& own,
                                        unsigned port_count, unsigned round);
// Sends them and waits for the answers. CtlError when the device refuses.
ProbeRound probe_peer(const Session& session, const PeerProbe& probe, unsigned round);

}  // namespace mrc::controller
