// What is to be sent again, and what that means: for the counters, for the congestion controller
// and for the path.
#include <array>
#include <utility>

#include "base/planted_bug.h"
#include "core/requester.h"

namespace mrc::core {
namespace {

struct ResendTraits {
  std::uint64_t QpCounters::*counter;
  bool tells_controller;  // as a loss
  bool blames_path;
};

// By ResendReason. A trim is told to the controller as one; an operation that was refused, or that
// the peer was not ready for, went through the network well; what is late may still arrive.
constexpr std::array<ResendTraits, kResendReasons> kTraits = {{
    {&QpCounters::lost_by_path_order, true, true},  // kPathOrder
    {&QpCounters::lost_by_time, true, true},        // kTime
    {&QpCounters::lost_by_time, true, false},       // kSilence
    {&QpCounters::lost_by_timeout, true, false},    // kUnanswered
    {&QpCounters::lost_by_timeout, true, true},     // kTimeout
    {&QpCounters::trimmed, false, false},           // kTrimmed
    {&QpCounters::refused, true, false},            // kNotTaken
    {&QpCounters::refused, false, false},           // kNotReady
    {&QpCounters::refused, false, false},           // kAccessRefused
    {&QpCounters::hedged, false, false},            // kLate
}};

const ResendTraits& traits(ResendReason reason) {
  return kTraits[static_cast<std::size_t>(reason)];
}

bool guesses_from_order(ResendReason reason) {
  return reason == ResendReason::kTime || reason == ResendReason::kSilence;
}

}  // namespace

void Requester::detect_losses(TimeNs now, const SackView& view) {
  const bool window_full = window_->next() >= window_end() || window_->free_records() == 0;
  const LossDetector::Situation situation{
      .rtt = &rtt_,
      .jitter_ns = links_.jitter_ns,
      .everything_waits = messages_.all_segmented() || window_full};
  losses_.detect(now, view, *window_, situation, [this, now](Sequence seq, ResendReason reason) {
    queue_resend(now, seq, reason);
  });
}

// What was sent on a path that is gone would be held against the one in its place, and on that one
// overtake what it never met. Its answers may still come; then it is not sent again.
void Requester::follow(TimeNs now, const RequesterLinks& links, bool network_trims,
                       const std::vector<bool>& replaced) {
  if (!probing_) return;
  const RequesterLinks before = std::exchange(links_, links);
  probes_.forget([&](EvIndex ev) { return replaced[static_cast<std::size_t>(ev)]; });
  if (!started_) return;
  setup_.network_trims = network_trims;
  if (before.cc != links.cc) {
    before.cc->on_left_network(window_->in_flight_bytes());
    links.cc->on_sent(window_->in_flight_bytes());
    paced_until_ = kNever;
  }
  for (Sequence seq = window_->earliest_sent(); seq != SendWindow::kEnd;) {
    const Sequence following = window_->sent_after(seq);
    const auto ev = static_cast<std::size_t>(window_->record(seq).ev);
    if (replaced[ev]) queue_resend(now, seq, ResendReason::kLate);
    seq = following;
  }
}

// At the end of the work nothing may come that tells of a late packet. So in silence, for longer
// than paths differ, one is sent again on speculation, and no other before the next feedback, which
// tells about them.
TimeNs Requester::speculation_time() const {
  if (!messages_.all_segmented() || speculated_since_feedback_ || !started_) return kNever;
  if (window_->in_flight() == 0 || !rtt_.has_sample()) return kNever;
  const PacketRecord& packet = window_->record(window_->earliest_sent());
  if (packet.transmissions > 1) return kNever;
  return std::max(packet.sent_at + rtt_.smoothed(), activity_at_) +
         LossDetector::path_spread({.rtt = &rtt_, .jitter_ns = links_.jitter_ns});
}

void Requester::resend_speculatively(TimeNs now) {
  speculated_since_feedback_ = true;
  queue_resend(now, window_->earliest_sent(), ResendReason::kLate);
}

void Requester::queue_resend(TimeNs now, Sequence seq, ResendReason reason) {
  const PacketRecord packet = window_->record(seq);
  window_->queue_resend(seq, reason);
  if (MRC_BUG(kForgetsLostPackets)) window_->acknowledge(seq);
  // What a backing-off queue pair lost after it gave its room says more of its far end than of the
  // network; losses are told in the linear intervals before.
  const std::uint32_t counted_bytes = packet.counted ? packet.nominal_bytes : 0;
  links_.cc->on_left_network(counted_bytes);
  ++(links_.counters->*traits(reason).counter);
  const bool excused = traits(reason).blames_path && !links_.paths->on_lost(packet.ev, now);
  // Where switches trim, full queues lose nothing: what all paths lose is no sign of congestion.
  if (excused && setup_.network_trims) return;
  if (traits(reason).tells_controller) links_.cc->on_loss(now, counted_bytes);
}

// The packet had arrived although it was given up.
void Requester::note_spurious(const PacketRecord& packet, TimeNs now) {
  if (packet.reason == ResendReason::kLate) return;
  ++links_.counters->spurious;
  const bool blamed = packet.state == PacketState::kToResend && traits(packet.reason).blames_path;
  if (blamed) links_.paths->on_spurious_loss(packet.ev, now);
  if (guesses_from_order(packet.reason)) losses_.note_false_alarm(packet.sent_at, now);
}

}  // namespace mrc::core
