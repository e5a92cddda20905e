// Control packets that wait for a port: SACKs, NACKs, transport ACKs and answers to probes and
// endpoint requests.
//
// Owns the entries and their bound. A quarter of the capacity is for answers to EV probes, which
// anybody may send: 512 of them, waiting for one busy port, must not take the room of SACKs, nor
// their turn. Beside the capacity there is room for one transport ACK of each queue pair: a burst
// of questions to some must not keep the others from completing.
// What an entry says is read off its queue pair when it leaves, so that it tells the newest state;
// here nothing is built.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>

#include "base/planted_bug.h"
#include "base/ring.h"
#include "base/types.h"
#include "core/slot.h"
#include "wire/packet.h"

namespace mrc::core {

struct ControlEntry {
  enum class Kind : std::uint8_t { kSack, kProbeAnswer, kNack, kAck, kNak, kEndpointResponse };
  struct QpPart {
    std::uint32_t slot = kNoSlot;
    Psn psn{};  // being answered
    std::uint16_t incarnation = 0;
  };
  ControlEntry() : qp() {}

  bool belongs_to(std::uint32_t slot) const {
    return kind != Kind::kEndpointResponse && qp.slot == slot;
  }
  bool answers_ev_probe() const {
    return kind == Kind::kEndpointResponse && op == wire::EndpointOp::kEvProbe;
  }

  Kind kind = Kind::kSack;
  wire::PathMark mark = wire::PathMark::kNone;
  wire::NackReason reason = wire::NackReason::kTrimmed;
  std::uint8_t syndrome = 0;
  wire::EndpointOp op = wire::EndpointOp::kEvProbe;
  PortId port{1};             // where the packet being answered came in
  std::uint16_t id = 0;       // probe or request id
  wire::Timestamp timestamp;  // to be reflected
  std::uint32_t entropy = 0;  // of the packet being answered
  TimeNs arrived_at = 0;
  union {
    QpPart qp;            // all kinds but endpoint responses
    Address destination;  // endpoint responses only
  };
};
static_assert(sizeof(ControlEntry) == 40);

// In order of arrival, but for those that cannot leave yet.
class ControlLine {
 public:
  ControlLine(std::size_t capacity, std::size_t queue_pairs)
      : capacity_(capacity), entries_(capacity + queue_pairs) {}

  bool empty() const { return entries_.empty(); }
  std::size_t size() const { return entries_.size(); }
  const ControlEntry& front() const { return entries_.front(); }

  // False when there is no room. At most one transport ACK of each queue pair may wait.
  bool push(const ControlEntry& entry) {
    const bool is_ack = entry.kind == ControlEntry::Kind::kAck;
    const bool has_room = (is_ack && !MRC_BUG(kAcksShareTheQueue)) || others() < capacity_;
    if (!has_room || !entries_.push_back(entry)) return false;
    if (is_ack) ++acks_;
    return true;
  }
  // The same entry several times, as long as half of the room stays free for others. False when not
  // even one found room.
  bool push_copies(const ControlEntry& entry, unsigned copies) {
    if (!push(entry)) return false;
    for (unsigned i = 1; i < copies && others() < capacity_ / 2; ++i)
      push(entry);
    return true;
  }
  void pop() {
    if (front().kind == ControlEntry::Kind::kAck) --acks_;
    entries_.pop_front();
  }
  // The first cannot leave now: the others get their chance before it.
  void defer() {
    const ControlEntry first = front();
    entries_.pop_front();
    entries_.push_back(first);
  }
  // The queue pair ends, and its answers with it.
  void forget(std::uint32_t slot) {
    for (std::size_t n = entries_.size(); n > 0; --n) {
      if (front().belongs_to(slot)) {
        pop();
      } else {
        defer();
      }
    }
  }

 private:
  std::size_t others() const { return entries_.size() - acks_; }

  std::size_t capacity_;
  Ring<ControlEntry> entries_;
  std::size_t acks_ = 0;
};

class ControlQueue {
 public:
  ControlQueue(std::size_t capacity, std::size_t queue_pairs)
      : lines_{ControlLine(capacity - ev_probes_of(capacity), queue_pairs),
               ControlLine(std::max<std::size_t>(ev_probes_of(capacity), 1), 0)} {}

  bool empty() const { return lines_[kPeers].empty() && lines_[kEvProbes].empty(); }
  // Answers to peers first.
  std::array<ControlLine, 2>& lines() { return lines_; }

  bool push(const ControlEntry& entry) {
    const bool for_anybody = entry.answers_ev_probe() && !MRC_BUG(kEvProbesShareTheQueue);
    return lines_[for_anybody ? kEvProbes : kPeers].push(entry);
  }
  bool push_copies(const ControlEntry& entry, unsigned copies) {
    return lines_[kPeers].push_copies(entry, copies);
  }
  void forget(std::uint32_t slot) { lines_[kPeers].forget(slot); }

 private:
  enum LineNumber : std::size_t { kPeers, kEvProbes };
  static std::size_t ev_probes_of(std::size_t capacity) { return capacity / 4; }

  std::array<ControlLine, 2> lines_;
};

}  // namespace mrc::core
