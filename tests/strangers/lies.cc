#include "strangers/lies.h"

namespace mrc::strangers {
namespace {

constexpr std::uint32_t kPsns = 1U << 24;
constexpr std::uint32_t kFar = 0x10'0000;
constexpr QpNumber kQp = test::Pair::kQp;
constexpr auto kContext = static_cast<std::uint16_t>(kQp);

}  // namespace

void Liar::look(int victim) {
  victim_ = victim;
  victim_status_ = stream_.status(victim);
  peer_status_ = stream_.status(1 - victim);
}

void Liar::make(Lie lie, core::Arrival& arrival, wire::Packet& packet) {
  arrival = Stream::arrival_at(victim_, prng_);
  packet.bth = {};
  packet.bth.destination = kQp;
  switch (lie) {
    case Lie::kSackContext:
    case Lie::kSackUnsent:
    case Lie::kSackOld:
      return make_sack(lie, packet);
    case Lie::kNackContext:
    case Lie::kNackPath:
    case Lie::kFailureContext:
      return make_nack(lie, packet);
    case Lie::kAckUnsent:
    case Lie::kNakCount:
    case Lie::kFailureCount:
      return make_ack(lie, packet);
    case Lie::kProbeContext:
      packet.bth.opcode = wire::Opcode::kProbe;
      packet.body = wire::Probe{.probe_id = static_cast<std::uint16_t>(prng_.next32()),
                                .source_context = other_context(),
                                .destination_context = kContext};
      return;
    default:
      return make_write(lie, arrival, packet);
  }
}

std::uint16_t Liar::other_context() {
  return static_cast<std::uint16_t>(kContext ^ (1 + prng_.below(0xFFFF)));
}

// What the peer would send there.
wire::Write Liar::write_at(Psn psn) {
  const std::uint32_t number = (psn.value() - stream_.first_psn().value()) & (kPsns - 1);
  return {.msn = static_cast<std::uint16_t>(number / Stream::kPacketsEach),
          .address = 0x10000 + test::Pair::kMemoryBytes / 2,
          .key = stream_.key(victim_),
          .message_length = Stream::kMtu};
}

void Liar::make_write(Lie lie, core::Arrival& arrival, wire::Packet& packet) {
  const Psn edge = victim_status_.expected_psn;
  packet.bth.opcode = wire::Opcode::kWriteOnly;
  arrival.payload_length = Stream::kMtu;
  // Not sent yet, and soon awaited.
  Psn psn = peer_status_.next_psn + prng_.below(64);
  if (lie == Lie::kFarPsn) psn = edge + 2 * Stream::kWindow + prng_.below(kPsns / 2 - kFar);
  if (lie == Lie::kBeyondWindow) psn = edge + Stream::kWindow + prng_.below(Stream::kWindow);
  if (lie == Lie::kAncient) psn = edge - 2 * Stream::kWindow - 1 - prng_.below(kFar);
  wire::Write write = write_at(psn);
  if (lie == Lie::kSource) arrival.source = {0xBAD, prng_.next64() | 1};
  if (lie == Lie::kNumber)
    write.msn = static_cast<std::uint16_t>(write.msn + Stream::kWindow + prng_.below(0x4000));
  if (lie == Lie::kQueuePair) {
    const std::uint32_t other = static_cast<std::uint32_t>(kQp) ^ (1 + prng_.below(kPsns - 1));
    packet.bth.destination =
        other == static_cast<std::uint32_t>(kEndpointQp) ? QpNumber{kPsns - 2} : QpNumber{other};
  }
  packet.bth.psn = psn;
  packet.body = write;
}

void Liar::make_sack(Lie lie, wire::Packet& packet) {
  packet.bth.opcode = wire::Opcode::kSack;
  wire::Sack sack{.entropy = 0x1000,
                  .source_context = kContext,
                  .destination_context = kContext,
                  .cumulative = victim_status_.next_psn - 1,
                  .bitmap_offset = 1,
                  .bitmap = prng_.next64()};
  if (lie == Lie::kSackContext) sack.source_context = other_context();
  if (lie == Lie::kSackUnsent) sack.cumulative = victim_status_.next_psn + prng_.below(kFar);
  if (lie == Lie::kSackOld) {
    sack.cumulative =
        victim_status_.oldest_unacknowledged - Stream::kWindow - 2 - prng_.below(kFar);
  }
  packet.bth.psn = sack.cumulative;
  packet.body = sack;
}

void Liar::make_nack(Lie lie, wire::Packet& packet) {
  packet.bth.opcode = wire::Opcode::kNack;
  wire::Nack nack{.reason = lie == Lie::kFailureContext ? wire::NackReason::kUnexpectedEvent
                                                        : wire::NackReason::kTrimmed,
                  .entropy = 0x1000 + prng_.below(32),
                  .source_context = kContext,
                  .destination_context = kContext,
                  .psn = victim_status_.oldest_unacknowledged};
  if (lie == Lie::kNackPath) {
    nack.entropy |= 0x8000'0000;
  } else {
    nack.source_context = other_context();
  }
  packet.bth.psn = nack.psn;
  packet.body = nack;
}

void Liar::make_ack(Lie lie, wire::Packet& packet) {
  static constexpr std::uint8_t kRefusals[] = {wire::kSyndromeNakInvalidRequest,
                                               wire::kSyndromeNakRemoteAccess};
  static constexpr std::uint8_t kFailures[] = {wire::kSyndromeNakRemoteOperation,
                                               wire::kSyndromeNakImmediateLimit,
                                               wire::kSyndromeNakReceiveQueueEmpty};
  packet.bth.opcode = wire::Opcode::kAck;
  packet.bth.psn = victim_status_.oldest_unacknowledged;
  wire::Ack ack{.syndrome = wire::kSyndromeAck};
  // More than were ever posted.
  ack.msn =
      static_cast<std::uint32_t>(stream_.posted(victim_) + 1 + prng_.below(0x1000)) & (kPsns - 1);
  if (lie == Lie::kNakCount) ack.syndrome = kRefusals[prng_.below(2)];
  if (lie == Lie::kFailureCount) ack.syndrome = kFailures[prng_.below(3)];
  packet.body = ack;
}

}  // namespace mrc::strangers
