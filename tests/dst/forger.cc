#include "dst/forger.h"

#include <algorithm>

#include "core/rtt.h"
#include "dst/world.h"

namespace mrc::dst {
namespace {

// A stamp of the tick before the packet left is older than any that can come back, for as long as
// the clock of the stamps, 8.4 ms, has not turned round.
constexpr DurationNs kStampsAreClearNs = 4 * kMillisecondNs;

}  // namespace

Forger::Forger(World& world) : world_(world), random_(world.stage.swarm.seed, Stream::kAdversary) {}

void Forger::start() {
  if (world_.stage.swarm.on(Fault::kForgery)) schedule_next();
}

void Forger::schedule_next() {
  const Swarm& swarm = world_.stage.swarm;
  const DurationNs mean = swarm.fault_phase_ns / swarm.rate(Fault::kForgery) + 1;
  world_.stage.queue.push(world_.stage.now + random_.duration(1, 2 * mean), Happening::kAdversary,
                          static_cast<std::uint32_t>(Fault::kForgery));
}

std::optional<Forger::Victim> Forger::random_victim() {
  const auto ends = world_.model.ends();
  if (ends.empty()) return std::nullopt;
  const EndRef ref = random_.pick(ends);
  const End& end = world_.model.end(ref);
  const Host& host = *world_.hosts[end.host];
  const bool live =
      end.state == EndState::kLive && !world_.model.connection(ref.connection).doomed();
  if (!live || !host.alive() || host.paused_until() > world_.stage.now) return std::nullopt;
  const auto status = host.engine().query_qp(end.config.number);
  if (!status.ok() || status.value().state != core::QpState::kReadyToSend) return std::nullopt;
  return Victim{ref, end, world_.model.outgoing(ref), world_.model.incoming(ref), status.value()};
}

void Forger::on_fault() {
  if (!world_.stage.faults_on) return;
  schedule_next();
  const bool wins = world_.stage.swarm.forger_knows_all;  // it looks for its chance
  for (unsigned i = wins ? 64 : random_.between(1, 8); i != 0; --i) {
    const auto attack = static_cast<Attack>(random_.below(kAttackCount));
    const auto victim = random_victim();
    if (!victim) continue;
    auto flight = wins ? perfect_lie(*victim) : forge(attack, *victim);
    if (!flight) continue;
    world_.stage.count(Fault::kForgery);
    if (!wins) {
      flight->attack = attack;
      ++world_.stage.attacks[static_cast<std::size_t>(attack)];
    }
    // A volley proves no more; but the NAKs that two writes cause may come far apart.
    if (!flight->is_write() && random_.one_in(2)) world_.deliver_now(*flight);
    world_.deliver_now(std::move(*flight));
  }
}

std::optional<Flight> Forger::forge(Attack attack, const Victim& victim) {
  switch (attack) {
    case Attack::kWriteOfAStranger:
    case Attack::kWriteBeyondWindow:
    case Attack::kWriteFarBeyond:
    case Attack::kAncientWrite:
      return forge_write(attack, victim);
    case Attack::kWriteKey:
    case Attack::kWriteLength:
      return forge_known_write(attack, victim);
    case Attack::kNumberBeyondPsn:
    case Attack::kNumberOfOlder:
    case Attack::kNumberOfNewer:
    case Attack::kReceiveNumber:
      return forge_number(attack, victim);
    case Attack::kEmptyAhead:
    case Attack::kEmptyWithin:
    case Attack::kEmptyImmediate:
      return forge_empty(attack, victim);
    case Attack::kSackOfUnsent:
    case Attack::kSackOfAnotherAge:
    case Attack::kProbeAnswerStamp:
    case Attack::kSackContext:
      return forge_sack(attack, victim);
    case Attack::kAckOfUnsent:
    case Attack::kFailureNakCount:
    case Attack::kNakOfNothing:
    case Attack::kNakCount:
      return forge_ack(attack, victim);
    case Attack::kNackPath:
    case Attack::kNackContext:
    case Attack::kFailureContext:
      return forge_nack(attack, victim);
    case Attack::kProbeContext:
      return forge_probe(victim);
    case Attack::kPortClaim:
    case Attack::kAnswerForNobody:
      return forge_endpoint(attack, victim);
    case Attack::kCount:
      break;
  }
  return std::nullopt;
}

// --- Right in all respects ---

Flight Forger::to(const Victim& victim, wire::Opcode opcode) {
  Flight flight;
  flight.provenance = Provenance::kForged;
  flight.to = victim.end.host;
  flight.from = world_.model.end(victim.ref.peer()).host;
  flight.source = victim.end.rtr.remote;
  const core::EvProfile& paths = *world_.model.end(victim.ref.peer()).init.ev_profile;
  const core::EvEntry& path =
      paths.entry(EvIndex{static_cast<std::uint16_t>(random_.below(paths.size()))});
  flight.port = path.port;
  flight.entropy = path.entropy;
  flight.packet.bth.opcode = opcode;
  flight.packet.bth.destination = victim.end.config.number;
  return flight;
}

Flight Forger::write(const Victim& victim, std::uint64_t packet) {
  const auto& region = world_.hosts[victim.end.host]->memory().region(victim.end.region);
  Flight flight = to(victim, wire::Opcode::kWriteOnly);
  flight.traffic_class = core::TrafficClass::kTrimmable;
  flight.packet.bth.psn = victim.in.psn(packet);
  flight.payload_address = random_.bits();
  flight.payload_length = random_.between(1, victim.end.rtr.path_mtu);
  const bool posted = packet < victim.in.posted_packets();
  const std::size_t message =
      posted ? victim.in.shape(packet).message : victim.in.messages().size();
  flight.packet.body = wire::Write{.receive_msn = 0,
                                   .msn = static_cast<std::uint16_t>(message),
                                   .timestamp = {},
                                   .address = region.what.address,
                                   .key = region.key.value_or(Rkey{0}),
                                   .message_length = flight.payload_length,
                                   .immediate = 0};
  return flight;
}

std::optional<std::uint64_t> Forger::missing(const Victim& victim) {
  const std::uint64_t edge = victim.in.contiguous();
  const std::uint64_t window = std::uint64_t{victim.end.rtr.mpr_dest} * core::kWindowUnitPsns;
  const std::uint64_t end = std::min(victim.in.sent_packets(), edge + window);
  if (end <= edge) return std::nullopt;
  const std::uint64_t packet = edge + random_.below(static_cast<std::uint32_t>(end - edge));
  const auto& attacked = world_.model.end(victim.ref.peer()).attacked_packets;
  const bool fits = !victim.in.has_arrived(packet) && !attacked.contains(packet);
  return fits ? std::optional(packet) : std::nullopt;
}

Flight Forger::genuine(const Victim& victim, std::uint64_t packet) {
  const PacketShape shape = victim.in.shape(packet);
  const Message& message = victim.in.messages()[shape.message];
  Flight flight = write(victim, packet);
  flight.packet.bth.opcode = shape.opcode;
  flight.payload_length = shape.length;
  auto& write = std::get<wire::Write>(flight.packet.body);
  write.receive_msn =
      message.request.with_immediate ? static_cast<std::uint16_t>(message.immediate_number) : 0;
  write.address = message.request.remote_address + shape.offset;
  write.key = message.request.remote_key;
  write.message_length = message.request.length;
  write.immediate = message.request.immediate;
  return flight;
}

Flight Forger::sack(const Victim& victim, std::uint64_t contiguous) {
  const End& peer = world_.model.end(victim.ref.peer());
  Flight flight = to(victim, wire::Opcode::kSack);
  wire::Sack sack;
  sack.source_context = static_cast<std::uint16_t>(peer.config.number);
  sack.destination_context = static_cast<std::uint16_t>(victim.end.config.number);
  sack.cumulative = victim.out.psn(contiguous) - 1;
  sack.bitmap_offset = 1;
  sack.window_units = peer.rtr.dynamic_mpr ? peer.window_units : std::uint8_t{0};
  sack.received_units =
      static_cast<std::uint32_t>((peer.nominal_bytes_arrived + 255) / 256) & 0xFF'FFFF;
  sack.timestamp_ticks = core::ticks_at(world_.hosts[victim.end.host]->clock());
  flight.packet.bth.psn = sack.cumulative;
  flight.packet.body = sack;
  return flight;
}

std::optional<std::uint64_t> Forger::in_flight(const Victim& victim) {
  const auto oldest =
      static_cast<std::uint64_t>(victim.out.packet_number(victim.status.oldest_unacknowledged));
  const std::uint64_t span = victim.out.sent_packets() - oldest;
  if (victim.status.packets_in_flight == 0 || span == 0) return std::nullopt;
  const std::uint64_t packet = oldest + random_.below(static_cast<std::uint32_t>(span));
  return victim.end.history.told(packet) ? std::nullopt : std::optional(packet);
}

void Forger::echo(const Victim& victim, std::uint64_t packet, std::uint32_t& entropy,
                  std::uint16_t& ticks) const {
  const SendHistory& history = victim.end.history;
  entropy = victim.end.init.ev_profile->entry(history.last_ev(packet)).entropy;
  ticks = core::ticks_at(history.sent_at(packet));
}

// --- With one thing wrong ---

std::optional<Flight> Forger::forge_write(Attack attack, const Victim& victim) {
  const std::uint32_t window = std::uint32_t{victim.end.rtr.mpr_dest} * core::kWindowUnitPsns;
  const std::uint64_t edge = victim.in.contiguous();
  if (attack == Attack::kWriteOfAStranger) {
    Flight flight = write(victim, edge);
    flight.source = {0xBAD, random_.bits() | (std::uint64_t{1} << 63)};
    return flight;
  }
  if (attack == Attack::kAncientWrite) {
    if (edge < 3 * std::uint64_t{window}) return std::nullopt;
    return genuine(victim, edge - 2 * std::uint64_t{window} - 1 - random_.below(window));
  }
  if (attack == Attack::kWriteBeyondWindow) {
    return write(victim, edge + window + random_.below(window));
  }
  return write(victim, edge + 2 * std::uint64_t{window} + random_.below(0x40'0000));
}

// What these provoke is a genuine NAK. Where a path keeps packets for a thousand times as long as
// others, or every other acknowledgement is lost, one that the network brings again milliseconds
// later is as good as one that is said again (seed 3659174697240486): nobody can tell.
std::optional<Flight> Forger::forge_known_write(Attack attack, const Victim& victim) {
  const Swarm& swarm = world_.stage.swarm;
  if (swarm.on(Fault::kSlowPath) || swarm.on(Fault::kLossFeedback)) return std::nullopt;
  const auto packet = missing(victim);
  if (!packet || victim.in.shape(*packet).length == 0) return std::nullopt;
  Flight flight = genuine(victim, *packet);
  auto& write = std::get<wire::Write>(flight.packet.body);
  if (attack == Attack::kWriteKey) {
    write.key = Rkey{static_cast<std::uint32_t>(write.key) ^ (1U << random_.below(32))};
  } else {
    ++write.message_length;
    if (!wire::ends_message(flight.packet.bth.opcode)) --flight.payload_length;
  }
  world_.model.end(victim.ref.peer()).attacked_packets.insert(*packet);
  return flight;
}

// The number that breaks the one rule it is meant for and none of the others: of the messages that
// end between the edge and the packet.
std::optional<std::uint32_t> Forger::wrong_number(Attack attack, const Victim& victim,
                                                  std::uint64_t packet) {
  const std::uint64_t edge = victim.in.contiguous();
  const auto distance = static_cast<std::uint32_t>(packet - edge);
  std::uint64_t highest = victim.in.sent_packets();
  while (highest > edge && !victim.in.has_arrived(highest - 1))
    --highest;
  if (attack == Attack::kNumberBeyondPsn) {
    if (highest > edge) return std::nullopt;
    return distance + random_.between(1, 100);
  }
  if (highest == edge) return std::nullopt;
  const PacketShape newest = victim.in.shape(highest - 1);
  const std::uint32_t number = newest.message - victim.in.shape(edge).message;
  const std::uint32_t behind = number + (wire::ends_message(newest.opcode) ? 1 : 0);
  if (attack == Attack::kNumberOfOlder) {
    if (packet < highest || behind == 0) return std::nullopt;
    return random_.below(behind);
  }
  const bool ends = wire::ends_message(victim.in.shape(packet).opcode);
  const std::uint32_t least = number + (ends ? 0 : 1);
  if (packet >= highest || least > distance) return std::nullopt;
  return least + random_.below(distance - least + 1);
}

std::optional<Flight> Forger::forge_number(Attack attack, const Victim& victim) {
  const auto packet = missing(victim);
  if (!packet) return std::nullopt;
  const std::uint32_t closed = victim.in.shape(victim.in.contiguous()).message;
  Flight flight = genuine(victim, *packet);
  auto& write = std::get<wire::Write>(flight.packet.body);
  if (attack == Attack::kReceiveNumber) {
    const bool counted = victim.status.counters.immediates > 0;
    if (!counted || !wire::has_immediate(flight.packet.bth.opcode)) return std::nullopt;
    const std::uint32_t ahead = victim.in.shape(*packet).message - closed;
    write.receive_msn = static_cast<std::uint16_t>(victim.status.counters.immediates + ahead + 1);
    return flight;
  }
  const auto ahead = wrong_number(attack, victim, *packet);
  if (!ahead) return std::nullopt;
  write.msn = static_cast<std::uint16_t>(closed + *ahead);
  // Else its receive number may be the one that does not fit.
  if (wire::has_immediate(flight.packet.bth.opcode)) return std::nullopt;
  return flight;
}

// Shaped as a message of one packet, which the true one is but for kEmptyWithin.
std::optional<Flight> Forger::forge_empty(Attack attack, const Victim& victim) {
  const auto packet = missing(victim);
  if (!packet) return std::nullopt;
  const wire::Opcode opcode = victim.in.shape(*packet).opcode;
  const bool whole = wire::starts_message(opcode) && wire::ends_message(opcode);
  const bool fits = attack == Attack::kEmptyWithin ? !wire::starts_message(opcode) : whole;
  const bool at_edge = *packet == victim.in.contiguous();
  if (!fits || at_edge == (attack == Attack::kEmptyAhead)) return std::nullopt;
  const bool immediate = attack == Attack::kEmptyImmediate;
  Flight flight = genuine(victim, *packet);
  flight.packet.bth.opcode = wire::Opcode::kWriteOnly;
  auto& write = std::get<wire::Write>(flight.packet.body);
  flight.payload_length = write.message_length = 0;
  write.key = Rkey{0xBAD};
  if (immediate) {
    flight.packet.bth.opcode = wire::Opcode::kWriteOnlyImm;
    write.receive_msn = static_cast<std::uint16_t>(victim.status.counters.immediates +
                                                   victim.end.rtr.max_wimm_dest + 1);
  }
  return flight;
}

std::optional<Flight> Forger::forge_sack(Attack attack, const Victim& victim) {
  const std::int64_t oldest = victim.out.packet_number(victim.status.oldest_unacknowledged);
  if (attack == Attack::kSackOfUnsent) {
    return sack(victim, victim.out.sent_packets() + random_.between(1, 0x1000));
  }
  if (attack == Attack::kSackOfAnotherAge) {
    const std::uint32_t back = victim.status.window_psns + random_.between(1, 0x1000);
    return sack(victim, static_cast<std::uint64_t>(oldest - std::int64_t{back}));
  }
  if (attack == Attack::kSackContext) {  // all that was sent has arrived, it says
    Flight flight = sack(victim, victim.out.sent_packets());
    std::get<wire::Sack>(flight.packet.body).source_context ^=
        static_cast<std::uint16_t>(1U << random_.below(16));
    return flight;
  }
  const End::Question& asked = victim.end.last_question;
  const TimeNs now = world_.hosts[victim.end.host]->clock();
  if (asked.ev == kNoEv || now - asked.at > kStampsAreClearNs) return std::nullopt;
  Flight flight = sack(victim, static_cast<std::uint64_t>(oldest));
  auto& answer = std::get<wire::Sack>(flight.packet.body);
  answer.probe_answer = true;
  answer.offset_or_probe_id = asked.id;
  answer.entropy = victim.end.init.ev_profile->entry(asked.ev).entropy;
  answer.timestamp_ticks = static_cast<std::uint16_t>(core::ticks_at(asked.at) - 1);
  return flight;
}

std::optional<Flight> Forger::forge_nack(Attack attack, const Victim& victim) {
  const auto packet = in_flight(victim);
  if (!packet) return std::nullopt;
  const End& peer = world_.model.end(victim.ref.peer());
  Flight flight = to(victim, wire::Opcode::kNack);
  wire::Nack nack;
  nack.source_context = static_cast<std::uint16_t>(peer.config.number);
  nack.destination_context = static_cast<std::uint16_t>(victim.end.config.number);
  nack.psn = victim.out.psn(*packet);
  echo(victim, *packet, nack.entropy, nack.timestamp_ticks);
  if (attack == Attack::kNackPath) {
    nack.entropy ^= 1U << random_.below(32);
  } else {
    nack.source_context ^= static_cast<std::uint16_t>(1U << random_.below(16));
  }
  if (attack == Attack::kFailureContext) nack.reason = wire::NackReason::kUnexpectedEvent;
  flight.packet.bth.psn = nack.psn;
  flight.packet.body = nack;
  return flight;
}

Flight Forger::forge_probe(const Victim& victim) {
  const End& peer = world_.model.end(victim.ref.peer());
  Flight flight = to(victim, wire::Opcode::kProbe);
  wire::Probe probe;
  probe.probe_id = static_cast<std::uint16_t>(random_.below(0x8000));
  probe.source_context = static_cast<std::uint16_t>(peer.config.number);
  probe.destination_context = static_cast<std::uint16_t>(victim.end.config.number);
  probe.source_context ^= static_cast<std::uint16_t>(1U << random_.below(16));
  flight.packet.body = probe;
  return flight;
}

std::optional<Flight> Forger::forge_ack(Attack attack, const Victim& victim) {
  const auto packet = in_flight(victim);
  if (!packet) return std::nullopt;
  const std::size_t message = victim.out.shape(*packet).message;
  Flight flight = to(victim, wire::Opcode::kAck);
  flight.packet.bth.psn = victim.out.psn(*packet);
  wire::Ack ack{.syndrome = wire::kSyndromeAck, .msn = 0};
  if (attack == Attack::kAckOfUnsent) {
    ack.msn = static_cast<std::uint32_t>(victim.out.sent_messages()) + random_.between(1, 0x1000);
  } else if (attack == Attack::kNakOfNothing || attack == Attack::kNakCount) {
    auto& attacked = world_.model.end(victim.ref).attacked_packets;
    if (!attacked.insert(*packet).second) return std::nullopt;
    ack.syndrome =
        random_.one_in(2) ? wire::kSyndromeNakInvalidRequest : wire::kSyndromeNakRemoteAccess;
    const bool counts = attack == Attack::kNakOfNothing;
    ack.msn = counts ? static_cast<std::uint32_t>(message)
                     : static_cast<std::uint32_t>(message) + random_.between(1, 0x1000);
  } else {
    static constexpr std::uint8_t kEnds[] = {wire::kSyndromeNakRemoteOperation,
                                             wire::kSyndromeNakImmediateLimit,
                                             wire::kSyndromeNakReceiveQueueEmpty};
    ack.syndrome = kEnds[random_.below(std::size(kEnds))];
    ack.msn = static_cast<std::uint32_t>(message) + random_.between(1, 0x1000);
  }
  flight.packet.body = ack;
  return flight;
}

Flight Forger::forge_endpoint(Attack attack, const Victim& victim) {
  const bool claim = attack == Attack::kPortClaim;
  Flight flight =
      to(victim, claim ? wire::Opcode::kEndpointRequest : wire::Opcode::kEndpointResponse);
  flight.provenance = Provenance::kHarmless;
  flight.packet.bth.destination = kEndpointQp;
  flight.packet.bth.psn = Psn(random_.below(0x1'0000));
  if (claim) {
    const std::uint32_t up = random_.below(1U << world_.stage.swarm.ports);
    flight.packet.body = wire::EndpointRequest{.port_status = up};
  } else {
    flight.packet.body = wire::EndpointResponse{};
  }
  return flight;
}

std::optional<Flight> Forger::perfect_lie(const Victim& victim) {
  const std::size_t done = victim.out.sent_messages();
  if (done == 0) return std::nullopt;
  const Message& last = victim.out.messages()[done - 1];
  const std::uint64_t end = last.first_packet + last.packet_count;
  if (victim.out.contiguous() >= end) return std::nullopt;
  Flight flight = to(victim, wire::Opcode::kAck);
  flight.provenance = Provenance::kHarmless;  // so it seems
  flight.packet.bth.psn = victim.out.psn(end - 1);
  flight.packet.body = wire::Ack{.syndrome = wire::kSyndromeAck,
                                 .msn = static_cast<std::uint32_t>(done) & 0xFF'FFFF};
  return flight;
}

}  // namespace mrc::dst
