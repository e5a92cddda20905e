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
    world_.deliver_now(std::move(*flight));
  }
}

std::optional<Flight> Forger::forge(Attack attack, const Victim& victim) {
  switch (attack) {
    case Attack::kWriteOfAStranger:
    case Attack::kWriteBeyondWindow:
    case Attack::kWriteFarBeyond:
      return forge_write(attack, victim);
    case Attack::kSackOfUnsent:
    case Attack::kSackOfAnotherAge:
    case Attack::kProbeAnswerStamp:
      return forge_sack(attack, victim);
    case Attack::kAckOfUnsent:
    case Attack::kFailureNakCount:
      return forge_ack(attack, victim);
    case Attack::kNackPath:
      return forge_nack(attack, victim);
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
  if (attack == Attack::kWriteBeyondWindow) {
    return write(victim, edge + window + random_.below(window));
  }
  return write(victim, edge + 2 * std::uint64_t{window} + random_.below(0x40'0000));
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

std::optional<Flight> Forger::forge_nack(Attack /*attack*/, const Victim& victim) {
  const auto packet = in_flight(victim);
  if (!packet) return std::nullopt;
  const End& peer = world_.model.end(victim.ref.peer());
  Flight flight = to(victim, wire::Opcode::kNack);
  wire::Nack nack;
  nack.source_context = static_cast<std::uint16_t>(peer.config.number);
  nack.destination_context = static_cast<std::uint16_t>(victim.end.config.number);
  nack.psn = victim.out.psn(*packet);
  echo(victim, *packet, nack.entropy, nack.timestamp_ticks);
  nack.entropy ^= 1U << random_.below(32);
  flight.packet.bth.psn = nack.psn;
  flight.packet.body = nack;
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
