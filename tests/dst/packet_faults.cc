#include "dst/packet_faults.h"

#include <algorithm>

#include "dst/carriage.h"

namespace mrc::dst {
namespace {

constexpr std::size_t kArchiveCapacity = 256;

bool is_feedback(const Flight& flight) {
  using wire::Opcode;
  const Opcode opcode = flight.packet.bth.opcode;
  return opcode == Opcode::kSack || opcode == Opcode::kAck || opcode == Opcode::kNack;
}

// An address that no host has.
Address foreign_address(Random& random) { return {0xDEAD, random.bits() | (1ULL << 63)}; }

}  // namespace

PacketFaults::PacketFaults(Stage& stage, Network& network, const Model& model)
    : stage_(stage),
      network_(network),
      model_(model),
      random_(stage.swarm.seed, Stream::kPacketFaults) {
  archive_.reserve(kArchiveCapacity);
}

bool PacketFaults::strikes(Fault fault) {
  return stage_.active(fault) && random_.ppm(stage_.swarm.rate(fault));
}

bool PacketFaults::lost_by_kind(const Flight& flight) {
  const wire::Opcode opcode = flight.packet.bth.opcode;
  if (is_feedback(flight) && strikes(Fault::kLossFeedback)) {
    stage_.count(Fault::kLossFeedback);
    return true;
  }
  if (!flight.is_write()) return false;
  if (flight.packet.bth.retransmission && strikes(Fault::kLossRetransmission)) {
    stage_.count(Fault::kLossRetransmission);
    return true;
  }
  if (wire::starts_message(opcode) && strikes(Fault::kLossFirstOfMessage)) {
    stage_.count(Fault::kLossFirstOfMessage);
    return true;
  }
  if (wire::ends_message(opcode) && strikes(Fault::kLossLastOfMessage)) {
    stage_.count(Fault::kLossLastOfMessage);
    return true;
  }
  return false;
}

bool PacketFaults::lost(const Flight& flight) {
  if (strikes(Fault::kLoss)) {
    stage_.count(Fault::kLoss);
    return true;
  }
  if (strikes(Fault::kLossBurst)) burst_left_ = random_.between(2, 40);
  if (stage_.faults_on && burst_left_ != 0) {
    --burst_left_;
    stage_.count(Fault::kLossBurst);
    return true;
  }
  if (stage_.active(Fault::kLossPeriodic)) {
    const std::uint64_t period = 1'000'000 / stage_.swarm.rate(Fault::kLossPeriodic) + 2;
    if (sent_ % period == 0) {
      stage_.count(Fault::kLossPeriodic);
      return true;
    }
  }
  return lost_by_kind(flight);
}

DurationNs PacketFaults::reorder_delay() {
  if (strikes(Fault::kReorderSmall)) {
    stage_.count(Fault::kReorderSmall);
    return random_.duration(100, 5 * kMicrosecondNs);
  }
  if (strikes(Fault::kReorderWindow)) {
    stage_.count(Fault::kReorderWindow);
    return random_.duration(20 * kMicrosecondNs, 400 * kMicrosecondNs);
  }
  return 0;
}

// A flight must be packed before bytes of it can be altered; structs stand for what a parser made
// of the altered bytes.
void PacketFaults::flip_bytes(Flight& flight, Fault kind) {
  const std::size_t split = flight.frame.size() - flight.payload_length - 4;
  const std::uint32_t flips = random_.between(1, 3);
  for (std::uint32_t i = 0; i < flips; ++i) {
    const bool header = kind == Fault::kFlipHeader || flight.payload_length == 0;
    const std::size_t at =
        header ? random_.below(static_cast<std::uint32_t>(split))
               : split + random_.below(static_cast<std::uint32_t>(flight.frame.size() - split));
    flight.frame[at] ^= static_cast<std::byte>(1U << random_.below(8));
  }
}

void PacketFaults::flip(Flight& flight, Fault kind) {
  stage_.count(kind);
  stage_.trace.fault(stage_.now, flight, kind);
  if (stage_.swarm.carries_bytes) return flip_bytes(flight, kind);
  flight.corrupt = true;
  if (kind != Fault::kFlipHeader) return;
  wire::Bth& bth = flight.packet.bth;
  if (random_.one_in(2)) bth.psn = Psn(bth.psn.value() ^ (1U << random_.below(24)));
  if (random_.one_in(4)) {
    bth.destination =
        QpNumber{static_cast<std::uint32_t>(bth.destination) ^ (1U << random_.below(24))};
  }
}

void PacketFaults::resize(Flight& flight) {
  if (!stage_.swarm.carries_bytes) return;
  if (strikes(Fault::kTruncate)) {
    stage_.count(Fault::kTruncate);
    stage_.trace.fault(stage_.now, flight, Fault::kTruncate);
    flight.frame.resize(random_.below(static_cast<std::uint32_t>(flight.frame.size())));
  } else if (strikes(Fault::kExtend)) {
    stage_.count(Fault::kExtend);
    stage_.trace.fault(stage_.now, flight, Fault::kExtend);
    flight.frame.resize(flight.frame.size() + random_.between(1, 64), std::byte{0xEE});
  }
}

void PacketFaults::alter(Flight& flight) {
  const bool may_trim = flight.is_write() && flight.trim == core::TrimState::kWhole &&
                        flight.traffic_class != core::TrafficClass::kNoTrim;
  if (may_trim && strikes(Fault::kTrim)) {
    stage_.count(Fault::kTrim);
    stage_.trace.fault(stage_.now, flight, Fault::kTrim);
    trim_flight(flight, core::TrimState::kTrimmed, stage_.swarm.carries_bytes);
  } else if (may_trim && strikes(Fault::kTrimLastHop)) {
    stage_.count(Fault::kTrimLastHop);
    stage_.trace.fault(stage_.now, flight, Fault::kTrimLastHop);
    trim_flight(flight, core::TrimState::kTrimmedLastHop, stage_.swarm.carries_bytes);
  } else if (strikes(Fault::kFlipHeader)) {
    flip(flight, Fault::kFlipHeader);
  } else if (strikes(Fault::kFlipPayload)) {
    flip(flight, Fault::kFlipPayload);
  } else {
    resize(flight);
  }
}

void PacketFaults::send_copy(const Flight& flight, DurationNs delay_ns) {
  const std::uint32_t slot = network_.flights().take();
  network_.flights()[slot] = flight;
  network_.send({slot, delay_ns, true});
}

void PacketFaults::duplicate(const Flight& original) {
  if (strikes(Fault::kDuplicateNow)) {
    stage_.count(Fault::kDuplicateNow);
    send_copy(original, random_.duration(0, 200));
  }
  if (strikes(Fault::kDuplicateLate)) {
    stage_.count(Fault::kDuplicateLate);
    send_copy(original, random_.duration(10 * kMicrosecondNs, 2 * kMillisecondNs));
  }
}

// Fields that somebody who does not see the traffic could have set: a number that leads nowhere, a
// PSN far from the window, an address that is not the peer's.
void PacketFaults::mutate(Flight& flight) {
  wire::Bth& bth = flight.packet.bth;
  switch (flight.is_write() ? random_.below(3) : random_.below(2)) {
    case 0:
      flight.source = foreign_address(random_);
      break;
    case 1: {
      QpNumber number{random_.below(kQpNumberMask)};
      while (number == kEndpointQp || model_.find(flight.to, number)) {
        number = QpNumber{random_.below(kQpNumberMask)};
      }
      bth.destination = number;
      break;
    }
    default:
      bth.psn = bth.psn + random_.between(0x20'0000, 0x60'0000);
      break;
  }
}

void PacketFaults::add_mutant(const Flight& original) {
  const bool foreign = strikes(Fault::kForgedSource);
  if (!foreign && !strikes(Fault::kMutateField)) return;
  stage_.count(foreign ? Fault::kForgedSource : Fault::kMutateField);
  Flight forged = original;
  forged.provenance = Provenance::kForged;
  if (foreign) {
    forged.source = foreign_address(random_);
  } else {
    mutate(forged);
  }
  launch_forged(std::move(forged));
}

bool PacketFaults::message_done(const Flight& flight) const {
  if (flight.origin.connection == kNoConnection || !flight.is_write()) return false;
  const Connection& connection = model_.connection(flight.origin.connection);
  const Flow& flow = connection.flows[flight.origin.side];
  const std::int64_t packet = flow.packet_number(flight.packet.bth.psn);
  return packet >= 0 && flow.contiguous() > static_cast<std::uint64_t>(packet);
}

void PacketFaults::replay() {
  if (archive_.empty()) return;
  const Flight& old = random_.pick(archive_);
  const bool gone =
      old.origin.connection != kNoConnection && model_.end(old.origin).state == EndState::kGone;
  Fault kind = Fault::kStaleReplay;
  if (gone && strikes(Fault::kReplayAfterReuse)) {
    kind = Fault::kReplayAfterReuse;
  } else if (message_done(old) && strikes(Fault::kDuplicateAfterCompletion)) {
    kind = Fault::kDuplicateAfterCompletion;
  } else if (!strikes(Fault::kStaleReplay)) {
    return;
  }
  stage_.count(kind);
  stage_.trace.fault(stage_.now, old, kind);
  send_copy(old, 0);
}

void PacketFaults::remember(const Flight& flight) {
  const bool wanted = stage_.active(Fault::kStaleReplay) ||
                      stage_.active(Fault::kReplayAfterReuse) ||
                      stage_.active(Fault::kDuplicateAfterCompletion);
  if (!wanted || !random_.one_in(8)) return;
  if (archive_.size() < kArchiveCapacity) {
    archive_.push_back(flight);
  } else {
    archive_[random_.below(kArchiveCapacity)] = flight;
  }
}

void PacketFaults::launch(std::uint32_t slot) {
  ++sent_;
  Flight& flight = network_.flights()[slot];
  if (stage_.swarm.carries_bytes) pack(flight, stage_.swarm);
  if (!stage_.faults_on) return network_.send({slot, 0, false});
  remember(flight);
  duplicate(flight);
  add_mutant(flight);
  replay();
  if (lost(flight)) {
    stage_.trace.say(stage_.now, "fault lost: %s", describe(flight.packet).c_str());
    return network_.flights().release(slot);
  }
  if (stage_.swarm.hosts > 2 && strikes(Fault::kMisforward)) {
    stage_.count(Fault::kMisforward);
    flight.to = (flight.to + random_.between(1, stage_.swarm.hosts - 1)) % stage_.swarm.hosts;
    flight.misdirected = true;
  }
  alter(flight);
  const DurationNs delay_ns = reorder_delay();
  network_.send({slot, delay_ns, delay_ns != 0});
}

void PacketFaults::launch_forged(Flight flight) {
  flight.provenance = Provenance::kForged;
  if (stage_.swarm.carries_bytes) pack(flight, stage_.swarm);
  send_copy(flight, 0);
}

}  // namespace mrc::dst
