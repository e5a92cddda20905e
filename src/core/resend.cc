// What is to be sent again, and what that means: for the counters, for the congestion controller
// and for the path.
#include <array>

#include "base/planted_bug.h"
#include "core/requester.h"

namespace mrc::core {
namespace {

struct ResendTraits {
  std::uint64_t QpCounters::*counter;
  bool tells_controller;  // as a loss
  bool blames_path;
};

// By ResendReason. A trim is told to the controller as one; an operation that was refused went
// through the network well; what is late may still arrive.
constexpr std::array<ResendTraits, kResendReasons> kTraits = {{
    {&QpCounters::lost_by_path_order, true, true},  // kPathOrder
    {&QpCounters::lost_by_time, true, true},        // kTime
    {&QpCounters::lost_by_time, true, false},       // kSilence
    {&QpCounters::lost_by_timeout, true, false},    // kUnanswered
    {&QpCounters::lost_by_timeout, true, true},     // kTimeout
    {&QpCounters::trimmed, false, false},           // kTrimmed
    {&QpCounters::refused, true, false},            // kNotTaken
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

LossDetector::Situation Requester::situation() const {
  const bool window_full = window_->next() >= window_end() || window_->free_records() == 0;
  return {.rtt = &rtt_,
          .jitter_ns = links_.jitter_ns,
          .everything_waits = messages_.all_segmented() || window_full};
}

void Requester::detect_losses(TimeNs now, const SackView& view) {
  losses_.detect(now, view, *window_, situation(), [this, now](Sequence seq, ResendReason reason) {
    queue_resend(now, seq, reason);
  });
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
  if (traits(reason).tells_controller) links_.cc->on_loss(now, counted_bytes);
  if (traits(reason).blames_path) links_.paths->on_lost(packet.ev, now);
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
