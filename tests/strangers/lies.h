// Packets in the name of a peer that are right in all respects but one, which is always wrong: no
// guess hits by chance, so that whatever is taken is a check that is missing. The same lies that
// would ask the victim for an answer about a packet of its peer (keys, lengths) are told to an
// engine of their own in keys.h, since of two in a row one is meant to be believed (ADR 26).
#pragma once

#include <cstdint>

#include "base/prng.h"
#include "strangers/stream.h"
#include "wire/drop_reason.h"

namespace mrc::strangers {

enum class Lie : std::uint8_t {
  kSource,
  kQueuePair,
  kFarPsn,
  kBeyondWindow,
  kAncient,
  kNumber,
  kSackContext,
  kSackUnsent,
  kSackOld,
  kNackContext,
  kNackPath,
  kFailureContext,
  kProbeContext,
  kAckUnsent,
  kNakCount,
  kFailureCount,
  kCount,
};
inline constexpr std::size_t kLieCount = static_cast<std::size_t>(Lie::kCount);

struct LieInfo {
  const char* text;
  DropReason stop;  // what it must meet; the true packets of the stream may be faster now and then
};
inline constexpr LieInfo kLies[] = {
    {"write, source", DropReason::kWrongSource},
    {"write, queue pair", DropReason::kUnknownQp},
    {"write, PSN far away", DropReason::kFarOutOfWindow},
    {"write, PSN beyond the window", DropReason::kOutOfWindow},
    {"write, PSN of long ago", DropReason::kFarOutOfWindow},
    {"write, message number", DropReason::kWrongNumber},
    {"SACK, context", DropReason::kWrongContext},
    {"SACK, PSN not sent", DropReason::kStaleFeedback},
    {"SACK, PSN of long ago", DropReason::kStaleFeedback},
    {"NACK trimmed, context", DropReason::kWrongContext},
    {"NACK trimmed, EV", DropReason::kStaleFeedback},
    {"NACK 0x19, context", DropReason::kWrongContext},
    {"probe, context", DropReason::kWrongContext},
    {"ACK, count of messages", DropReason::kStaleFeedback},
    {"NAK 0x61/62, count of messages", DropReason::kStaleFeedback},
    {"NAK 0x63/65/66, count of messages", DropReason::kStaleFeedback},
};
static_assert(std::size(kLies) == kLieCount);

// Makes what somebody sends who knows everything about both ends of a stream.
class Liar {
 public:
  Liar(Stream& stream, std::uint64_t seed) : stream_(stream), prng_(seed) {}

  // Looks at both ends; what follows is about them as they are now.
  void look(int victim);
  void make(Lie lie, core::Arrival& arrival, wire::Packet& packet);

 private:
  void make_write(Lie lie, core::Arrival& arrival, wire::Packet& packet);
  void make_sack(Lie lie, wire::Packet& packet);
  void make_nack(Lie lie, wire::Packet& packet);
  void make_ack(Lie lie, wire::Packet& packet);
  wire::Write write_at(Psn psn);
  std::uint16_t other_context();

  Stream& stream_;
  Prng prng_;
  int victim_ = 0;
  core::QpStatus victim_status_;
  core::QpStatus peer_status_;
};

}  // namespace mrc::strangers
