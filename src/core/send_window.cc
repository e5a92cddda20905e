#include "core/send_window.h"

#include <bit>

#include "base/assert.h"

namespace mrc::core {

SendWindow::SendWindow(std::uint32_t packets, unsigned evs, Sequence first)
    : records_(std::bit_ceil(packets < 128 ? 128U : packets)),
      ev_lists_(evs),
      acknowledged_(static_cast<std::uint32_t>(records_.size())),
      lost_(static_cast<std::uint32_t>(records_.size())),
      overtaken_(static_cast<std::uint32_t>(records_.size())),
      mask_(records_.size() - 1),
      oldest_(first),
      next_(first) {
  MRC_ASSERT(records_.size() < kNil);
}

Sequence SendWindow::sequence_of(std::uint16_t slot_number) const {
  if (slot_number == kNil) return kEnd;
  return oldest_ + ((slot_number - oldest_) & mask_);
}

void SendWindow::link(Sequence seq) {
  const std::uint16_t self = slot(seq);
  PacketRecord& packet = records_[self];
  List& on_path = path(packet.ev);
  packet.older = order_.tail;
  packet.newer = kNil;
  (order_.tail == kNil ? order_.head : records_[order_.tail].newer) = self;
  order_.tail = self;
  packet.ev_older = on_path.tail;
  packet.ev_newer = kNil;
  (on_path.tail == kNil ? on_path.head : records_[on_path.tail].ev_newer) = self;
  on_path.tail = self;
  ++in_flight_;
  in_flight_bytes_ += packet.nominal_bytes;
}

void SendWindow::unlink(Sequence seq) {
  PacketRecord& packet = records_[slot(seq)];
  List& on_path = path(packet.ev);
  (packet.older == kNil ? order_.head : records_[packet.older].newer) = packet.newer;
  (packet.newer == kNil ? order_.tail : records_[packet.newer].older) = packet.older;
  (packet.ev_older == kNil ? on_path.head : records_[packet.ev_older].ev_newer) = packet.ev_newer;
  (packet.ev_newer == kNil ? on_path.tail : records_[packet.ev_newer].ev_older) = packet.ev_older;
  overtaken_.clear(seq);
  --in_flight_;
  in_flight_bytes_ -= packet.nominal_bytes;
}

void SendWindow::append(TimeNs now, EvIndex ev, std::uint16_t message_slot,
                        std::uint32_t nominal_bytes) {
  MRC_ASSERT(next_ - oldest_ <= mask_);
  PacketRecord& packet = records_[slot(next_)];
  packet = {.sent_at = now,
            .nominal_bytes = static_cast<std::uint16_t>(nominal_bytes),
            .message_slot = message_slot,
            .ev = ev,
            .state = PacketState::kInFlight,
            .transmissions = 1};
  link(next_);
  ++next_;
}

void SendWindow::resend(Sequence seq, TimeNs now, EvIndex ev) {
  PacketRecord& packet = records_[slot(seq)];
  MRC_ASSERT(packet.state == PacketState::kLost);
  packet.sent_at = now;
  packet.ev = ev;
  if (packet.transmissions < kMaxTransmissions) ++packet.transmissions;
  packet.state = PacketState::kInFlight;
  lost_.clear(seq);
  --lost_count_;
  link(seq);
}

void SendWindow::acknowledge(Sequence seq) {
  PacketRecord& packet = records_[slot(seq)];
  if (packet.state == PacketState::kInFlight) {
    unlink(seq);
  } else {
    MRC_ASSERT(packet.state == PacketState::kLost);
    lost_.clear(seq);
    --lost_count_;
  }
  packet.state = PacketState::kAcknowledged;
  acknowledged_.set(seq);
}

void SendWindow::mark_lost(Sequence seq, bool late) {
  PacketRecord& packet = records_[slot(seq)];
  MRC_ASSERT(packet.state == PacketState::kInFlight);
  unlink(seq);
  packet.state = PacketState::kLost;
  packet.late = late;
  lost_.set(seq);
  ++lost_count_;
}

void SendWindow::advance_to(Sequence seq) {
  MRC_ASSERT(seq <= next_);
  for (; oldest_ < seq; ++oldest_) {
    MRC_ASSERT(records_[slot(oldest_)].state == PacketState::kAcknowledged);
    records_[slot(oldest_)].state = PacketState::kUnused;
    acknowledged_.clear(oldest_);
  }
}

void SendWindow::overtake_before(Sequence seq) {
  // What is older than an overtaken packet is overtaken already, so each packet is visited once.
  for (std::uint16_t at = records_[slot(seq)].ev_older; at != kNil; at = records_[at].ev_older) {
    const Sequence earlier = sequence_of(at);
    if (overtaken_.test(earlier)) break;
    overtaken_.set(earlier);
  }
}

void SendWindow::overtake_until(EvIndex ev, TimeNs sent_at) {
  for (std::uint16_t at = path(ev).head; at != kNil; at = records_[at].ev_newer) {
    if (records_[at].sent_at > sent_at) break;
    overtaken_.set(sequence_of(at));
  }
}

Sequence SendWindow::first_lost(Sequence end) const {
  return lost_count_ == 0 ? end : lost_.find_first(oldest_, end);
}

std::size_t SendWindow::memory_bytes() const {
  return records_.capacity() * sizeof(PacketRecord) + ev_lists_.capacity() * sizeof(PathList) +
         acknowledged_.memory_bytes() + lost_.memory_bytes() + overtaken_.memory_bytes();
}

}  // namespace mrc::core
