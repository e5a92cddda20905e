#include "core/cc/nscc.h"

#include <algorithm>
#include <bit>

#include "base/planted_bug.h"
#include "base/prng.h"

namespace mrc::core {
namespace {

constexpr DurationNs kMaxRttSampleNs = DurationNs{1} << 32;
constexpr std::int64_t kMaxDelayInBaseRtts = 16;  // what one sample may bring into the average
constexpr std::int64_t kAverageSamples = 80;      // 1 / 0.0125
constexpr std::uint64_t kMaxIncrease = std::uint64_t{1} << 62;
constexpr unsigned kPenaltyShift = 7;
constexpr std::int64_t kLossMemoryInBaseRtts = 4;
constexpr std::uint8_t kMaxPaceShift = 4;
constexpr std::int64_t kMaxPacedRttInBaseRtts = 4;
constexpr std::int64_t kStepDivisor = 2;     // of the step up from a drained common queue
constexpr DurationNs kMarksFromDivisor = 4;  // of R: where queues within the network mark
// Of what is answered, at least: by which a sender grows that finds the last hop's queue empty.
constexpr std::uint32_t kTakeOverQ16 = kOneQ16 * 3 / 2;

// The share of marked answers, a mean over about a window of them.
constexpr std::int64_t kFewestMarkAnswers = 4;
constexpr std::int64_t kMostMarkAnswers = 32;
constexpr std::int64_t kPacketsPerAnswer = 4;
constexpr std::uint32_t kMarkedLatelyQ16 = kOneQ16 / 16;
constexpr std::uint32_t kAllMarkedQ16 = kOneQ16 / 16 * 15;
// Of a window: what a delay of one base RTT adds is 5/2 root(window * MTU), at most a quarter.
constexpr std::int64_t kAddTwice = 5;
constexpr std::int64_t kMostAddDivisor = 4;
constexpr std::int64_t kMarkDivisor = 4;  // a mark takes this part of the bytes it answers for

// The integer part of a square root.
std::int64_t root(std::int64_t value) {
  std::int64_t result = 0;
  const auto width = std::bit_width(static_cast<std::uint64_t>(value));
  for (std::int64_t bit = (std::int64_t{1} << ((width + 1) / 2)) >> 1; bit != 0; bit >>= 1) {
    const std::int64_t candidate = result + bit;
    if (candidate * candidate <= value) result = candidate;
  }
  return result;
}

std::int64_t bounded_bytes(std::int64_t bytes) {
  return std::clamp<std::int64_t>(bytes, 0, kMaxWindowBytes);
}

}  // namespace

Nscc::Nscc(const CcProfile& profile, const CcEnvironment& environment)
    : bits_per_second_(environment.bits_per_second),
      full_bits_per_second_(environment.bits_per_second),
      seed_(environment.seed),
      settings_(make_settings(profile, environment.mtu_bytes, environment.hints)),
      base_rtt_(profile.nscc.base_rtt_ns) {
  update_gains();
  smoothed_rtt_q3_ = base_rtt_ns() * 8;
  set_window(first_window_bytes(settings_, max_window_bytes(), environment.hints));
  parked_fill_q16_ = kOneQ16 / settings_.sharers;
}

void Nscc::on_packet_sent(TimeNs now, std::int64_t bytes) {
  if (in_flight_bytes() == bytes && now >= qa_end_) {
    // First packet after a pause: what was achieved before says nothing about this burst.
    qa_end_ = kNever;
    achieved_bytes_ = 0;
  }
  if (at_floor()) next_send_ = now + pace_gap_ns(now, bytes);
}

void Nscc::on_ack(const AckSample& sample) {
  const std::int64_t acked_bytes = bounded_bytes(sample.acked_bytes);
  ignore_bytes(acked_bytes);
  received_bytes_ += acked_bytes;
  achieved_bytes_ += acked_bytes;

  const DurationNs delay_ns = measure_delay(sample);
  const bool penalised = apply_penalty(sample, acked_bytes);
  if (quick_adapt(sample.now, sample.marked, delay_ns > gains_.qa_threshold_ns)) {
    drop_increase();
    return;
  }
  note_mark(sample.marked);
  was_at_last_hop_ = !sample.marked && (was_at_last_hop_ || is_at_last_hop(sample.now));
  if (queues_balance(sample.now, sample.marked)) {
    balance(sample, acked_bytes, delay_ns);
  } else {
    react(sample, acked_bytes, delay_ns);
  }
  if (pace_shift_ > 0) relax_pace(sample.now, !sample.marked && delay_ns < gains_.target_ns);
  if (penalised || pace_shift_ > 0) {
    drop_increase();
  } else {
    adjust(sample.now);
  }
}

void Nscc::on_trim(TimeNs now, std::int64_t bytes, bool) {
  if (MRC_BUG(kCcIgnoresTrim)) return;
  const std::int64_t trimmed_bytes = bounded_bytes(bytes);
  const bool was_at_floor = at_floor();
  ignore_bytes(trimmed_bytes);
  feed_average(base_rtt_ns());
  leave_fast_increase();
  if (to_ignore_bytes_ > 0) return;  // a packet of the queue that quick adapt answered
  trigger_qa_ = true;
  if (quick_adapt(now, true, true)) {
    drop_increase();
  } else {
    shrink_window(window_bytes_ - trimmed_bytes);
  }
  slow_pace(now, was_at_floor);
}

void Nscc::on_loss(TimeNs now, std::int64_t bytes) {
  std::int64_t lost_bytes = bounded_bytes(bytes);
  const bool was_at_floor = at_floor();
  ignore_bytes(lost_bytes);
  const std::int64_t forgiven = std::min(lost_bytes, forgiven_loss_bytes_);
  forgiven_loss_bytes_ -= forgiven;
  lost_bytes -= forgiven;
  if (lost_bytes == 0) return;
  const std::int64_t before = window_bytes_;
  shrink_window(window_bytes_ - lost_bytes);
  recent_loss_bytes_ += before - window_bytes_;
  recent_loss_end_ = now + kLossMemoryInBaseRtts * base_rtt_ns();
  slow_pace(now, was_at_floor);
}

// The window keeps its share of the maximum. Inferred losses of the lost plane and the smaller
// bandwidth tell the same story, so whichever comes first, the window pays only once.
void Nscc::set_bandwidth(std::uint64_t bits_per_second) {
  if (bits_per_second == bits_per_second_) return;
  const bool smaller = bits_per_second < bits_per_second_;
  const bool was_dead = bits_per_second_ == 0;
  const std::int64_t old_max = max_window_bytes();
  const std::int64_t paid = smaller ? recent_loss_bytes_ : 0;
  const std::int64_t before = std::min(window_bytes_ + paid, old_max);
  // With no plane left there is no window to hold the share, so it is kept aside.
  if (!was_dead) parked_fill_q16_ = static_cast<std::uint32_t>(before * kOneQ16 / old_max);
  bits_per_second_ = bits_per_second;
  full_bits_per_second_ = std::max(full_bits_per_second_, bits_per_second);
  update_gains();

  const std::int64_t new_max = max_window_bytes();
  saved_window_bytes_ = std::min(saved_window_bytes_, old_max) * new_max / old_max;
  set_window(was_dead ? new_max * parked_fill_q16_ / kOneQ16 : before * new_max / old_max);
  recent_loss_bytes_ = 0;
  forgiven_loss_bytes_ = smaller ? std::max<std::int64_t>(before - paid - window_bytes_, 0) : 0;
  if (smaller && MRC_BUG(kCcPlaneLossEmptiesWindow)) window_bytes_ = 1;
}

// --- Measurements ---

DurationNs Nscc::measure_delay(const AckSample& sample) {
  DurationNs delay_ns = average_delay_ns();
  if (sample.rtt_ns && *sample.rtt_ns > 0) {
    const DurationNs rtt_ns = std::min(*sample.rtt_ns, kMaxRttSampleNs);
    if (base_rtt_.observe(rtt_ns)) lower_base_rtt();
    fresh_ = false;
    smoothed_rtt_q3_ += rtt_ns - smoothed_rtt_q3_ / 8;
    delay_ns = std::max<DurationNs>(rtt_ns - base_rtt_ns(), 0);
    common_delay_.observe(sample.now, delay_ns, base_rtt_ns());
  }
  // One slow path without a mark is taken for noise.
  const bool noise = !sample.marked && delay_ns > gains_.target_ns;
  feed_average(noise ? base_rtt_ns() / 4 : delay_ns);
  return delay_ns;
}

void Nscc::feed_average(DurationNs delay_ns) {
  const DurationNs bounded_ns = std::min(delay_ns, kMaxDelayInBaseRtts * base_rtt_ns());
  average_delay_q16_ += (bounded_ns * kOneQ16 - average_delay_q16_) / kAverageSamples;
}

void Nscc::note_mark(bool marked) {
  const std::int64_t answers = std::clamp(window_bytes_ / (kPacketsPerAnswer * settings_.mtu_bytes),
                                          kFewestMarkAnswers, kMostMarkAnswers);
  const std::int64_t mean = marked_q16_;
  marked_q16_ = static_cast<std::uint32_t>(mean + ((marked ? kOneQ16 : 0) - mean) / answers);
}

void Nscc::lower_base_rtt() {
  const std::int64_t old_max = max_window_bytes();
  update_gains();
  // Until the first sample the window is a share of a guess, and follows the guess.
  set_window(fresh_ ? window_bytes_ * max_window_bytes() / old_max : window_bytes_);
}

void Nscc::update_gains() {
  gains_ = derive_gains(settings_, {.bits_per_second = bits_per_second_,
                                    .full_bits_per_second = full_bits_per_second_,
                                    .base_rtt_ns = base_rtt_ns()});
}

// --- The parts of the algorithm ---

// True while increases are suppressed. Queue pairs share this controller and only some of them may
// be penalised, so a zero ends the penalty only when it asks for the old window or nothing was
// heard for a round trip.
bool Nscc::apply_penalty(const AckSample& sample, std::int64_t acked_bytes) {
  if (sample.window_penalty == 0) {
    if (saved_window_bytes_ == 0) return false;
    if (!sample.restore_window && sample.now < penalty_end_) return true;
    if (sample.restore_window) set_window(std::max(saved_window_bytes_, window_bytes_));
    saved_window_bytes_ = 0;
    return false;
  }
  if (saved_window_bytes_ == 0) {
    saved_window_bytes_ = window_bytes_;
    // What was in flight before this answer: a window that was not used is no window to defend.
    set_window(std::min(window_bytes_, in_flight_bytes() + acked_bytes));
  }
  penalty_end_ = sample.now + base_rtt_ns() + gains_.target_ns;
  const std::int64_t penalty = std::min(sample.window_penalty, ReceiverPenalty::kMost);
  set_window(window_bytes_ - ((penalty * acked_bytes) >> kPenaltyShift));
  return true;
}

// True when this signal needs no further reaction: the window was set to what the network
// delivered, or the signal comes from the queue that was there before that.
bool Nscc::quick_adapt(TimeNs now, bool congested, bool triggered) {
  if (!settings_.quick_adapt) return false;
  if (to_ignore_bytes_ > 0 && congested) return true;
  if (qa_end_ != kNever && now < qa_end_) return false;
  const bool fires =
      qa_end_ != kNever && (trigger_qa_ || triggered) && achieved_bytes_ < gains_.qa_gate_bytes;
  if (fires) {
    shrink_window(std::min(achieved_bytes_, window_bytes_));
    to_ignore_bytes_ = in_flight_bytes();
  }
  // A trim counts in the window it fell into, not in some later one that is short of data.
  if (qa_end_ != kNever) trigger_qa_ = false;
  achieved_bytes_ = 0;
  qa_end_ = now + base_rtt_ns() + gains_.target_ns;
  return fires;
}

// Every path is late and some packets are marked, not all: queues whose lengths say who has how
// much. Without delay on the fastest path there is room; without marks the queue is the last hop's;
// with nothing but marks the queues are longer than their marks can tell.
bool Nscc::queues_balance(TimeNs now, bool marked) const {
  return common_delay_.value_ns(now) > gains_.near_zero_ns &&
         (marked || marked_q16_ > kMarkedLatelyQ16) && marked_q16_ <= kAllMarkedQ16;
}

// What delay adds, marks take. Several queues on the way add up in both, so a window rests at about
// the same size however many there are, and the root lets small windows gain on large ones.
void Nscc::balance(const AckSample& sample, std::int64_t acked_bytes, DurationNs delay_ns) {
  leave_fast_increase();
  const DurationNs bounded_ns = std::min(delay_ns, kMaxDelayInBaseRtts * base_rtt_ns());
  const std::int64_t step =
      (root(window_bytes_ * settings_.mtu_bytes) * kAddTwice / 2) >> settings_.sharers_root_shift;
  const std::int64_t gain =
      std::min(step * bounded_ns / base_rtt_ns(), window_bytes_ / kMostAddDivisor);
  owe(gain, acked_bytes);
  if (sample.marked) shrink_window(window_bytes_ - acked_bytes / kMarkDivisor);
}

void Nscc::react(const AckSample& sample, std::int64_t acked_bytes, DurationNs delay_ns) {
  const std::int64_t below_target_ns = gains_.target_ns - delay_ns;
  if (sample.marked) {
    if (below_target_ns <= 0) multiplicative_decrease(sample.now);
    return;
  }
  if (common_delay_.value_ns(sample.now) > gains_.target_ns) return drain_common_queue(sample.now);
  std::int64_t gain_bytes = gains_.fair_bytes;
  if (below_target_ns > 0) {
    if (fast_increase(acked_bytes, delay_ns)) return;
    const std::uint64_t proportional =
        (gains_.alpha_q16 * static_cast<std::uint64_t>(below_target_ns)) >> 16;
    gain_bytes =
        static_cast<std::int64_t>(std::min<std::uint64_t>(proportional, gains_.max_window_bytes));
    gain_bytes += common_queue_lack(sample.now, delay_ns);
  } else {
    leave_fast_increase();
    // The queue may be the common one, which has not shown in every path yet.
    if (common_delay_.value_ns(sample.now) > gains_.target_ns / 2) return;
  }
  owe(gain_bytes, acked_bytes);
}

// To be added for a window of answers, of which these bytes are a part.
void Nscc::owe(std::int64_t gain_bytes, std::int64_t acked_bytes) {
  const std::uint64_t due =
      static_cast<std::uint64_t>(gain_bytes) * static_cast<std::uint64_t>(acked_bytes);
  increase_ = std::min(increase_ + due, kMaxIncrease);
}

bool Nscc::fast_increase(std::int64_t acked_bytes, DurationNs delay_ns) {
  if (delay_ns > gains_.near_zero_ns) {
    leave_fast_increase();
    return false;
  }
  if (!fast_) {
    fast_bytes_ = static_cast<std::uint32_t>(fast_bytes_ + acked_bytes);
    fast_ = fast_bytes_ > window_bytes_ / 4;
  }
  if (!fast_) return false;
  if (saved_window_bytes_ == 0 && pace_shift_ == 0) {
    // Those who shared the last hop's queue have left. All windows together are no more than what
    // the wire holds, and two and a half times that when the first delay is heard of: what the last
    // hop can hold before it trims.
    const bool takes_over = was_at_last_hop_ && settings_.fast_q16 == 0;
    const std::uint32_t rate_q16 =
        takes_over ? std::max(gains_.fast_q16, kTakeOverQ16) : gains_.fast_q16;
    const std::uint64_t grown = rate_q16 * static_cast<std::uint64_t>(acked_bytes);
    set_window(window_bytes_ + static_cast<std::int64_t>(grown >> 16));
  }
  return true;
}

void Nscc::multiplicative_decrease(TimeNs now) {
  leave_fast_increase();
  const std::int64_t average_ns = average_delay_ns();
  if (average_ns <= gains_.target_ns || now < decrease_after_) return;
  decrease_after_ = now + base_rtt_ns() + 1;
  const std::int64_t cut_q16 = gains_.gamma_q16 * (average_ns - gains_.target_ns) / average_ns;
  const std::int64_t keep_q16 = std::max<std::int64_t>(kOneQ16 - cut_q16, gains_.max_md_jump_q16);
  shrink_window(window_bytes_ * keep_q16 / kOneQ16);
}

// What is in flight beyond the base round trip stands in the common queue. Every sender sees the
// same delay and takes the same share away, once per round trip as it is with the queue. The step
// back up grows with the root of the window only, so small windows catch up with large ones, and N
// senders together add no more than the root of N.
void Nscc::drain_common_queue(TimeNs now) {
  leave_fast_increase();
  if (now < decrease_after_) return;
  const DurationNs round_trip_ns = base_rtt_ns() + common_delay_.value_ns(now);
  decrease_after_ = now + round_trip_ns;
  const std::int64_t kept = window_bytes_ * (base_rtt_ns() + gains_.target_ns) / round_trip_ns;
  shrink_window(kept + root(kept * settings_.mtu_bytes) / kStepDivisor);
}

// A queue within the network would mark at this delay, and others may have a share in it: with a
// twelfth of R instead, racks that had lost a cable filled their uplinks, 1.140 of the bound
// instead of 1.051.
bool Nscc::is_at_last_hop(TimeNs now) const {
  return common_delay_.value_ns(now) > base_rtt_ns() / kMarksFromDivisor &&
         marked_q16_ <= kMarkedLatelyQ16;
}

// What this window's share is of what the common queue lacks to its target. The converse of
// draining it: every sender sees the same delay and adds the same share, so that all of them
// together add what is missing, however many they are. Those who end their work leave a queue that
// is to last until the others have taken over: the last flow of an incast of 8 ended alone, with an
// eighth of the port, and needed three round trips for the rest.
std::int64_t Nscc::common_queue_lack(TimeNs now, DurationNs delay_ns) const {
  if (!is_at_last_hop(now)) return 0;
  return window_bytes_ * (gains_.target_ns - delay_ns) / (base_rtt_ns() + delay_ns);
}

void Nscc::adjust(TimeNs now) {
  const bool period_over = now >= adjust_at_;
  if (!period_over && received_bytes_ <= gains_.adjust_bytes) return;
  std::int64_t grown = window_bytes_ + static_cast<std::int64_t>(
                                           increase_ / static_cast<std::uint64_t>(window_bytes_));
  if (period_over) {
    grown += gains_.eta_bytes;
    adjust_at_ = now + gains_.adjust_period_ns;
    if (now >= recent_loss_end_) recent_loss_bytes_ = 0;
  }
  set_window(grown);
  drop_increase();
}

void Nscc::drop_increase() {
  increase_ = 0;
  received_bytes_ = 0;
}

void Nscc::leave_fast_increase() {
  fast_ = false;
  fast_bytes_ = 0;
}

void Nscc::ignore_bytes(std::int64_t bytes) {
  to_ignore_bytes_ = std::max<std::int64_t>(to_ignore_bytes_ - bytes, 0);
}

// --- The window and the rate below it ---

void Nscc::set_window(std::int64_t bytes) {
  const std::int64_t floor_bytes =
      MRC_BUG(kCcFloorZero) ? 1 : min_window_bytes(settings_, max_window_bytes());
  window_bytes_ = std::clamp(bytes, floor_bytes, max_window_bytes());
  if (!at_floor()) {
    pace_shift_ = 0;
    next_send_ = 0;
  }
}

// A decrease that the network asked for also holds for the window to restore after a penalty.
void Nscc::shrink_window(std::int64_t bytes) {
  const std::int64_t before = window_bytes_;
  set_window(bytes);
  saved_window_bytes_ = saved_window_bytes_ * window_bytes_ / before;
}

DurationNs Nscc::smoothed_rtt_ns() const {
  return std::min(smoothed_rtt_q3_ / 8, kMaxPacedRttInBaseRtts * base_rtt_ns());
}

// The time one packet takes out of "one window per round trip", times the pace scale. Between a
// half and one and a half times that, by the seed and the time: senders that were trimmed together
// must not come back together.
DurationNs Nscc::pace_gap_ns(TimeNs now, std::int64_t bytes) const {
  if (MRC_BUG(kCcPaceNeverEnds)) return kNever / 2;
  const std::int64_t share = std::clamp<std::int64_t>(bytes, 0, window_bytes_);
  const DurationNs gap_ns = (smoothed_rtt_ns() * share / window_bytes_) << pace_shift_;
  const std::uint32_t random = Prng(seed_ + static_cast<std::uint64_t>(now)).next32();
  const std::int64_t spread_q16 = (random >> 16) + kOneQ16 / 2;
  return gap_ns * spread_q16 / kOneQ16;
}

// The rate goes on falling where the window cannot: twice the gap for each round trip with a trim
// or a loss at the floor. The round trip that brought the window there does not count.
void Nscc::slow_pace(TimeNs now, bool was_at_floor) {
  if (!at_floor()) return;
  if (was_at_floor) {
    if (now < pace_change_at_) return;
    pace_shift_ = std::min<std::uint8_t>(pace_shift_ + 1, kMaxPaceShift);
    next_send_ = now + pace_gap_ns(now, settings_.mtu_bytes);
  }
  pace_change_at_ = now + smoothed_rtt_ns();
}

// One step a round trip, and one with every answer that found the queue short: those who filled it
// have gone, and what they left is free.
void Nscc::relax_pace(TimeNs now, bool queue_is_short) {
  if (now < pace_change_at_ && !queue_is_short) return;
  --pace_shift_;
  pace_change_at_ = now + smoothed_rtt_ns();
  next_send_ = std::min(next_send_, now + pace_gap_ns(now, settings_.mtu_bytes));
}

}  // namespace mrc::core
