// Operations between endpoints (QPN 2): port status, EV probes; and what the state of ports does to
// queue pairs.
#include <algorithm>
#include <memory>

#include "base/planted_bug.h"
#include "core/endpoint_impl.h"
#include "core/endpoint_request.h"

namespace mrc::core {
namespace {

// Queue pairs asked for a path that is free now.
constexpr std::uint32_t kStatusLookahead = 8;
// A question is asked 10 ms and more apart, and many queue pairs to one peer may have failed.
constexpr std::uint32_t kAskLookahead = 256;

}  // namespace

// --- Ports ---

Status Endpoint::set_port_up(TimeNs now, PortId port, bool up) {
  Impl& e = *impl_;
  const auto number = static_cast<unsigned>(port);
  if (number == 0 || number > e.config.port_count) {
    return {ErrorCode::kInvalidArgument, "no such port"};
  }
  if (!e.ports.set_ours(port, up)) return {};
  e.events.set_time(now);
  e.events.push({.kind = EventKind::kLocalPort, .port = port, .ok = up});
  for (auto& qp : e.qps) {
    if (qp && qp->peer != kNoSlot) {
      e.apply_ports(*qp);
      e.after_event(*qp);
    }
  }
  for (std::uint32_t peer = 0; peer < e.peers.size(); ++peer) {
    if (e.peers[peer].users > 0) e.ports.announce(peer);
  }
  return {};
}

// A plane is usable when our port and the peer's port on it are. If the peer's last word leaves
// none, its word is old: it has spoken through one of them.
void Endpoint::Impl::apply_ports(Qp& qp) {
  if (!qp.paths || qp.peer == kNoSlot) return;
  PortMask usable = ports.ours() & ports.of_peer(qp.peer);
  if ((usable & qp.init.ev_profile->ports()).empty()) usable = ports.ours();
  qp.paths->set_usable_ports(usable);
  refresh_bandwidth(qp);
}

// The owner of a port may have been restarted with all ports up, which nobody announces, or
// somebody else may have called it down.
void Endpoint::Impl::note_port_alive(TimeNs now, std::uint32_t peer_slot, PortId port,
                                     const wire::Packet& packet) {
  const auto* sack = std::get_if<wire::Sack>(&packet.body);
  const bool asked = sack != nullptr && sack->probe_answer;
  const DurationNs asked_ago = asked ? stamp_age(now, sack->timestamp_ticks) : kNever;
  if (ports.hear_through(peer_slot, now, port, config.jitter_ns, asked_ago))
    report_ports_of(peer_slot);
}

// Nothing comes back on the ports that the peer calls up. What it said may be as old as it is
// wrong, so that all of ours are tried.
void Endpoint::Impl::doubt_ports(const Qp& qp) {
  if (!qp.paths->reverse().hears_nothing() || MRC_BUG(kNeverDoubtsPortStatus)) return;
  if (ports.disregard(qp.peer)) report_ports_of(qp.peer);
}

void Endpoint::Impl::report_ports_of(std::uint32_t peer_slot) {
  events.push({.kind = EventKind::kRemotePorts,
               .ports = ports.of_peer(peer_slot) & PortMask::first(config.port_count),
               .peer = peers[peer_slot].address});
  apply_ports_of(peer_slot);
}

void Endpoint::Impl::apply_ports_of(std::uint32_t peer_slot) {
  for (std::uint32_t slot = peers[peer_slot].first_qp; slot != kNoSlot;) {
    Qp& qp = *qps[slot];
    slot = qp.of_peer.next;
    if (qp.state == QpState::kInit) continue;
    apply_ports(qp);
    after_event(qp);
  }
}

void Endpoint::Impl::refresh_bandwidth(Qp& qp) {
  qp.planes_changed = false;
  if (qp.peer == kNoSlot || !qp.group->controller) return;
  const unsigned planes = qp.paths->planes_in_use().count();
  if (planes > 0) qp.group->controller->set_bandwidth(config.port_bits_per_second * planes);
}

// --- Sending ---

bool Endpoint::Impl::next_endpoint_request(TimeNs now, PortMask free_ports, TxPacket& out) {
  return (ports.to_tell().any() && next_port_status(now, free_ports, out)) ||
         (ports.to_ask().any() && next_port_question(now, free_ports, out)) ||
         (endpoint_probes_unsent > 0 && next_pending_probe(now, free_ports, out));
}

// On a path of the peer's queue pairs: other paths may not exist in this network, or lead nowhere.
// The queue pairs take turns. With `any_path` each of their paths has its turn, good or bad, since
// nobody knows which of them still work, and news that a port is back must arrive.
EvIndex Endpoint::Impl::choose_status_ev(PortMask free_ports, Peer& peer, bool any_path) {
  // With all ports free nothing will bring another chance.
  const bool all = free_ports == ports.ours() && !MRC_BUG(kAnswersWaitForEver);
  for (std::uint32_t tries = all ? peer.users : std::min(peer.users, kStatusLookahead); tries > 0;
       --tries) {
    const std::uint32_t last = peer.status_qp;
    peer.status_qp = last == kNoSlot ? peer.first_qp : qps[last]->of_peer.next;
    if (peer.status_qp == kNoSlot) peer.status_qp = peer.first_qp;
    PathSet& paths = *qps[peer.status_qp]->paths;
    const EvIndex ev =
        any_path ? paths.sweep(free_ports) : paths.choose_control(free_ports, kNoPort);
    if (ev != kNoEv) return ev;
  }
  return kNoEv;
}

bool Endpoint::Impl::next_port_status(TimeNs now, PortMask free_ports, TxPacket& out) {
  const DuePeers& due = ports.to_tell();
  for (std::uint32_t peer = due.next(0); peer != kNoSlot; peer = due.next(peer + 1)) {
    out = {};
    out.ev = choose_status_ev(free_ports, peers[peer], ports.told_before(peer));
    if (out.ev == kNoEv) {
      // No queue pair has a way to it. That may change with a port or a profile.
      if (free_ports == ports.ours()) ports.note_told(peer, now);
      continue;
    }
    address(*qps[peers[peer].status_qp], out);
    if (MRC_BUG(kStatusOnAnyPath)) out.entropy = prng.next32();
    ports.note_told(peer, now);
    build_endpoint_request(
        now,
        {.op = wire::EndpointOp::kPortStatusUpdate, .id = ports.id(peer), .ports = ports.ours()},
        out.packet);
    return true;
  }
  return false;
}

// A probe through a port that the peer calls down. Its answer comes back the same way, and what
// comes in through a port shows that it is up (note_port_alive()).
bool Endpoint::Impl::next_port_question(TimeNs now, PortMask free_ports, TxPacket& out) {
  const DuePeers& due = ports.to_ask();
  for (std::uint32_t peer = due.next(0); peer != kNoSlot;) {
    const PortMask down = ports.unasked(peer) & ports.ours();
    if (!down.empty() && (down & free_ports).empty()) {  // waits for the port
      peer = due.next(peer + 1);
      continue;
    }
    const PortMask port = down.empty() ? down : PortMask().with((down & free_ports).lowest());
    ports.note_asked(peer, now, down.empty() ? ports.unasked(peer) : port);
    // Failed queue pairs do not ask, so that the next one has to.
    for (std::uint32_t tries = std::min(peers[peer].users, kAskLookahead); tries > 0; --tries) {
      out.ev = choose_status_ev(port, peers[peer], true);
      if (out.ev == kNoEv) break;
      const Qp& qp = *qps[peers[peer].status_qp];
      const bool asks =
          qp.requester.ask_path(now, out.ev, {qp.config.number, qp.rtr.remote_qp}, out);
      if (asks) address(qp, out);
      if (asks) return true;
      if (MRC_BUG(kFailedQpsAsk)) break;
    }
    peer = due.next(peer);
  }
  return false;
}

Status Endpoint::send_endpoint_probe(TimeNs now, const EndpointProbe& probe) {
  Impl& e = *impl_;
  const auto port = static_cast<unsigned>(probe.port);
  if (port == 0 || port > e.config.port_count) return {ErrorCode::kInvalidArgument, "no such port"};
  if (probe.timeout_ns <= 0) return {ErrorCode::kInvalidArgument, "timeout must be positive"};
  PendingEndpointProbe* place = nullptr;
  for (PendingEndpointProbe& pending : e.endpoint_probes) {
    if (pending.used && pending.probe.request_id == probe.request_id) {
      return {ErrorCode::kBusy, "a probe with this request id is waiting for its answer"};
    }
    if (!pending.used && place == nullptr) place = &pending;
  }
  if (place == nullptr) return {ErrorCode::kNoSpace, "too many endpoint probes outstanding"};
  *place = {.used = true, .probe = probe, .expires_at = now + probe.timeout_ns};
  ++e.endpoint_probes_unsent;
  e.refresh_endpoint_probe_deadline();
  return {};
}

bool Endpoint::Impl::next_pending_probe(TimeNs now, PortMask free_ports, TxPacket& out) {
  for (PendingEndpointProbe& pending : endpoint_probes) {
    if (!pending.used || pending.sent || !free_ports.contains(pending.probe.port)) continue;
    pending.sent = true;
    pending.sent_at = now;
    --endpoint_probes_unsent;
    out = {};
    out.destination = pending.probe.peer;
    out.port = pending.probe.port;
    out.entropy = pending.probe.entropy;
    out.local_qp = kEndpointQp;
    out.traffic_class = TrafficClass::kNoTrim;
    build_endpoint_request(now, {.id = pending.probe.request_id}, out.packet);
    return true;
  }
  return false;
}

// --- Receiving ---

DropReason Endpoint::Impl::on_endpoint_request(TimeNs now, const Arrival& arrival,
                                               const wire::Packet& packet) {
  const auto& request = *std::get_if<wire::EndpointRequest>(&packet.body);
  auto id = static_cast<std::uint16_t>(packet.bth.psn.value());
  DropReason drop = DropReason::kNone;
  if (request.op == wire::EndpointOp::kPortStatusUpdate) {
    const std::uint32_t slot = peer_index.find(arrival.source);
    if (slot == kNoSlot) return DropReason::kWrongSource;
    const auto heard = ports.hear(slot, now, id, PortMask(request.port_status));
    id = heard.answer;
    if (heard.word == PortStatus::Word::kOld) drop = DropReason::kStaleFeedback;
    if (heard.word == PortStatus::Word::kHeldOff) drop = DropReason::kUnproven;
    if (heard.word == PortStatus::Word::kNewPorts) report_ports_of(slot);
  }
  ControlEntry entry;
  entry.kind = ControlEntry::Kind::kEndpointResponse;
  entry.op = request.op;
  // The reverse path: the port it came in on, or any that is up.
  const PortMask up = ports.ours();
  entry.port = up.contains(arrival.port) || up.empty() ? arrival.port : up.lowest();
  entry.id = id;
  entry.timestamp = request.timestamp;
  entry.entropy = arrival.entropy;
  entry.arrived_at = now;
  std::construct_at(&entry.destination, arrival.source);
  return queue_control(entry) ? drop : DropReason::kQueueFull;
}

DropReason Endpoint::Impl::on_endpoint_response(TimeNs now, const Arrival& arrival,
                                                const wire::Packet& packet) {
  const auto& response = *std::get_if<wire::EndpointResponse>(&packet.body);
  const auto id = static_cast<std::uint16_t>(packet.bth.psn.value());
  if (response.op == wire::EndpointOp::kPortStatusUpdate) {
    const std::uint32_t slot = peer_index.find(arrival.source);
    const bool ours = slot != kNoSlot && ports.note_answer(slot, now, id);
    return ours ? DropReason::kNone : DropReason::kUnknownProbe;
  }
  for (PendingEndpointProbe& pending : endpoint_probes) {
    if (!pending.used || !pending.sent || pending.probe.request_id != id) continue;
    if (pending.probe.peer != arrival.source) return DropReason::kWrongSource;
    const DurationNs rtt = round_trip(now, pending.sent_at, response.timestamp_ticks);
    if (rtt == 0 && !MRC_BUG(kProbeAnswerNeedsNoStamp)) return DropReason::kUnknownProbe;
    events.push({.kind = EventKind::kEndpointAnswer,
                 .port = pending.probe.port,
                 .peer = arrival.source,
                 .request_id = id,
                 .rtt_ns = rtt});
    pending.used = false;
    refresh_endpoint_probe_deadline();
    return DropReason::kNone;
  }
  return DropReason::kUnknownProbe;
}

// --- Time ---

void Endpoint::Impl::expire_endpoint_probes(TimeNs now) {
  for (PendingEndpointProbe& pending : endpoint_probes) {
    if (!pending.used || pending.expires_at > now) continue;
    if (!pending.sent) --endpoint_probes_unsent;
    pending.used = false;
    events.push({.kind = EventKind::kEndpointAnswer,
                 .port = pending.probe.port,
                 .ok = false,
                 .peer = pending.probe.peer,
                 .request_id = pending.probe.request_id});
  }
  refresh_endpoint_probe_deadline();
}

void Endpoint::Impl::refresh_endpoint_probe_deadline() {
  endpoint_probe_deadline = kNever;
  for (const PendingEndpointProbe& pending : endpoint_probes) {
    if (pending.used) {
      endpoint_probe_deadline = std::min(endpoint_probe_deadline, pending.expires_at);
    }
  }
}

}  // namespace mrc::core
