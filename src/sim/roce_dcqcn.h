// DCQCN at the sender of a RoCEv2 queue pair (the reaction point): how fast it may send.
//
// A queue pair starts at line rate without a limit. The first CNP sets the limiter; between CNPs
// the rate comes back in stages, each begun by a timer or by a count of bytes: first by halving the
// distance to the rate before the cut, then with that target growing slowly, then fast. Back at
// line rate the limiter is taken off.
#pragma once

#include <cstdint>
#include <string_view>

#include "sim/event_queue.h"

namespace mrc::sim {

// Rates of 0 stand for a share of the line rate, see scaled_to().
struct DcqcnParameters {
  std::uint64_t line_bps = 0;
  std::uint64_t min_bps = 0;
  std::uint64_t additive_bps = 0;
  std::uint64_t hyper_bps = 0;
  double gain = 1.0 / 256;                 // of the congestion estimate alpha
  Time alpha_period_ps = 1'000'000;        // alpha falls once per period without CNP
  Time stage_period_ps = 55'000'000;       // timer of the stages
  std::uint32_t stage_bytes = 10'000'000;  // byte counter of the stages
  std::uint16_t fast_recovery_stages = 5;
  // Every cut lowers the target, even when the rate has not risen since the cut before.
  bool clamp_target = false;
  Time cnp_interval_ps = 50'000'000;  // receiver: least time between CNPs of a queue pair

  // Sets that people run: "tuned" (ours, what suits 400 Gb/s best of what we tried), "paper" (Zhu
  // et al., SIGCOMM 2015, rates in proportion to the port's), "nic" (what a ConnectX-7 ships with).
  // Throws InputError.
  static DcqcnParameters named(std::string_view name);

  // With every rate filled in for a port of this speed.
  DcqcnParameters scaled_to(std::uint64_t bits_per_second) const;
};

class DcqcnRate {
 public:
  // The parameters are scaled and outlive this.
  explicit DcqcnRate(const DcqcnParameters& parameters);

  void on_cnp(Time now);
  void on_sent(Time now, std::uint32_t bytes);
  // Does what the timers would have done until now; time does not go back.
  void advance(Time now);

  // As of the last call above.
  bool limited() const { return limited_; }
  std::uint64_t rate_bps() const { return rate_bps_; }
  std::uint64_t target_bps() const { return target_bps_; }
  double alpha() const { return alpha_; }

 private:
  void increase();

  const DcqcnParameters* parameters_;
  std::uint64_t rate_bps_;
  std::uint64_t target_bps_;
  double alpha_ = 1;
  Time alpha_due_ = kEndOfTime;
  Time stage_due_ = kEndOfTime;
  std::uint32_t bytes_ = 0;  // since the last stage of the byte counter
  std::uint16_t timer_stages_ = 0;
  std::uint16_t byte_stages_ = 0;
  bool limited_ = false;
};

}  // namespace mrc::sim
