#include "dst/adversary.h"

#include "dst/world.h"

namespace mrc::dst {
namespace {

constexpr Fault kKinds[] = {
    Fault::kGuessedKey, Fault::kGuessedPsn,    Fault::kGapFlood,
    Fault::kAckUnsent,  Fault::kOptimisticAck, Fault::kContradictorySack,
    Fault::kProbeFlood, Fault::kQpScan,        Fault::kForgedPortStatus,
};

}  // namespace

Adversary::Adversary(World& world)
    : world_(world), random_(world.stage.swarm.seed, Stream::kAdversary) {}

void Adversary::start() {
  for (const Fault kind : kKinds) {
    if (world_.stage.swarm.on(kind)) schedule_next(kind);
  }
}

void Adversary::schedule_next(Fault kind) {
  // Many small volleys.
  const DurationNs mean = world_.stage.swarm.fault_phase_ns / world_.stage.swarm.rate(kind) / 8 + 1;
  world_.stage.queue.push(world_.stage.now + random_.duration(1, 2 * mean), Happening::kAdversary,
                          static_cast<std::uint32_t>(kind));
}

std::optional<EndRef> Adversary::random_victim() {
  const auto ends = world_.model.ends();
  if (ends.empty()) return std::nullopt;
  return random_.pick(ends);
}

Address Adversary::foreign_address() { return {0xBAD, random_.bits() | (std::uint64_t{1} << 63)}; }

void Adversary::on_fault(Fault kind) {
  if (!world_.stage.faults_on) return;
  schedule_next(kind);
  for (unsigned i = random_.between(1, 24); i != 0; --i) {
    const auto victim = random_victim();
    if (!victim) return;
    const Host& host = *world_.hosts[world_.model.end(*victim).host];
    if (!host.alive() || host.paused_until() > world_.stage.now) continue;
    world_.stage.count(kind);
    world_.deliver_now(forge(*victim, kind));
  }
}

Flight Adversary::forge(EndRef victim, Fault kind) {
  Flight flight;
  switch (kind) {
    case Fault::kGuessedKey:
      flight = forged_write(victim, psn_outside_window(victim));
      std::get<wire::Write>(flight.packet.body).key =
          Rkey{static_cast<std::uint32_t>(random_.bits())};
      break;
    case Fault::kGuessedPsn:
    case Fault::kGapFlood:
      flight = forged_write(victim, psn_outside_window(victim));
      break;
    case Fault::kQpScan:
      flight = forged_write(victim, Psn(static_cast<std::uint32_t>(random_.bits())));
      do {
        flight.packet.bth.destination = QpNumber{random_.below(kQpNumberMask)};
      } while (flight.packet.bth.destination == kEndpointQp ||
               world_.model.find(flight.to, flight.packet.bth.destination));
      break;
    case Fault::kOptimisticAck: {
      const Flow& flow = world_.model.outgoing(victim);
      flight = forged_sack(victim, static_cast<std::int64_t>(flow.sent_packets()) - 1);
      flight.source = foreign_address();
      break;
    }
    case Fault::kAckUnsent:
      flight = unsent_ack(victim);
      break;
    case Fault::kContradictorySack:
      flight = contradictory_sack(victim);
      break;
    case Fault::kProbeFlood:
      flight = forged_probe(victim);
      break;
    default:
      flight = forged_port_status(victim);
      break;
  }
  return flight;
}

Flight Adversary::to_victim(EndRef victim) {
  const End& end = world_.model.end(victim);
  Flight flight;
  flight.provenance = Provenance::kForged;
  flight.to = end.host;
  flight.from = world_.model.end(victim.peer()).host;
  flight.source = end.rtr.remote;
  flight.port = PortId{static_cast<std::uint8_t>(random_.between(1, world_.stage.swarm.ports))};
  flight.entropy = static_cast<std::uint32_t>(random_.bits());
  flight.traffic_class = core::TrafficClass::kControl;
  flight.packet.bth.destination = end.config.number;
  return flight;
}

// From a foreign address any PSN may be tried; in the name of the peer only one that is not
// expected.
Psn Adversary::psn_outside_window(EndRef victim) {
  const End& end = world_.model.end(victim);
  const Flow& flow = world_.model.incoming(victim);
  const std::uint32_t window = std::uint32_t{end.rtr.mpr_dest} * core::kWindowUnitPsns;
  const Psn expected = flow.psn(flow.contiguous());
  switch (random_.below(3)) {
    case 0:
      return expected + window + random_.below(window);  // answered
    case 1:
      return expected + 2 * window + random_.below(0x40'0000);  // not answered
    default:
      return expected - 1 - random_.below(0x10'0000);  // looks like a duplicate
  }
}

Flight Adversary::forged_write(EndRef victim, Psn psn) {
  const End& end = world_.model.end(victim);
  const auto& region = world_.hosts[end.host]->memory().region(end.region);
  Flight flight = to_victim(victim);
  wire::Write write;
  write.msn = static_cast<std::uint16_t>(random_.bits());
  write.address = region.what.address + random_.below(1024);
  write.key = region.key.value_or(Rkey{0});
  flight.payload_length = random_.between(1, end.rtr.path_mtu);
  flight.payload_address = random_.bits();
  write.message_length = flight.payload_length;
  flight.traffic_class = core::TrafficClass::kTrimmable;
  flight.packet.bth.opcode = wire::Opcode::kWriteOnly;
  flight.packet.bth.psn = psn;
  flight.packet.bth.retransmission = random_.one_in(2);
  flight.packet.bth.ack_request = random_.one_in(2);
  if (random_.one_in(4)) {
    write.immediate = static_cast<std::uint32_t>(random_.bits());
    flight.packet.bth.opcode = wire::Opcode::kWriteOnlyImm;
  }
  flight.packet.body = write;
  if (random_.one_in(3)) {
    const Flow& flow = world_.model.incoming(victim);
    flight.source = foreign_address();
    flight.packet.bth.psn = flow.psn(flow.contiguous());
  }
  return flight;
}

Flight Adversary::forged_sack(EndRef victim, std::int64_t cumulative) {
  const Flow& flow = world_.model.outgoing(victim);
  const auto ahead = static_cast<std::uint32_t>(cumulative & Psn::kMask);
  Flight flight = to_victim(victim);
  wire::Sack sack;
  sack.source_context = static_cast<std::uint16_t>(world_.model.end(victim.peer()).config.number);
  sack.destination_context = static_cast<std::uint16_t>(world_.model.end(victim).config.number);
  sack.cumulative = flow.first_psn() + ahead;
  sack.entropy = static_cast<std::uint32_t>(random_.bits());
  sack.window_units = world_.model.end(victim.peer()).rtr.dynamic_mpr
                          ? world_.model.end(victim.peer()).window_units
                          : std::uint8_t{0};
  sack.bitmap_offset = 1;
  flight.packet.bth.opcode = wire::Opcode::kSack;
  flight.packet.bth.psn = sack.cumulative;
  flight.packet.body = sack;
  return flight;
}

Flight Adversary::unsent_ack(EndRef victim) {
  const Flow& flow = world_.model.outgoing(victim);
  const auto unsent = static_cast<std::int64_t>(flow.sent_packets()) + random_.below(0x20'0000);
  Flight flight = forged_sack(victim, unsent);
  if (random_.one_in(2)) {
    const wire::Ack ack{
        .syndrome = wire::kSyndromeAck,
        .msn = static_cast<std::uint32_t>(flow.messages().size()) + 2 + random_.below(0x1000)};
    flight.packet.bth.opcode = wire::Opcode::kAck;
    flight.packet.body = ack;
  }
  return flight;
}

// In the name of the peer: an old left edge, bits for what was never sent, a window where none was
// agreed. Whoever believes what is news in it believes nothing that is not so.
Flight Adversary::contradictory_sack(EndRef victim) {
  const End& end = world_.model.end(victim);
  const Flow& flow = world_.model.outgoing(victim);
  const auto known = static_cast<std::int64_t>(end.known_contiguous);
  const std::int64_t cumulative = known - 1 - random_.between(0, 200);
  Flight flight = forged_sack(victim, cumulative);
  flight.provenance = Provenance::kHarmless;
  auto& sack = std::get<wire::Sack>(flight.packet.body);
  if (!end.rtr.dynamic_mpr) sack.window_units = static_cast<std::uint8_t>(random_.below(256));
  const std::int64_t unsent = static_cast<std::int64_t>(flow.sent_packets()) - cumulative;
  if (random_.one_in(2) && unsent < 0x7F00) {
    sack.bitmap_offset = static_cast<std::int16_t>(unsent);
    sack.bitmap = random_.bits();
  }
  return flight;
}

Flight Adversary::forged_probe(EndRef victim) {
  Flight flight = to_victim(victim);
  flight.packet.bth.opcode = wire::Opcode::kProbe;
  wire::Probe probe;
  probe.probe_id = static_cast<std::uint16_t>(random_.bits());
  probe.source_context = static_cast<std::uint16_t>(world_.model.end(victim.peer()).config.number);
  probe.destination_context = static_cast<std::uint16_t>(world_.model.end(victim).config.number);
  flight.packet.body = probe;
  if (random_.one_in(2)) {
    flight.source = foreign_address();
  } else {
    flight.provenance = Provenance::kHarmless;
  }
  return flight;
}

Flight Adversary::forged_port_status(EndRef victim) {
  Flight flight = to_victim(victim);
  flight.provenance = Provenance::kHarmless;
  flight.source = foreign_address();
  flight.packet.bth.opcode = wire::Opcode::kEndpointRequest;
  flight.packet.bth.destination = kEndpointQp;
  flight.packet.bth.psn = Psn(random_.below(0x1'0000));
  flight.packet.body = wire::EndpointRequest{};
  return flight;
}

}  // namespace mrc::dst
