// The transmit path: answers first, then endpoint requests, then the queue pairs in turn.
#include <algorithm>
#include <utility>

#include "base/planted_bug.h"
#include "core/endpoint_impl.h"

namespace mrc::core {
namespace {

// A queue pair keeps its turn until it has sent this much.
constexpr std::uint32_t kTurnBytes = 4096;
// A message up to this size is sent in one turn.
constexpr std::uint32_t kWholeMessageBytes = 64 * 1024;
// Answers behind one that waits for its port get their chance.
constexpr std::size_t kControlLookahead = 8;
// Queue pairs asked whether a free port suits them.
constexpr std::size_t kQpLookahead = 8;
// How long an answer waits for the port of its plane before it takes another.
constexpr DurationNs kControlPatienceNs = 2 * kMicrosecondNs;
// How long it waits for a port at all.
constexpr DurationNs kControlLifeNs = kMillisecondNs;

// Others have their turns before this queue pair's next, and what it sent so far may be too little
// for an answer. Of 1,000 queue pairs that take turns through one window each would otherwise hear
// nothing until it probes.
bool others_go_next(const Scheduler& scheduler, const Qp& qp) {
  if (qp.rtr.sack_threshold_bytes == 0 || MRC_BUG(kTurnEndsUnasked)) return false;  // answers all
  return scheduler.size() > 1 || qp.group->waiting.head != kNoSlot;
}

// Eight messages that share a port packet by packet all end when the port has sent the eight, and
// then it idles until the answers have brought new ones. One after the other the first ends after
// an eighth of that time: 64 kB from each of 64 hosts to each took 1.22 of the bound, now 1.03.
// With 256 kB in a turn four planes took 1.40 instead of 1.12, with 90 times as many trims.
bool is_within_message(const Scheduler& scheduler, const Qp& qp) {
  return scheduler.used_bytes(qp.slot) > 0 &&
         qp.requester.messages().is_within(kWholeMessageBytes) && !MRC_BUG(kShortMessagesAreCut);
}

// A turn ends with a burst. Where a probe or a packet sent again had shifted one against the other,
// every turn was cut in two: 8 packets on one path, 7 on the next, for ever.
bool turn_is_over(const Scheduler& scheduler, PortMask free_ports, unsigned quantum, const Qp& qp) {
  if (scheduler.used_bytes(qp.slot) < kTurnBytes * quantum) return false;
  if (is_within_message(scheduler, qp)) return false;
  return qp.paths->may_stay(free_ports) == 0 || MRC_BUG(kTurnsCutBursts);
}

void ask_for_answer(TxPacket& out) {
  if (wire::is_write(out.packet.bth.opcode)) out.packet.bth.ack_request = true;
}

void count_sent(PortCounters& port, const TxPacket& out) {
  port.packets_sent += out.run;
  port.bytes_sent += std::uint64_t{out.run} * wire::nominal_size(out.packet, out.payload_length);
}

}  // namespace

bool Endpoint::next_packet(TimeNs now, PortMask free_ports, TxPacket& out) {
  return next_run(now, free_ports, 1, out);
}

bool Endpoint::next_run(TimeNs now, PortMask free_ports, unsigned most, TxPacket& out) {
  Impl& e = *impl_;
  out.run = 1;
  const PortMask usable =
      free_ports &
      (MRC_BUG(kSendsOnDownPort) ? PortMask::first(e.config.port_count) : e.ports.ours());
  if (usable.empty()) return false;
  e.events.set_time(now);
  if (!e.next_control(now, usable, out) && !e.next_endpoint_request(now, usable, out) &&
      !e.next_from_qps(now, usable, out)) {
    return false;
  }
  if (most > 1) out.run += e.continue_run(now, usable, most - 1, out);
  count_sent(e.counters.ports[static_cast<std::size_t>(out.port) - 1], out);
  return true;
}

void Endpoint::set_spray_quantum(unsigned packets) {
  impl_->spray_quantum = std::clamp(packets, 1U, kMaxSprayQuantum);
}

bool Endpoint::wants_to_send() const {
  const Impl& e = *impl_;
  return !e.control.empty() || !e.scheduler.empty() || e.ports.to_tell().any() ||
         e.ports.to_ask().any() || e.endpoint_probes_unsent > 0;
}

// Fills in where the packet goes and by which path. A profile of our own making is nobody's
// business.
void Endpoint::Impl::address(const Qp& qp, TxPacket& out) {
  const EvEntry& path = qp.init.ev_profile->entry(out.ev);
  out.destination = qp.rtr.remote;
  out.local_qp = qp.config.number;
  out.port = path.port;
  out.entropy = path.entropy;
  out.profile = qp.own_profile ? nullptr : qp.init.ev_profile;
  if (qp.own_profile) out.ev = kNoEv;
}

// --- Answers ---

bool Endpoint::Impl::next_control(TimeNs now, PortMask free_ports, TxPacket& out) {
  for (ControlLine& line : control.lines()) {
    if (line.empty()) continue;
    std::size_t tries = std::min(line.size(), kControlLookahead);
    while (tries > 0 && !line.empty()) {
      const ControlEntry& entry = line.front();
      if (!still_valid(entry)) {
        line.pop();
      } else if (build_control(now, free_ports, entry, out)) {
        line.pop();
        return true;
      } else if ((free_ports == ports.ours() && !MRC_BUG(kAnswersWaitForEver)) ||
                 (now - entry.arrived_at > kControlLifeNs && !MRC_BUG(kStuckPortTakesAll))) {
        // There is no way out for it: its queue pair has paths on ports that are down only, all of
        // them are denied, or the port is up and takes nothing. 384 of these would leave no room
        // for anybody's. Whoever waits for the answer asks again.
        ++counters.control_dropped;
        if (entry.kind == ControlEntry::Kind::kAck) qps[entry.qp.slot]->ack_queued = false;
        line.pop();
      } else {
        line.defer();
        --tries;
      }
    }
  }
  return false;
}

// An answer dies with its queue pair; a failed one makes no more claims about single packets. An EV
// probe asks about a path, so its answer dies with the port it came in on; one about our ports with
// the last queue pair to that peer.
bool Endpoint::Impl::still_valid(const ControlEntry& entry) const {
  using enum ControlEntry::Kind;
  if (entry.answers_ev_probe()) return ports.ours().contains(entry.port);
  if (entry.kind == kEndpointResponse) return peer_index.find(entry.destination) != kNoSlot;
  const Qp* qp = qps[entry.qp.slot].get();
  if (qp == nullptr || qp->incarnation != entry.qp.incarnation) return false;
  return qp->responder.started() || (entry.kind != kSack && entry.kind != kProbeAnswer);
}

bool Endpoint::Impl::build_control(TimeNs now, PortMask free_ports, const ControlEntry& entry,
                                   TxPacket& out) {
  using enum ControlEntry::Kind;
  if (entry.kind == kEndpointResponse) {
    return build_endpoint_response(now, free_ports, entry, out);
  }
  Qp& qp = *qps[entry.qp.slot];
  // An answer goes back on the plane its packet came from. It waits for that port a moment: an idle
  // port next to busy ones may well be idle because its plane is dead.
  const bool patient = now - entry.arrived_at < kControlPatienceNs;
  if (patient && !free_ports.contains(entry.port) &&
      qp.paths->planes_in_use().contains(entry.port)) {
    return false;
  }
  out.ev = choose_answer_path(now, free_ports, entry, qp);
  if (out.ev == kNoEv) return false;
  address(qp, out);
  out.traffic_class = TrafficClass::kControl;
  out.local_address = 0;
  out.payload_length = 0;
  out.packet.bth = {};
  out.packet.bth.destination = qp.rtr.remote_qp;
  if (entry.kind == kNack) {
    build_nack(now, entry, qp, out);
  } else if (entry.kind == kAck || entry.kind == kNak) {
    build_ack(now, entry, qp, out);
  } else {
    build_sack(now, entry, qp, out);
  }
  return true;
}

EvIndex Endpoint::Impl::choose_answer_path(TimeNs now, PortMask free_ports,
                                           const ControlEntry& entry, Qp& qp) {
  if (qp.state == QpState::kError) return qp.paths->sweep(free_ports);
  if (!config.group_answers || qp.paths->reverse().in_doubt()) {
    return qp.paths->choose_control(free_ports, entry.port);
  }
  Qp::Answers& last = qp.answers;
  if (last.ev != kNoEv && last.at == now &&
      free_ports.contains(qp.init.ev_profile->port(last.ev))) {
    return last.ev;
  }
  last.ev = qp.paths->choose_control(free_ports, entry.port);
  last.at = now;
  return last.ev;
}

bool Endpoint::Impl::build_endpoint_response(TimeNs now, PortMask free_ports,
                                             const ControlEntry& entry, TxPacket& out) {
  out = {};
  if (entry.op == wire::EndpointOp::kPortStatusUpdate) {
    const std::uint32_t peer = peer_index.find(entry.destination);
    out.ev = choose_status_ev(free_ports, peers[peer], ports.repeats_itself(peer));
    if (out.ev == kNoEv) return false;
    address(*qps[peers[peer].status_qp], out);
    if (MRC_BUG(kStatusOnAnyPath)) out.entropy = prng.next32();
  } else {  // an EV probe is about the path it took
    if (!free_ports.contains(entry.port)) return false;
    out.destination = entry.destination;
    out.port = entry.port;
    out.entropy = entry.entropy;
    out.local_qp = kEndpointQp;
  }
  out.packet.bth.opcode = wire::Opcode::kEndpointResponse;
  out.packet.bth.destination = kEndpointQp;
  out.packet.bth.psn = Psn(entry.id);
  out.packet.body =
      wire::EndpointResponse{.op = entry.op, .timestamp_ticks = reflected_ticks(now, entry)};
  return true;
}

void Endpoint::Impl::build_nack(TimeNs now, const ControlEntry& entry, Qp& qp,
                                TxPacket& out) const {
  ++qp.counters.nacks_sent;
  out.packet.bth.opcode = wire::Opcode::kNack;
  out.packet.bth.psn = entry.qp.psn;
  out.packet.body = wire::Nack{.reason = entry.reason,
                               .entropy = entry.entropy,
                               .source_context = static_cast<std::uint16_t>(qp.config.number),
                               .destination_context = static_cast<std::uint16_t>(qp.rtr.remote_qp),
                               .psn = entry.qp.psn,
                               .timestamp_ticks = reflected_ticks(now, entry)};
}

void Endpoint::Impl::build_ack(TimeNs now, const ControlEntry& entry, Qp& qp, TxPacket& out) const {
  const bool nak = entry.kind == ControlEntry::Kind::kNak;
  if (!nak) qp.ack_queued = false;
  qp.answers.acknowledged_at = now;
  ++qp.counters.acks_sent;
  out.packet.bth.opcode = wire::Opcode::kAck;
  out.packet.bth.psn = nak ? entry.qp.psn : qp.responder.cumulative();
  out.packet.body =
      wire::Ack{.syndrome = nak ? entry.syndrome : wire::kSyndromeAck,
                .msn = static_cast<std::uint32_t>(qp.responder.messages_closed()) & 0xFF'FFFF};
}

// The stamp that came in, plus the time its answer spent here.
std::uint16_t Endpoint::Impl::reflected_ticks(TimeNs now, const ControlEntry& entry) const {
  const DurationNs tick = entry.timestamp.microseconds ? kMicrosecondNs : kTickNs;
  const DurationNs service = config.add_service_time ? (now - entry.arrived_at) / tick : 0;
  return static_cast<std::uint16_t>(entry.timestamp.ticks + service);
}

void Endpoint::Impl::build_sack(TimeNs now, const ControlEntry& entry, Qp& qp,
                                TxPacket& out) const {
  wire::Sack sack;
  sack.mark = entry.mark;
  sack.probe_answer = entry.kind == ControlEntry::Kind::kProbeAnswer;
  sack.offset_or_probe_id = entry.id;
  sack.entropy = entry.entropy;
  sack.source_context = static_cast<std::uint16_t>(qp.config.number);
  sack.destination_context = static_cast<std::uint16_t>(qp.rtr.remote_qp);
  qp.responder.fill_sack(sack.probe_answer ? qp.responder.cumulative() : entry.qp.psn, sack);
  sack.timestamp_ticks = reflected_ticks(now, entry);
  ++qp.counters.sacks_sent;
  out.packet.bth.opcode = wire::Opcode::kSack;
  out.packet.bth.psn = sack.cumulative;
  out.packet.body = sack;
}

// --- Queue pairs in turn ---

// Ports become free one after the other, and queue pairs take turns. Left to themselves the two
// rounds lock, and each queue pair gets the same few planes every time, which fills the queues of
// some planes at its peer and leaves others empty. So the first queue pair for whose next plane a
// port is free goes first. Who is passed over keeps its place as the first to be asked. A message
// that is sent in one turn takes all ports as they come.
void Endpoint::Impl::prefer_fitting_qp(PortMask free_ports) {
  if (config.port_count == 1 || scheduler.size() < 2) return;
  if (is_within_message(scheduler, *qps[scheduler.front()])) return;
  const std::size_t asked = std::min(scheduler.size(), kQpLookahead);
  for (std::size_t i = 0; i < asked; ++i) {
    if (!qps[scheduler.at(i)]->paths->wants_one_of(free_ports)) continue;
    scheduler.prefer(i);
    return;
  }
}

// Who ends its turn with the window open lets the first who waits for it have a try, which passes
// it on in the same way. One for each packet would be too many: of 1,000 queue pairs 15 were woken
// for each burst, found the window full and went back, for a fifth of the processor.
bool Endpoint::Impl::next_from_qps(TimeNs now, PortMask free_ports, TxPacket& out) {
  prefer_fitting_qp(free_ports);
  for (std::size_t tries = scheduler.size(); tries > 0; --tries) {
    Qp& qp = *qps[scheduler.front()];
    Scheduler::Line& waiting = qp.group->waiting;
    const bool only_asks = scheduler.is_parked(qp.slot);
    const SendOutcome outcome = try_send(now, free_ports, qp, out);
    const bool sent = outcome == SendOutcome::kSent;
    const bool closed = outcome == SendOutcome::kWindowClosed;
    if (!sent || turn_is_over(scheduler, free_ports, spray_quantum, qp)) {
      if (sent && others_go_next(scheduler, qp)) ask_for_answer(out);
      scheduler.end_turn(closed || outcome == SendOutcome::kNoPath);
      if (sent || outcome == SendOutcome::kNoPath) scheduler.activate(qp.slot);
      if (closed) scheduler.park(qp.slot, waiting);
      if (!closed && !only_asks) scheduler.wake_first(waiting);
    }
    // Data moves a running deadline back at most.
    const bool data_sent = sent && wire::is_write(out.packet.bth.opcode);
    if (!data_sent || timers.deadline(qp.slot) == kNever) refresh_timer(qp);
    if (sent) return true;
  }
  return false;
}

SendOutcome Endpoint::Impl::try_send(TimeNs now, PortMask free_ports, Qp& qp, TxPacket& out) {
  const QpNumber remote = qp.rtr.remote_qp;
  SendOutcome outcome = qp.requester.next_probe(now, free_ports, {qp.config.number, remote}, out);
  if (outcome != SendOutcome::kSent) {
    const bool probe_waits = outcome == SendOutcome::kNoPath;
    if (scheduler.is_parked(qp.slot)) return outcome;
    const bool others_wait = scheduler.jumps(qp.slot, qp.group->waiting) &&
                             qp.requester.wants_to_send() && !MRC_BUG(kWokenGoesLast);
    outcome = others_wait ? SendOutcome::kWindowClosed
                          : qp.requester.next_data(now, free_ports, remote, spray_quantum, out);
    // A probe that waits for its port keeps the queue pair in the round.
    if (probe_waits && outcome != SendOutcome::kSent) return SendOutcome::kNoPath;
    if (outcome != SendOutcome::kSent) return outcome;
  }
  address(qp, out);
  // A question is not what a turn is for, nor is its place in the line lost with it.
  const bool data = wire::is_write(out.packet.bth.opcode);
  if (data) scheduler.charge(wire::nominal_size(out.packet, out.payload_length));
  return outcome;
}

// How many packets of the same queue pair would follow `first` in any case, for which nobody else
// would be asked and nothing be decided. The last packet of a turn is not among them: it may have
// to ask for an answer. Takes them as sent.
unsigned Endpoint::Impl::continue_run(TimeNs now, PortMask free_ports, unsigned most,
                                      const TxPacket& first) {
  const bool others_first = !control.empty() || ports.to_tell().any() || ports.to_ask().any() ||
                            endpoint_probes_unsent > 0;
  if (others_first || scheduler.empty()) return 0;
  Qp& qp = *qps[scheduler.front()];
  const std::uint32_t used = scheduler.used_bytes(qp.slot);
  const bool has_turn = qp.config.number == first.local_qp && used > 0;
  if (!has_turn || !(qp.paths->planes_in_use() - free_ports).empty()) return 0;
  const std::uint32_t turn = kTurnBytes * spray_quantum;
  const std::uint32_t left = used < turn ? turn - 1 - used : 0;
  const std::uint32_t each = wire::nominal_size(first.packet, first.payload_length);
  // The last packet of a message is in no run, so a turn that lasts as long does not end here.
  if (!is_within_message(scheduler, qp)) most = std::min(most, left / each);
  most = std::min(most, qp.paths->may_stay(free_ports));
  const unsigned count = most == 0 ? 0 : qp.requester.continue_run(now, first, most);
  if (count == 0) return 0;
  qp.paths->stay(count);
  scheduler.charge(count * each);
  return count;
}

}  // namespace mrc::core
