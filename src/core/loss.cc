// Which packets are gone, and whose fault it was. The rules are stated in requester.h.
#include <algorithm>
#include <bit>

#include "base/planted_bug.h"
#include "core/requester.h"

namespace mrc::core {
namespace {

// Bounds the work one SACK can cause in the time-ordered walk.
constexpr unsigned kMaxTimeScan = 64;
constexpr std::uint8_t kMaxReorderScale = 8;
constexpr std::uint32_t kForgiveAfterPackets = 1024;

}  // namespace

// Paths differ by their queues: up to about the delay the controller aims at without anything being
// wrong, more when the round trips vary more.
DurationNs Requester::path_spread() const {
  return std::max({rtt_.minimum() * 3 / 4, 2 * rtt_.variation(), links_.jitter_ns});
}

void Requester::detect_losses(TimeNs now, const SackView& view) {
  if (window_.in_flight() == 0) return;
  if (view.fresh) detect_by_path_order(now, view);
  detect_by_time(now, view);
}

void Requester::detect_by_path_order(TimeNs now, const SackView& view) {
  const Sequence hole = view.cumulative + 1;
  if (window_.contains(hole) && window_.overtaken(hole)) {
    declare_lost(now, hole, LossCause::kPathOrder);
  }
  const Sequence base = std::max(view.base, window_.oldest());
  if (base >= window_.next() || base - view.base >= 64) return;
  const unsigned skipped = static_cast<unsigned>(base - view.base);
  std::uint64_t missing = ~view.bitmap >> skipped;
  if (skipped > 0) missing &= (std::uint64_t{1} << (64 - skipped)) - 1;
  for (missing &= window_.overtaken_bits(base); missing != 0; missing &= missing - 1) {
    const Sequence seq = base + static_cast<unsigned>(std::countr_zero(missing));
    if (window_.contains(seq)) declare_lost(now, seq, LossCause::kPathOrder);
  }
}

void Requester::detect_by_time(TimeNs now, const SackView& view) {
  const DurationNs allowance = reorder_allowance();
  // When everything waits for it, a packet on a slow path is not waited for.
  const bool hedging =
      segmented_ == posted_ || window_.next() >= window_end() || window_.free_records() == 0;
  Sequence seq = window_.earliest_sent();
  for (unsigned step = 0; seq != SendWindow::kEnd && step < kMaxTimeScan; ++step) {
    const PacketRecord& packet = window_.record(seq);
    // By how much it was sent before something that is known to have arrived.
    const DurationNs lead = newest_arrival_sent_at_ - packet.sent_at;
    const bool late = hedging && now - packet.sent_at >= rtt_.smoothed() + path_spread();
    if (lead < allowance && !late) break;
    const Sequence following = window_.sent_after(seq);
    // A path that delivers keeps its order: if this packet were gone, a later one would say so.
    const bool path_delivers = window_.since_life(packet.ev, now) < allowance;
    const bool missing = view.fresh && view.reports_missing(seq);
    if (!path_delivers && lead >= allowance && missing) {
      declare_lost(now, seq, LossCause::kTime);
    } else if (!path_delivers && lead >= allowance + rtt_.smoothed()) {
      declare_lost(now, seq, LossCause::kSilence);
    } else if (late && packet.transmissions == 1) {
      declare_lost(now, seq, missing && !path_delivers ? LossCause::kTime : LossCause::kLate);
    }
    seq = following;
  }
}

void Requester::declare_lost(TimeNs now, Sequence seq, LossCause cause) {
  const PacketRecord packet = window_.record(seq);
  window_.mark_lost(seq, cause == LossCause::kLate);
  if (MRC_BUG(kForgetsLostPackets)) window_.acknowledge(seq);
  links_.cc->on_left_network(packet.nominal_bytes);
  QpCounters& counters = *links_.counters;
  switch (cause) {
    case LossCause::kPathOrder:
      ++counters.lost_by_path_order;
      break;
    case LossCause::kTime:
    case LossCause::kSilence:
      ++counters.lost_by_time;
      break;
    case LossCause::kTimeout:
      ++counters.lost_by_timeout;
      break;
    case LossCause::kTrimmed:
      ++counters.trimmed;
      return;  // the controller hears of it as a trim
    case LossCause::kRefused:
      ++counters.refused;
      break;
    case LossCause::kDenied:
      ++counters.refused;
      return;  // it went through the network well
    case LossCause::kLate:
      ++counters.hedged;
      return;
  }
  links_.cc->on_loss(now, packet.nominal_bytes);
  const bool path_at_fault =
      cause == LossCause::kPathOrder || cause == LossCause::kTime || cause == LossCause::kTimeout;
  if (path_at_fault) links_.paths->on_lost(packet.ev, now);
}

// The packet had arrived although we gave it up: allow for more reordering for a while.
void Requester::note_spurious(const PacketRecord& packet, TimeNs now) {
  if (packet.late) return;
  ++links_.counters->spurious;
  if (packet.state == PacketState::kLost) links_.paths->on_spurious_loss(packet.ev, now);
  if (acked_since_spurious_ >= kForgiveAfterPackets) reorder_scale_ = 1;
  acked_since_spurious_ = 0;
  reorder_scale_ =
      std::min<std::uint8_t>(static_cast<std::uint8_t>(reorder_scale_ * 2), kMaxReorderScale);
}

}  // namespace mrc::core
