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

bool blames_path(LossCause cause) {
  using enum LossCause;
  return cause == kPathOrder || cause == kTime || cause == kTimeout;
}

bool guesses_from_order(LossCause cause) {
  return cause == LossCause::kTime || cause == LossCause::kSilence;
}

}  // namespace

// Paths differ by their queues: up to about the delay the controller aims at without anything being
// wrong, more when the round trips vary more.
DurationNs Requester::path_spread() const {
  return std::max({rtt_.minimum() * 3 / 4, 2 * rtt_.variation(), links_.jitter_ns});
}

void Requester::detect_losses(TimeNs now, const SackView& view) {
  if (window_->in_flight() == 0) return;
  if (view.fresh) detect_by_path_order(now, view);
  detect_by_time(now, view);
}

void Requester::detect_by_path_order(TimeNs now, const SackView& view) {
  const Sequence hole = view.cumulative + 1;
  if (window_->contains(hole) && window_->overtaken(hole)) {
    declare_lost(now, hole, LossCause::kPathOrder);
  }
  const Sequence base = std::max(view.base, window_->oldest());
  if (base >= window_->next() || base - view.base >= 64) return;
  const unsigned skipped = static_cast<unsigned>(base - view.base);
  std::uint64_t missing = ~view.bitmap >> skipped;
  if (skipped > 0) missing &= (std::uint64_t{1} << (64 - skipped)) - 1;
  for (missing &= window_->overtaken_bits(base); missing != 0; missing &= missing - 1) {
    const Sequence seq = base + static_cast<unsigned>(std::countr_zero(missing));
    if (window_->contains(seq)) declare_lost(now, seq, LossCause::kPathOrder);
  }
}

// At the end of the work nothing may come that tells of a late packet. So in silence, for longer
// than paths differ, the clock hedges one, and no other before the next feedback, which tells about
// them.
TimeNs Requester::hedge_time() const {
  if (segmented_ != posted_ || hedged_since_feedback_ || !started_) return kNever;
  if (window_->in_flight() == 0 || !rtt_.has_sample()) return kNever;
  const PacketRecord& packet = window_->record(window_->earliest_sent());
  if (packet.transmissions > 1) return kNever;
  return std::max(packet.sent_at + rtt_.smoothed(), activity_at_) + path_spread();
}

void Requester::hedge_by_clock(TimeNs now) {
  hedged_since_feedback_ = true;
  declare_lost(now, window_->earliest_sent(), LossCause::kLate);
}

void Requester::detect_by_time(TimeNs now, const SackView& view) {
  const DurationNs allowance = reorder_allowance();
  // When everything waits for it, a packet on a slow path is not waited for.
  const bool hedging =
      segmented_ == posted_ || window_->next() >= window_end() || window_->free_records() == 0;
  Sequence seq = window_->earliest_sent();
  for (unsigned step = 0; seq != SendWindow::kEnd && step < kMaxTimeScan; ++step) {
    const PacketRecord& packet = window_->record(seq);
    // By how much it was sent before something that is known to have arrived.
    const DurationNs lead = newest_arrival_sent_at_ - packet.sent_at;
    // What waited at an end that was away is late for that reason, and will come with the rest.
    const TimeNs waited_since = std::max(packet.sent_at, rtt_.held_up_at());
    const bool late = hedging && now - waited_since >= rtt_.smoothed() + path_spread();
    if (lead < allowance && !late) break;
    const Sequence following = window_->sent_after(seq);
    // A path that delivers keeps its order: if this packet were gone, a later one would say so.
    const bool path_delivers = window_->since_life(packet.ev, now) < allowance;
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
  const PacketRecord packet = window_->record(seq);
  window_->mark_lost(seq, cause);
  if (MRC_BUG(kForgetsLostPackets)) window_->acknowledge(seq);
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
    case LossCause::kUnanswered:
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
  if (blames_path(cause)) links_.paths->on_lost(packet.ev, now);
}

// The packet had arrived although we gave it up.
void Requester::note_spurious(const PacketRecord& packet, TimeNs now) {
  if (packet.cause == LossCause::kLate) return;
  ++links_.counters->spurious;
  const bool blamed = packet.state == PacketState::kLost && blames_path(packet.cause);
  if (blamed) links_.paths->on_spurious_loss(packet.ev, now);
  if (guesses_from_order(packet.cause)) widen_allowance(packet, now);
}

// Allows for more reordering for a while. Packets sent before the last time were judged by the
// narrower allowance: together they are one false alarm.
void Requester::widen_allowance(const PacketRecord& packet, TimeNs now) {
  acked_since_widened_ = 0;
  if (packet.sent_at < widened_at_ || reorder_scale_ >= kMaxReorderScale) return;
  widened_at_ = now;
  reorder_scale_ = static_cast<std::uint8_t>(reorder_scale_ * 2);
}

// A wide allowance makes a dead path last: what was allowed for once is taken back step by step.
void Requester::note_arrival() {
  if (reorder_scale_ == 1 || ++acked_since_widened_ < kForgiveAfterPackets) return;
  acked_since_widened_ = 0;
  reorder_scale_ /= 2;
}

}  // namespace mrc::core
