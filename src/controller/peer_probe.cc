#include "controller/peer_probe.h"

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <limits>
#include <map>

#include "controller/words.h"
#include "os/errors.h"

namespace mrc::controller {
namespace {

constexpr std::uint32_t kFirstEntropy = 0xC350;  // in the range of ephemeral source ports
constexpr double kMaxTimeoutNs = std::numeric_limits<std::uint32_t>::max();

mrc_ctl_ev path_of(unsigned port, unsigned round) {
  mrc_ctl_ev ev{};
  const std::uint32_t entropy = kFirstEntropy + round % 1'000 * 16 + port;
  ev.val[2] = static_cast<std::uint8_t>(entropy >> 8);
  ev.val[3] = static_cast<std::uint8_t>(entropy & 0xFF);
  ev.port = static_cast<std::uint8_t>(port);
  return ev;
}

// PORT:ADDRESS has a second colon, PORT:HEX has none.
bool is_address(const std::string& ev) {
  return ev.find(':', ev.find(':') + 1) != std::string::npos;
}

}  // namespace

std::uint32_t probe_timeout_ns(double seconds) {
  return static_cast<std::uint32_t>(std::clamp(seconds * 1e9, 0.0, kMaxTimeoutNs));
}

std::vector<mrc_ctl_ep_req> requests_of(const PeerProbe& probe, const ibv_gid& own,
                                        unsigned port_count, unsigned round) {
  mrc_ctl_ep_req request{};
  request.sgid = own;
  request.dgid = parse_gid(probe.peer);
  request.ev_fmt_mode = MRC_CTL_EV_FMT_MODE_STEV;
  std::vector<mrc_ctl_ep_req> requests;
  if (!probe.ev.empty()) {
    request.req_ev = parse_ev(probe.ev);
    if (is_address(probe.ev)) request.ev_fmt_mode = MRC_CTL_EV_FMT_MODE_SRV6;
    requests.push_back(request);
    return requests;
  }
  for (unsigned port = 1; port <= port_count; ++port) {
    if (probe.port != 0 && probe.port != port) continue;
    request.req_ev = path_of(port, round);
    request.req_id = static_cast<std::uint16_t>(port);
    requests.push_back(request);
  }
  return requests;
}

ProbeRound probe_peer(const Session& session, const PeerProbe& probe, unsigned round) {
  std::vector<mrc_ctl_ep_req> requests =
      requests_of(probe, session.gid(), session.port_count(), round);
  std::vector<mrc_ctl_ep_rsp> answers(requests.size());
  int count = 0;
  const int error = os::errno_of(
      mrc_ctl_ep_batch_send_wait(session.context(), 0, MRC_CTL_EP_OP_EV_PROBE, requests.data(),
                                 static_cast<int>(requests.size()),
                                 probe_timeout_ns(probe.timeout_s), answers.data(), &count));
  if (error != ETIMEDOUT) session.check(error, "probe of " + probe.peer);
  ProbeRound result;
  std::map<std::uint16_t, unsigned> port_of;  // by request
  for (const mrc_ctl_ep_req& request : requests) {
    result.ports.push_back(request.req_ev.port);
    port_of[request.req_id] = request.req_ev.port;
  }
  for (int i = 0; i < count; ++i) {
    const mrc_ctl_ep_rsp& answer = answers[static_cast<std::size_t>(i)];
    result.answers.push_back({.port = port_of[answer.req_id], .rtt_ns = answer.rtt});
  }
  return result;
}

}  // namespace mrc::controller
