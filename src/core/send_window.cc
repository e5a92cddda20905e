#include "core/send_window.h"

#include <algorithm>
#include <bit>

#include "base/assert.h"

namespace mrc::core {

SendWindow::SendWindow(std::uint32_t packets, unsigned evs, Sequence first,
                       std::uint32_t outstanding)
    : records_(outstanding == 0 ? packets : std::min(outstanding, packets)),
      index_(std::bit_ceil(std::max(packets, 128U)), kNil),
      free_(0),
      ev_lists_(evs),
      acknowledged_(static_cast<std::uint32_t>(index_.size())),
      lost_(static_cast<std::uint32_t>(index_.size())),
      overtaken_(static_cast<std::uint32_t>(index_.size())),
      mask_(index_.size() - 1),
      oldest_(first),
      next_(first) {
  MRC_ASSERT(index_.size() < kNil && evs <= kMaxEvsPerQp && !records_.empty());
  for (std::size_t i = 0; i + 1 < records_.size(); ++i)
    records_[i].newer = static_cast<std::uint16_t>(i + 1);
  records_[records_.size() - 1].newer = kNil;
}

Sequence SendWindow::sequence_of(std::uint16_t record_number) const {
  if (record_number == kNil) return kEnd;
  return oldest_ + ((records_[record_number].slot - oldest_) & mask_);
}

void SendWindow::link(std::uint16_t self) {
  Stored& packet = records_[self];
  List& on_path = path(EvIndex{packet.ev});
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
  Stored& packet = open_record(seq);
  List& on_path = path(EvIndex{packet.ev});
  (packet.older == kNil ? order_.head : records_[packet.older].newer) = packet.newer;
  (packet.newer == kNil ? order_.tail : records_[packet.newer].older) = packet.older;
  (packet.ev_older == kNil ? on_path.head : records_[packet.ev_older].ev_newer) = packet.ev_newer;
  (packet.ev_newer == kNil ? on_path.tail : records_[packet.ev_newer].ev_older) = packet.ev_older;
  overtaken_.clear(seq);
  --in_flight_;
  in_flight_bytes_ -= packet.nominal_bytes;
}

void SendWindow::append(TimeNs now, EvIndex ev, std::uint32_t nominal_bytes) {
  MRC_ASSERT(next_ - oldest_ <= mask_ && free_ != kNil && nominal_bytes <= kMaxNominalBytes);
  const std::uint16_t self = free_;
  free_ = records_[self].newer;
  Stored& packet = records_[self];
  packet = Stored{.transmissions = 1,
                  .nominal_bytes = static_cast<std::uint16_t>(nominal_bytes),
                  .state = PacketState::kInFlight,
                  .slot = slot(next_),
                  .ev = static_cast<std::uint16_t>(ev)};
  stamp(packet, now);
  index_[slot(next_)] = self;
  link(self);
  ++next_;
}

void SendWindow::resend(Sequence seq, TimeNs now, EvIndex ev) {
  Stored& packet = open_record(seq);
  MRC_ASSERT(packet.state == PacketState::kLost);
  stamp(packet, now);
  packet.ev = static_cast<std::uint16_t>(ev);
  if (packet.transmissions < kMaxTransmissions) ++packet.transmissions;
  packet.state = PacketState::kInFlight;
  lost_.clear(seq);
  --lost_count_;
  link(index_[slot(seq)]);
}

void SendWindow::acknowledge(Sequence seq) {
  if (open_record(seq).state == PacketState::kInFlight) {
    unlink(seq);
  } else {
    lost_.clear(seq);
    --lost_count_;
  }
  release(seq);
  acknowledged_.set(seq);
}

void SendWindow::release(Sequence seq) {
  std::uint16_t& at = index_[slot(seq)];
  records_[at].newer = free_;
  records_[at].state = PacketState::kUnused;
  free_ = at;
  at = kNil;
}

void SendWindow::mark_lost(Sequence seq, LossCause cause) {
  Stored& packet = open_record(seq);
  MRC_ASSERT(packet.state == PacketState::kInFlight);
  unlink(seq);
  packet.state = PacketState::kLost;
  packet.cause = cause;
  lost_.set(seq);
  ++lost_count_;
}

void SendWindow::advance_to(Sequence seq) {
  MRC_ASSERT(seq <= next_);
  for (; oldest_ < seq; ++oldest_) {
    MRC_ASSERT(acknowledged_.test(oldest_));
    acknowledged_.clear(oldest_);
  }
}

void SendWindow::overtake_before(Sequence seq) {
  // What is older than an overtaken packet is overtaken already, so each packet is visited once.
  for (std::uint16_t at = open_record(seq).ev_older; at != kNil; at = records_[at].ev_older) {
    const Sequence earlier = sequence_of(at);
    if (overtaken_.test(earlier)) break;
    overtaken_.set(earlier);
  }
}

void SendWindow::overtake_until(EvIndex ev, TimeNs latest) {
  for (std::uint16_t at = path(ev).head; at != kNil; at = records_[at].ev_newer) {
    if (sent_at(records_[at]) > latest) break;
    overtaken_.set(sequence_of(at));
  }
}

Sequence SendWindow::first_lost(Sequence end) const {
  return lost_count_ == 0 ? end : lost_.find_first(oldest_, end);
}

std::size_t SendWindow::memory_bytes() const {
  return records_.memory_bytes() + index_.memory_bytes() + ev_lists_.memory_bytes() +
         acknowledged_.memory_bytes() + lost_.memory_bytes() + overtaken_.memory_bytes();
}

}  // namespace mrc::core
