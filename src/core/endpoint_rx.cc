// The receive path: from a packet to the queue pair it belongs to, and the answers it causes.
#include <algorithm>

#include "base/planted_bug.h"
#include "core/endpoint_impl.h"

namespace mrc::core {
namespace {

constexpr unsigned kAnswersInDoubt = 16;
constexpr DurationNs kMinReverseCheckNs = 20 * kMicrosecondNs;

// Whether a packet that names both ends names these. Neither writes nor transport ACKs name any.
bool names_both_ends(const Qp& qp, const wire::Packet& packet) {
  const auto fits = [&qp](const auto& body) {
    return body.source_context == static_cast<std::uint16_t>(qp.rtr.remote_qp) &&
           body.destination_context == static_cast<std::uint16_t>(qp.config.number);
  };
  if (const auto* sack = std::get_if<wire::Sack>(&packet.body)) {
    return fits(*sack) || MRC_BUG(kIgnoresContexts);
  }
  if (const auto* nack = std::get_if<wire::Nack>(&packet.body)) {
    return fits(*nack) || MRC_BUG(kIgnoresNackContexts);
  }
  const auto* probe = std::get_if<wire::Probe>(&packet.body);
  return probe == nullptr || fits(*probe) || MRC_BUG(kIgnoresProbeContexts);
}

// The peer asks for what it was told: our answers may get lost, on the paths of this queue pair, so
// that no other can check them in its place.
void note_question(Qp& qp) {
  qp.paths->on_asked_again();
  // One at a time: a peer that does the same must not keep both asking for ever.
  if (qp.paths->reverse().answers_in_doubt() && qp.requester.probes().empty())
    qp.requester.check_reverse_path();
}

}  // namespace

RxResult Endpoint::on_packet(TimeNs now, const Arrival& arrival, const wire::Packet& packet) {
  Impl& e = *impl_;
  e.events.set_time(now);
  RxResult result;
  result.drop = e.dispatch(now, arrival, packet, result);
  ++e.counters.drops[static_cast<std::size_t>(result.drop)];
  return result;
}

RxResult Endpoint::on_run(TimeNs now, const Arrival& arrival, const wire::Packet& packet,
                          unsigned count) {
  RxResult result = on_packet(now, arrival, packet);
  if (count == 1 || result.drop != DropReason::kNone) return result;
  const unsigned more = impl_->take_more(now, arrival, packet, count - 1);
  result.taken += more;
  result.placement.length += more * arrival.payload_length;
  return result;
}

DropReason Endpoint::Impl::dispatch(TimeNs now, const Arrival& arrival, const wire::Packet& packet,
                                    RxResult& result) {
  const auto port = static_cast<unsigned>(arrival.port);
  if (port == 0 || port > config.port_count) return DropReason::kBadPort;
  PortCounters& traffic = counters.ports[port - 1];
  ++traffic.packets_received;
  traffic.bytes_received += wire::nominal_size(packet, arrival.payload_length);

  const bool trimmed = arrival.trim != TrimState::kWhole;
  const wire::Opcode opcode = packet.bth.opcode;
  if (trimmed && !wire::is_write(opcode)) return DropReason::kTrimmed;
  if (packet.bth.destination == kEndpointQp) {
    if (opcode == wire::Opcode::kEndpointRequest) return on_endpoint_request(now, arrival, packet);
    if (opcode == wire::Opcode::kEndpointResponse) {
      return on_endpoint_response(now, arrival, packet);
    }
    return DropReason::kUnknownQp;
  }
  Qp* qp = find(packet.bth.destination);
  if (qp == nullptr) return DropReason::kUnknownQp;
  if (qp->peer == kNoSlot) return DropReason::kQpNotReady;
  if (arrival.source != qp->rtr.remote && !MRC_BUG(kAcceptsAnySource)) {
    return DropReason::kWrongSource;
  }
  if (config.strict && !names_both_ends(*qp, packet)) return DropReason::kWrongContext;
  const bool asks = opcode == wire::Opcode::kProbe;  // maybe whether the port is up
  if (wire::is_write(opcode)) {
    result = on_write(now, arrival, packet, *qp);
  } else {
    result.drop = asks ? on_probe(now, arrival, packet, *qp) : on_feedback(now, packet, *qp);
  }
  // Whoever knows a queue pair number can send something through a port; what no check lets pass
  // says nothing about the port.
  const bool believed = result.drop == DropReason::kNone || result.drop == DropReason::kDuplicate ||
                        MRC_BUG(kAnyPacketShowsLife);
  if (!believed) return result.drop;
  if (!ports.of_peer(qp->peer).contains(arrival.port))
    note_port_alive(now, qp->peer, arrival.port, packet);
  if (!asks && !ports.ours().contains(arrival.port)) ports.remind(qp->peer, now);
  return result.drop;
}

RxResult Endpoint::Impl::on_write(TimeNs now, const Arrival& arrival, const wire::Packet& packet,
                                  Qp& qp) {
  RxResult result;
  Answer answer{.psn = packet.bth.psn};
  if (!qp.responder.started()) {
    result.drop = DropReason::kQpNotReady;
    refuse_failed(now, arrival, packet, qp, packet.bth.psn);
    return result;
  }
  result.drop = qp.responder.on_write(now, arrival, packet, memory, qp.config.domain,
                                      result.placement, answer);
  queue_answer(now, arrival, packet, qp, answer);
  if (result.drop == DropReason::kAccessDenied) {
    events.push({.kind = EventKind::kAccessRefused, .qp = qp.config.number});
  }
  if (answer.fatal) {
    answer.acknowledge = false;
    qp.answers.last_word = answer;
    fail(qp, answer.status, answer.spares_sends);
    return result;
  }
  const bool duplicate = result.drop == DropReason::kDuplicate;
  if (duplicate) note_question(qp);
  if (result.drop == DropReason::kNone && !packet.bth.retransmission) qp.paths->on_peer_progress();
  if (result.drop == DropReason::kNone || duplicate) check_reverse_path(now, qp);
  after_receive(qp);
  return result;
}

// Packets of a run behind `first`, which has just been taken: where nothing about them differs from
// it but their place, what was decided for it holds for them.
unsigned Endpoint::Impl::take_more(TimeNs now, const Arrival& arrival, const wire::Packet& first,
                                   unsigned most) {
  const wire::Bth& bth = first.bth;
  const bool plain = bth.opcode == wire::Opcode::kWriteMiddle && !bth.retransmission &&
                     !bth.ack_request && !arrival.congestion_experienced;
  if (!plain) return 0;
  Qp& qp = *find(bth.destination);
  const bool port_known =
      ports.ours().contains(arrival.port) && ports.of_peer(qp.peer).contains(arrival.port);
  if (!port_known || !qp.responder.started()) return 0;
  const unsigned count = qp.responder.continue_run(arrival, first, most, memory, qp.config.domain);
  if (count == 0) return 0;
  PortCounters& traffic = counters.ports[static_cast<std::size_t>(arrival.port) - 1];
  traffic.packets_received += count;
  traffic.bytes_received +=
      std::uint64_t{count} * wire::nominal_size(first, arrival.payload_length);
  counters.drops[static_cast<std::size_t>(DropReason::kNone)] += count;
  qp.paths->on_peer_progress(count);
  check_reverse_path(now, qp);
  after_receive(qp);
  return count;
}

// A peer that goes on talking to a failed queue pair hears so, and why where one of its own packets
// was the reason: packets take many paths, so that the first answer to come back may be one to a
// packet behind it. A probe has no PSN of its own and is answered with the cumulative one, which
// its sender can check.
void Endpoint::Impl::refuse_failed(TimeNs now, const Arrival& arrival, const wire::Packet& packet,
                                   Qp& qp, Psn psn) {
  if (qp.state != QpState::kError) return;
  const bool knows_why = qp.answers.last_word.fatal && !MRC_BUG(kForgetsWhyItFailed);
  const Answer failed{
      .kind = AnswerKind::kNack, .psn = psn, .reason = wire::NackReason::kUnexpectedEvent};
  queue_answer(now, arrival, packet, qp, knows_why ? qp.answers.last_word : failed);
}

// One probe per round trip and peer, whichever of its queue pairs it falls to.
void Endpoint::Impl::check_reverse_path(TimeNs now, Qp& qp) {
  Peer& peer = peers[qp.peer];
  if (now < peer.reverse_check_at) return;
  // The first packet only starts the clock: a short exchange needs no check.
  if (peer.reverse_check_at > 0 && !qp.requester.check_reverse_path()) return;
  const DurationNs answer_takes = qp.requester.rtt().smoothed() << qp.requester.probes().lateness();
  peer.reverse_check_at =
      now + std::max({answer_takes, kMinReverseCheckNs, config.jitter_ns, config.reverse_check_ns});
}

DropReason Endpoint::Impl::on_probe(TimeNs now, const Arrival& arrival, const wire::Packet& packet,
                                    Qp& qp) {
  if (!qp.responder.started()) {
    refuse_failed(now, arrival, packet, qp, qp.responder.cumulative());
    return DropReason::kQpNotReady;
  }
  const auto* probe = std::get_if<wire::Probe>(&packet.body);
  if (probe == nullptr) return DropReason::kBadHeaderField;
  ControlEntry entry;
  entry.kind = ControlEntry::Kind::kProbeAnswer;
  entry.mark = arrival.congestion_experienced ? wire::PathMark::kSkipOnce : wire::PathMark::kNone;
  entry.port = arrival.port;
  entry.qp.incarnation = qp.incarnation;
  entry.qp.slot = qp.slot;
  entry.id = probe->probe_id;
  entry.timestamp = probe->timestamp;
  entry.entropy = arrival.entropy;
  entry.arrived_at = now;
  const bool queued = queue_with_copies(entry, qp);
  if (!queued && MRC_BUG(kNoAckWithoutAnAnswer)) return DropReason::kQueueFull;
  // A sender that lost our transport ACK asks in this way, and there is room for every ACK. One
  // that left just now is on its way.
  const bool on_its_way =
      config.jitter_ns > 0 && now - qp.answers.acknowledged_at < config.jitter_ns;
  if (!on_its_way && qp.responder.messages_closed() > 0 && !MRC_BUG(kProbeNotReacknowledged)) {
    queue_ack(now, qp, arrival.port);
  }
  note_question(qp);
  after_receive(qp);
  return queued ? DropReason::kNone : DropReason::kQueueFull;
}

DropReason Endpoint::Impl::on_feedback(TimeNs now, const wire::Packet& packet, Qp& qp) {
  const auto* sack = std::get_if<wire::Sack>(&packet.body);
  // Before RTS there is nothing to acknowledge but probes.
  const bool expected = qp.state == QpState::kReadyToSend ||
                        (qp.state == QpState::kReadyToReceive && sack != nullptr);
  if (!expected) return DropReason::kQpNotReady;
  Requester::Outcome result;
  if (sack != nullptr) {
    result.drop = qp.requester.on_sack(now, *sack);
  } else if (const auto* nack = std::get_if<wire::Nack>(&packet.body)) {
    result = qp.requester.on_nack(now, *nack);
  } else if (const auto* ack = std::get_if<wire::Ack>(&packet.body)) {
    result = qp.requester.on_ack(now, packet.bth.psn, *ack);
  } else {
    return DropReason::kUnknownQp;  // endpoint operations go to QPN 2
  }
  settle_result(qp, result);
  return result.drop;
}

void Endpoint::Impl::settle_result(Qp& qp, const Requester::Outcome& result) {
  if (result.fatal) {
    fail(qp, result.status);
    return;
  }
  scheduler.wake_first(qp.group->waiting);
  after_event(qp);
}

void Endpoint::on_corrupt_packet(TimeNs now, const Arrival& arrival, const wire::Packet& packet) {
  Impl& e = *impl_;
  e.events.set_time(now);
  count_drop(DropReason::kBadIcrc);
  Qp* qp = e.find(packet.bth.destination);
  if (qp == nullptr || !qp->responder.started() || arrival.source != qp->rtr.remote) return;
  if (!wire::is_write(packet.bth.opcode) || !qp->responder.on_corrupt(arrival.entropy)) return;
  const Answer answer{.kind = AnswerKind::kSack,
                      .psn = qp->responder.no_packet(),
                      .mark = wire::PathMark::kAlwaysSkip};
  wire::Packet about = packet;
  about.bth.has_timestamp = false;
  e.queue_answer(now, arrival, about, *qp, answer);
}

// --- Answers ---

void Endpoint::Impl::queue_answer(TimeNs now, const Arrival& arrival, const wire::Packet& packet,
                                  Qp& qp, const Answer& answer) {
  if (answer.kind != AnswerKind::kNothing) {
    ControlEntry entry;
    using enum ControlEntry::Kind;
    entry.kind = answer.kind == AnswerKind::kSack   ? kSack
                 : answer.kind == AnswerKind::kNack ? kNack
                                                    : kNak;
    entry.mark = answer.mark;
    entry.reason = answer.reason;
    entry.syndrome = answer.syndrome;
    entry.port = arrival.port;
    entry.qp.incarnation = qp.incarnation;
    entry.qp.slot = qp.slot;
    entry.qp.psn = answer.psn;
    if (const auto* probe = std::get_if<wire::Probe>(&packet.body)) {
      entry.timestamp = probe->timestamp;  // a refused one
    } else if (const auto* write = std::get_if<wire::Write>(&packet.body);
               write != nullptr && packet.bth.has_timestamp) {
      entry.timestamp = write->timestamp;
    }
    entry.entropy = arrival.entropy;
    entry.arrived_at = now;
    if (entry.kind == kNak) {
      queue_with_copies(entry, qp);
    } else {
      queue_control(entry);
    }
  }
  if (answer.acknowledge) queue_ack(now, qp, arrival.port);
}

void Endpoint::Impl::queue_ack(TimeNs now, Qp& qp, PortId port) {
  if (qp.ack_queued) return;
  ControlEntry entry;
  entry.kind = ControlEntry::Kind::kAck;
  entry.arrived_at = now;
  entry.port = port;
  entry.qp.incarnation = qp.incarnation;
  entry.qp.slot = qp.slot;
  qp.ack_queued = queue_control(entry);
}

// An answer that may be the only one to come for long. Where the reverse path is in doubt it is
// tried on several paths, once per round trip: whoever asks all the time gets no more for it.
bool Endpoint::Impl::queue_with_copies(const ControlEntry& entry, Qp& qp) {
  const TimeNs now = entry.arrived_at;
  const bool copies = qp.paths->reverse().in_doubt() && now >= qp.answers.copies_again_at;
  if (copies)
    qp.answers.copies_again_at = now + std::max(qp.requester.rtt().smoothed(), kMinReverseCheckNs);
  if (control.push_copies(entry, copies ? std::min(kAnswersInDoubt, qp.paths->size()) : 1)) {
    return true;
  }
  ++counters.control_dropped;
  return false;
}

bool Endpoint::Impl::queue_control(const ControlEntry& entry) {
  if (control.push(entry)) return true;
  ++counters.control_dropped;
  return false;
}

// After anything that may have changed what a queue pair wants: send, report, wake up.
void Endpoint::Impl::after_event(Qp& qp) {
  if (qp.planes_changed) refresh_bandwidth(qp);
  const bool idle = !scheduler.is_active(qp.slot) && !scheduler.is_parked(qp.slot);
  if (idle && qp.requester.wants_to_send()) scheduler.activate(qp.slot);
  after_receive(qp);
  refresh_timer(qp);
}

// Receiving alone moves no deadline, but may bring a completion or call for a probe.
void Endpoint::Impl::after_receive(Qp& qp) {
  if (!scheduler.is_active(qp.slot) && qp.requester.probe_wanted()) {
    if (MRC_BUG(kQuestionsCostAPlace)) unpark(qp);
    scheduler.activate(qp.slot);
  }
  if (!qp.completion_queued && (qp.requester.has_completion() || qp.responder.has_completion())) {
    qp.completion_queued = completions.push_back(qp.slot);
  }
}

}  // namespace mrc::core
