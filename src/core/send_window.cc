#include "core/send_window.h"

#include <algorithm>
#include <bit>
#include <utility>

#include "base/assert.h"

namespace mrc::core {

SendWindow::SendWindow(std::uint32_t packets, unsigned evs, Sequence first,
                       std::uint32_t outstanding)
    : mask_(std::bit_ceil(std::max(packets, 128U)) - 1), oldest_(first), next_(first) {
  const auto places = static_cast<std::uint32_t>(mask_ + 1);
  const bool for_all = outstanding == 0 || outstanding >= places;
  records_ = FixedArray<Stored>(for_all ? places : std::min(outstanding, packets));
  ev_older_ = FixedArray<std::uint16_t>(records_.size());
  if (!for_all) index_ = RecordIndex(places, records_.size());
  ev_lists_ = FixedArray<PathList>(evs);
  bits_ = BitWindow<kLanes>(places);
  MRC_ASSERT(places < kNil && evs <= kMaxEvsPerQp && !records_.empty());
  free_ = 0;
  for (std::size_t i = 0; i + 1 < records_.size(); ++i)
    records_[i].newer = static_cast<std::uint16_t>(i + 1);
  records_[records_.size() - 1].newer = kNil;
}

Sequence SendWindow::sequence_of(std::uint16_t place) const {
  if (place == kNil) return kEnd;
  return oldest_ + ((place - oldest_) & mask_);
}

void SendWindow::link(std::uint16_t place, Stored& packet) {
  List& on_path = path(EvIndex{packet.ev});
  packet.older = order_.tail;
  packet.newer = kNil;
  (order_.tail == kNil ? order_.head : record_at(order_.tail).newer) = place;
  order_.tail = place;
  packet.ev_newer = kNil;
  ev_older_[record_number(place)] = on_path.tail;
  (on_path.tail == kNil ? on_path.head : record_at(on_path.tail).ev_newer) = place;
  on_path.tail = place;
  packet.counted = 1;
  ++in_flight_;
  in_flight_bytes_ += packet.nominal_bytes;
}

void SendWindow::unlink(Sequence seq, const Stored& packet) {
  (packet.older == kNil ? order_.head : record_at(packet.older).newer) = packet.newer;
  (packet.newer == kNil ? order_.tail : record_at(packet.newer).older) = packet.older;
  // A path keeps the order, so what leaves its list is mostly its head; a peer that acknowledges
  // the newest first must not make it a walk.
  List& on_path = path(EvIndex{packet.ev});
  const std::uint16_t before = ev_older_[record_number(slot(seq))];
  (before == kNil ? on_path.head : record_at(before).ev_newer) = packet.ev_newer;
  (packet.ev_newer == kNil ? on_path.tail : ev_older_[record_number(packet.ev_newer)]) = before;
  bits_.clear(seq, kOvertakenLane);
  --in_flight_;
  if (packet.counted != 0) in_flight_bytes_ -= packet.nominal_bytes;
}

std::uint32_t SendWindow::take_record(std::uint16_t place) {
  if (index_.empty()) return place;
  MRC_ASSERT(free_ != kNil);
  const std::uint16_t taken = free_;
  free_ = records_[taken].newer;
  index_.set(place, taken);
  return taken;
}

void SendWindow::append(TimeNs now, EvIndex ev, std::uint32_t nominal_bytes) {
  MRC_ASSERT(next_ - oldest_ <= mask_ && nominal_bytes <= kMaxNominalBytes);
  Stored& packet = records_[take_record(slot(next_))];
  packet = Stored{.transmissions = 1,
                  .nominal_bytes = static_cast<std::uint16_t>(nominal_bytes),
                  .state = PacketState::kInFlight,
                  .ev = static_cast<std::uint16_t>(ev)};
  stamp(packet, now);
  link(slot(next_), packet);
  ++next_;
}

void SendWindow::resend(Sequence seq, TimeNs now, EvIndex ev, std::uint32_t nominal_bytes,
                        bool told_apart) {
  Stored& packet = open_record(seq);
  MRC_ASSERT(packet.state == PacketState::kToResend && nominal_bytes <= kMaxNominalBytes);
  stamp(packet, now);
  const bool second = packet.transmissions == 1 && told_apart;
  packet.transmissions = second ? 2 : kSeveralTransmissions;
  packet.nominal_bytes = static_cast<std::uint16_t>(nominal_bytes);
  packet.ev = static_cast<std::uint16_t>(ev);
  packet.state = PacketState::kInFlight;
  bits_.clear(seq, kResendLane);
  --to_resend_;
  link(slot(seq), packet);
}

std::int64_t SendWindow::uncount_bytes() {
  for (std::uint16_t at = order_.head; at != kNil; at = record_at(at).newer)
    record_at(at).counted = 0;
  return std::exchange(in_flight_bytes_, 0);
}

void SendWindow::acknowledge(Sequence seq) {
  Stored& packet = open_record(seq);
  if (packet.state == PacketState::kInFlight) {
    unlink(seq, packet);
  } else {
    bits_.clear(seq, kResendLane);
    --to_resend_;
  }
  release(slot(seq), packet);
  bits_.set(seq, kAcknowledgedLane);
}

void SendWindow::release(std::uint16_t place, Stored& packet) {
  packet.state = PacketState::kUnused;
  if (index_.empty()) return;
  packet.newer = free_;
  free_ = static_cast<std::uint16_t>(index_.at(place));
  index_.set(place, RecordIndex::kNone);
}

void SendWindow::queue_resend(Sequence seq, ResendReason reason) {
  Stored& packet = open_record(seq);
  MRC_ASSERT(packet.state == PacketState::kInFlight);
  unlink(seq, packet);
  packet.state = PacketState::kToResend;
  packet.reason = reason;
  bits_.set(seq, kResendLane);
  ++to_resend_;
}

void SendWindow::advance_to(Sequence seq) {
  MRC_ASSERT(seq <= next_);
  for (; oldest_ < seq; ++oldest_) {
    MRC_ASSERT(bits_.test(oldest_, kAcknowledgedLane));
    bits_.clear(oldest_, kAcknowledgedLane);
  }
}

void SendWindow::overtake_before(Sequence seq) {
  // What was overtaken on a path is the front of its list, so each packet is marked once.
  for (std::uint16_t at = ev_older_[record_number(slot(seq))]; at != kNil;
       at = ev_older_[record_number(at)]) {
    const Sequence before = sequence_of(at);
    if (bits_.test(before, kOvertakenLane)) return;
    bits_.set(before, kOvertakenLane);
  }
}

void SendWindow::overtake_until(EvIndex ev, TimeNs latest) {
  for (std::uint16_t at = path(ev).head; at != kNil; at = record_at(at).ev_newer) {
    if (sent_at(record_at(at)) > latest) break;
    bits_.set(sequence_of(at), kOvertakenLane);
  }
}

Sequence SendWindow::first_to_resend(Sequence end) const {
  return to_resend_ == 0 ? end : bits_.find_first(oldest_, end, kResendLane);
}

std::size_t SendWindow::memory_bytes() const {
  return records_.memory_bytes() + ev_older_.memory_bytes() + index_.memory_bytes() +
         ev_lists_.memory_bytes() + bits_.memory_bytes();
}

}  // namespace mrc::core
