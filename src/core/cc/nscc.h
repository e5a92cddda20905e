// NSCC, the congestion control of Ultra Ethernet ("uet-1.0-nscc") that MRC adopts. See
// docs/congestion.md for the algorithm, its parameters and where we differ from the reference.
//
// Invariant after every call: one MTU <= window_bytes() <= the maximum window of the moment.
// Integer arithmetic only; samples may hold any value.
#pragma once

#include <cstdint>
#include <limits>

#include "core/cc/base_rtt.h"
#include "core/cc/common_delay.h"
#include "core/cc/congestion.h"
#include "core/cc/nscc_parameters.h"

namespace mrc::core {

class Nscc final : public CongestionController {
 public:
  Nscc(const CcProfile& profile, const CcEnvironment& environment);

  void on_packet_sent(TimeNs now, std::int64_t bytes) override;
  void on_ack(const AckSample& sample) override;
  void on_trim(TimeNs now, std::int64_t bytes, bool last_hop) override;
  void on_loss(TimeNs now, std::int64_t bytes) override;
  void set_bandwidth(std::uint64_t bits_per_second) override;

  std::int64_t window_bytes() const override { return window_bytes_; }
  DurationNs base_rtt_ns() const override { return base_rtt_.value_ns(); }

  std::int64_t max_window_bytes() const { return gains_.max_window_bytes; }
  DurationNs average_delay_ns() const { return average_delay_q16_ >> 16; }
  unsigned pace_scale() const { return 1U << pace_shift_; }

 private:
  static constexpr TimeNs kAtOnce = std::numeric_limits<TimeNs>::min();

  // Measurements.
  DurationNs measure_delay(const AckSample& sample);
  void feed_average(DurationNs delay_ns);
  void note_mark(bool marked);
  void lower_base_rtt();
  void update_gains();

  // The parts of the algorithm.
  bool apply_penalty(const AckSample& sample, std::int64_t acked_bytes);
  bool quick_adapt(TimeNs now, bool congested, bool triggered);
  bool queues_balance(TimeNs now, bool marked) const;
  void balance(const AckSample& sample, std::int64_t acked_bytes, DurationNs delay_ns);
  void react(const AckSample& sample, std::int64_t acked_bytes, DurationNs delay_ns);
  void owe(std::int64_t gain_bytes, std::int64_t acked_bytes);
  bool fast_increase(std::int64_t acked_bytes, DurationNs delay_ns);
  void multiplicative_decrease(TimeNs now);
  bool is_at_last_hop(TimeNs now) const;
  std::int64_t common_queue_lack(TimeNs now, DurationNs delay_ns) const;
  void drain_common_queue(TimeNs now);
  void adjust(TimeNs now);
  void drop_increase();
  void leave_fast_increase();
  void ignore_bytes(std::int64_t bytes);

  // The window and the rate below it.
  void set_window(std::int64_t bytes);
  void shrink_window(std::int64_t bytes);
  bool at_floor() const { return window_bytes_ < 2 * std::int64_t{settings_.mtu_bytes}; }
  DurationNs smoothed_rtt_ns() const;
  DurationNs pace_gap_ns(TimeNs now, std::int64_t bytes) const;
  void slow_pace(TimeNs now, bool was_at_floor);
  void relax_pace(TimeNs now, bool queue_is_short);

  NsccGains gains_;
  std::int64_t window_bytes_ = 0;
  std::int64_t average_delay_q16_ = 0;
  std::int64_t smoothed_rtt_q3_ = 0;

  CommonDelay common_delay_;

  // Increase not yet applied, in bytes squared: divided by the window when it is.
  std::uint64_t increase_ = 0;
  std::int64_t received_bytes_ = 0;  // since the last adjustment
  TimeNs adjust_at_ = kAtOnce;
  TimeNs decrease_after_ = kAtOnce;
  std::uint32_t fast_bytes_ = 0;  // acknowledged in a row without delay
  std::uint32_t marked_q16_ = 0;  // share of marked answers, lately

  // Quick adapt.
  TimeNs qa_end_ = kNever;  // kNever: no window is open
  std::int64_t achieved_bytes_ = 0;
  std::int64_t to_ignore_bytes_ = 0;  // of the old queue, still to drain

  // Receiver penalty.
  std::int64_t saved_window_bytes_ = 0;  // 0: none is in force
  TimeNs penalty_end_ = 0;

  // Plane loss.
  std::uint64_t bits_per_second_;
  std::uint64_t full_bits_per_second_;
  std::int64_t recent_loss_bytes_ = 0;    // what inferred losses lately took from the window
  std::int64_t forgiven_loss_bytes_ = 0;  // losses the smaller window already accounts for
  TimeNs recent_loss_end_ = 0;

  TimeNs pace_change_at_ = kAtOnce;
  std::uint64_t seed_;

  NsccSettings settings_;
  BaseRtt base_rtt_;
  std::uint32_t parked_fill_q16_ = 0;  // window share of the maximum while no plane is usable
  std::uint8_t pace_shift_ = 0;
  bool fast_ : 1 = false;
  bool was_at_last_hop_ : 1 = false;  // the last queue it stood in was that of the last hop
  bool trigger_qa_ : 1 = false;
  bool fresh_ : 1 = true;  // no round trip has been measured yet
};

}  // namespace mrc::core
