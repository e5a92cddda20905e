// What an engine makes of a packet it is given: genuine new data is placed once and exactly where
// it belongs, everything else changes nothing.
#include <cinttypes>

#include "dst/carriage.h"
#include "dst/checker.h"
#include "dst/failure.h"
#include "dst/world.h"

namespace mrc::dst {
namespace {

// But for counters of what was not used.
bool same_state(const core::QpStatus& a, const core::QpStatus& b) {
  return a.state == b.state && a.sends_outstanding == b.sends_outstanding &&
         a.receives_outstanding == b.receives_outstanding &&
         a.packets_in_flight == b.packets_in_flight && a.packets_lost == b.packets_lost &&
         a.bytes_in_flight == b.bytes_in_flight && a.window_bytes == b.window_bytes &&
         a.window_psns == b.window_psns && a.next_psn == b.next_psn &&
         a.oldest_unacknowledged == b.oldest_unacknowledged && a.expected_psn == b.expected_psn &&
         a.good_evs == b.good_evs && a.smoothed_rtt_ns == b.smoothed_rtt_ns &&
         a.counters.messages_completed == b.counters.messages_completed &&
         a.counters.data_received == b.counters.data_received &&
         a.counters.immediates == b.counters.immediates;
}

}  // namespace

void Checker::on_corrupt_arrival(const Host& host, const core::Arrival& arrival,
                                 const wire::Packet& packet) {
  const auto to = world_.model.find(host.id(), packet.bth.destination);
  if (!to) return;
  End& end = world_.model.end(*to);
  end.entropies_seen.insert(arrival.entropy);
  end.entropies_corrupted.insert(arrival.entropy);
}

void Checker::on_arrival(Host& host, const Received& received) {
  PortMask& through =
      heard_through_[{host.id(), static_cast<unsigned>(received.arrival.source.low - 1)}];
  through = through.with(received.arrival.port);
  if (const auto to = world_.model.find(host.id(), received.packet.bth.destination)) {
    End& end = world_.model.end(*to);
    end.entropies_seen.insert(received.arrival.entropy);
    if (received.arrival.congestion_experienced) {
      end.entropies_marked.insert(received.arrival.entropy);
    }
    const std::uint32_t psn = received.packet.bth.psn.value();
    if (received.arrival.trim != core::TrimState::kWhole) end.trimmed_psns.insert(psn);
    const bool refused = received.arrival.refusal != core::CallerRefusal::kNone ||
                         received.result.drop == DropReason::kNoBuffer;
    if (refused) end.refused_psns.insert(psn);
    if (received.flight.attack != Attack::kCount) end.provoked_psns.insert(psn);
    if (received.result.drop == DropReason::kOutOfWindow) end.outside_psns.insert(psn);
  }
  if (received.flight.attack != Attack::kCount) return check_stopped(host, received);
  if (wire::is_write(received.packet.bth.opcode)) {
    check_write_arrival(host, received);
  } else {
    MRC_CHECK(received.result.placement.length == 0, "a control packet was given a placement");
    check_feedback_arrival(host, received);
  }
}

// What the forger made is stopped by the check that it was made for, and leaves the queue pair as
// it was.
void Checker::check_stopped(const Host& host, const Received& received) {
  const auto& result = received.result;
  const AttackInfo& attack = info(received.flight.attack);
  if (received.flight.attack == Attack::kPortClaim) {
    const auto& request = std::get<wire::EndpointRequest>(received.packet.body);
    claimed_ports_[{host.id(), received.flight.from}].insert(request.port_status);
  }
  if (attack.must_stop == DropReason::kNone) return;
  MRC_CHECK(result.drop == attack.must_stop, "host %u: forged %s: '%s' instead of '%s': %s",
            host.id(), attack.text, drop_reason_name(result.drop),
            drop_reason_name(attack.must_stop), describe(received.packet).c_str());
  MRC_CHECK(result.placement.length == 0, "host %u: forged %s was given a placement", host.id(),
            attack.text);
  if (!before_ || attack.must_stop == DropReason::kUnproven) return;  // it may have asked
  const auto after = host.engine().query_qp(received.packet.bth.destination);
  MRC_CHECK(after.ok() && same_state(*before_, after.value()),
            "host %u: forged %s changed the queue pair: %s", host.id(), attack.text,
            describe(received.packet).c_str());
}

// Forged packets, and those of a connection that no longer has this number.
void Checker::check_not_taken(const Host& host, const Received& received) {
  const auto& result = received.result;
  MRC_CHECK(result.placement.length == 0,
            "host %u gave a placement to a packet that is not of this connection: %s", host.id(),
            describe(received.packet).c_str());
  MRC_CHECK(result.drop != DropReason::kNone, "host %u took a packet that is not its own: %s",
            host.id(), describe(received.packet).c_str());
  const auto to = world_.model.find(host.id(), received.packet.bth.destination);
  if (!to) {
    MRC_CHECK(result.drop == DropReason::kUnknownQp, "host %u calls an unknown queue pair '%s'",
              host.id(), drop_reason_name(result.drop));
  } else if (received.arrival.source != world_.model.end(*to).rtr.remote) {
    const bool told =
        result.drop == DropReason::kWrongSource || result.drop == DropReason::kQpNotReady;
    MRC_CHECK(told, "host %u calls a foreign source '%s'", host.id(),
              drop_reason_name(result.drop));
  }
}

void Checker::check_write_arrival(Host& host, const Received& received) {
  const auto to = world_.model.find(host.id(), received.packet.bth.destination);
  const bool genuine = received.flight.provenance == Provenance::kGenuine &&
                       !received.flight.misdirected && to.has_value() &&
                       received.flight.origin == to->peer();
  if (!genuine) return check_not_taken(host, received);
  const Flow& flow = world_.model.incoming(*to);
  const std::int64_t number = flow.packet_number(received.packet.bth.psn);
  const bool whole = received.arrival.trim == core::TrimState::kWhole;
  const bool refused = received.arrival.refusal != core::CallerRefusal::kNone;
  // The bits of a trimmed packet are protected by nothing.
  const bool known = number >= 0 && number < static_cast<std::int64_t>(flow.sent_packets());
  MRC_CHECK(known || !whole, "world: packet %" PRId64 " was never sent", number);
  if (whole && !refused && !flow.has_arrived(static_cast<std::uint64_t>(number))) {
    return check_new_write(host, *to, static_cast<std::uint64_t>(number), received);
  }
  MRC_CHECK(received.result.placement.length == 0 && received.result.drop != DropReason::kNone,
            "host %u took a duplicate, trimmed or refused packet: %s", host.id(),
            describe(received.packet).c_str());
  if (received.result.drop == DropReason::kDuplicate) {
    End& end = world_.model.end(*to);
    if (whole) ++end.duplicates_arrived;
    if (flow.first_message_done() && host.can_answer(end)) {
      end.duplicates.on_cause(world_.stage.now);
    }
  }
  const bool live = world_.model.end(*to).state == EndState::kLive &&
                    !world_.model.connection(to->connection).doomed();
  const std::uint64_t window =
      std::uint64_t{world_.model.end(*to).rtr.mpr_dest} * core::kWindowUnitPsns;
  const bool ancient = static_cast<std::uint64_t>(number) + 2 * window < flow.contiguous();
  const DropReason called = ancient ? DropReason::kFarOutOfWindow : DropReason::kDuplicate;
  MRC_CHECK(!live || !whole || refused || received.result.drop == called,
            "host %u calls a duplicate '%s'", host.id(), drop_reason_name(received.result.drop));
}

void Checker::check_new_write(Host& host, EndRef to, std::uint64_t number,
                              const Received& received) {
  const auto& write = std::get<wire::Write>(received.packet.body);
  const End& end = world_.model.end(to);
  const bool legal = host.memory().allows_write(end.config.domain, write.key, write.address,
                                                received.arrival.payload_length);
  if (received.result.drop != DropReason::kNone) {
    return check_refused_write(to, number, legal, received);
  }
  const Flow& flow = world_.model.incoming(to);
  const std::uint64_t widest = std::uint64_t{end.rtr.mpr_dest} * core::kWindowUnitPsns;
  MRC_CHECK(number < flow.contiguous() + widest, "host %u took PSN %06x beyond its window",
            host.id(), received.packet.bth.psn.value());
  // Without a key an empty one is taken in its turn.
  const bool in_turn = received.arrival.payload_length == 0 && number == flow.contiguous();
  MRC_CHECK(legal || in_turn, "host %u took a write that its memory does not allow: %s", host.id(),
            describe(received.packet).c_str());
  take_write(host, to, number, received);
}

void Checker::take_write(Host& host, EndRef to, std::uint64_t number, const Received& received) {
  Flow& flow = world_.model.incoming(to);
  const PacketShape shape = flow.shape(number);
  const core::SendRequest& request = flow.messages()[shape.message].request;
  const core::Placement& placement = received.result.placement;
  MRC_CHECK(placement.length == shape.length &&
                (shape.length == 0 || placement.address == request.remote_address + shape.offset),
            "host %u places PSN %06x at %#" PRIx64 " length %u instead of %#" PRIx64 " length %u",
            host.id(), received.packet.bth.psn.value(), placement.address, placement.length,
            request.remote_address + shape.offset, shape.length);
  flow.on_arrived(number);
  End& end = world_.model.end(to);
  end.nominal_bytes_arrived += wire::nominal_size(received.packet, shape.length);
  if (shape.length == 0) return;
  fetch_payload(world_.stage.swarm.seed, request.local_address + shape.offset,
                host.memory().reference(request.remote_address + shape.offset, shape.length));
}

void Checker::check_refused_write(EndRef to, std::uint64_t number, bool legal,
                                  const Received& received) {
  const Connection& connection = world_.model.connection(to.connection);
  const End& end = world_.model.end(to);
  const Flow& flow = world_.model.incoming(to);
  MRC_CHECK(received.result.placement.length == 0, "a refused packet was given a placement");
  const std::uint64_t window = std::uint64_t{end.window_units} * core::kWindowUnitPsns;
  bool entitled = false;
  switch (received.result.drop) {
    case DropReason::kAccessDenied:
      entitled = !legal && received.arrival.payload_length > 0;
      break;
    case DropReason::kNoBuffer:
      entitled = !legal && received.arrival.payload_length == 0 && number > flow.contiguous();
      break;
    case DropReason::kOutOfWindow:
    case DropReason::kFarOutOfWindow:
      entitled = number >= flow.contiguous() + window;
      break;
    case DropReason::kQpNotReady:
      entitled = connection.doomed();
      break;
    case DropReason::kReceiveQueueEmpty:
      entitled = connection.doomed_by(Doom::kReceiveMissing);
      break;
    default:
      break;
  }
  MRC_CHECK(entitled, "host %u refuses a packet it has to take ('%s'): %s", end.host,
            drop_reason_name(received.result.drop), describe(received.packet).c_str());
}

void Checker::check_feedback_arrival(Host& host, const Received& received) {
  const auto to = world_.model.find(host.id(), received.packet.bth.destination);
  const Flight& flight = received.flight;
  const bool genuine = flight.provenance == Provenance::kGenuine && !flight.misdirected;
  const bool of_this_connection = to.has_value() && genuine && flight.origin == to->peer();
  if (of_this_connection) return on_feedback(host, *to, received);
  // What an earlier connection with the same numbers said is out of date, not forged: it may be
  // looked at, and all other checks see to it that it does no harm.
  if (genuine || flight.provenance == Provenance::kHarmless) return;
  // EV probes of a controller are answered to anybody.
  const auto* request = std::get_if<wire::EndpointRequest>(&received.packet.body);
  if (request != nullptr && request->op == wire::EndpointOp::kEvProbe) return;
  MRC_CHECK(received.result.drop != DropReason::kNone, "host %u acted on a foreign packet: %s",
            host.id(), describe(received.packet).c_str());
}

}  // namespace mrc::dst
