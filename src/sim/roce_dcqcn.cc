#include "sim/roce_dcqcn.h"

#include <algorithm>
#include <string>

#include "base/assert.h"
#include "fabric/input_error.h"

namespace mrc::sim {
namespace {

// Below this alpha no longer matters, which bounds the work of catching up after a long pause.
constexpr double kSmallestAlpha = 1.0 / 65536;
constexpr std::uint16_t kMaxStages = 10'000;

}  // namespace

DcqcnParameters DcqcnParameters::named(std::string_view name) {
  DcqcnParameters p;
  if (name == "tuned") return p;
  if (name == "paper") {
    p.alpha_period_ps = 55'000'000;
    p.clamp_target = true;
    return p;
  }
  if (name != "nic")
    throw fabric::InputError("'" + std::string(name) +
                             "' is no set of DCQCN parameters; there are tuned, paper, nic");
  // Defaults that mlxconfig shows: RPG_AI_RATE 5 and RPG_HAI_RATE 50 (Mb/s, whatever the port),
  // RPG_MIN_RATE 1, RPG_TIME_RESET 300 us, RPG_BYTE_RESET 32767, RPG_THRESHOLD 1, DCE_TCP_G 1019 of
  // 1024, DCE_TCP_RTT 1 us, MIN_TIME_BETWEEN_CNPS 4 us, CLAMP_TGT_RATE off.
  p.additive_bps = 5'000'000;
  p.hyper_bps = 50'000'000;
  p.min_bps = 1'000'000;
  p.stage_period_ps = 300'000'000;
  p.stage_bytes = 32'767;
  p.fast_recovery_stages = 1;
  p.gain = 5.0 / 1024;
  p.cnp_interval_ps = 4'000'000;
  return p;
}

DcqcnParameters DcqcnParameters::scaled_to(std::uint64_t bits_per_second) const {
  DcqcnParameters p = *this;
  p.line_bps = bits_per_second;
  if (p.min_bps == 0) p.min_bps = bits_per_second / 1'000;
  if (p.additive_bps == 0) p.additive_bps = bits_per_second / 1'000;
  if (p.hyper_bps == 0) p.hyper_bps = bits_per_second / 100;
  p.min_bps = std::clamp<std::uint64_t>(p.min_bps, 1, bits_per_second);
  return p;
}

DcqcnRate::DcqcnRate(const DcqcnParameters& parameters)
    : parameters_(&parameters), rate_bps_(parameters.line_bps), target_bps_(parameters.line_bps) {
  MRC_ASSERT(parameters.line_bps > 0 && parameters.min_bps > 0);
}

void DcqcnRate::on_cnp(Time now) {
  advance(now);
  const DcqcnParameters& p = *parameters_;
  if (p.clamp_target || timer_stages_ + byte_stages_ > 0) target_bps_ = rate_bps_;
  const double cut = static_cast<double>(rate_bps_) * (1 - alpha_ / 2);
  rate_bps_ = std::max(static_cast<std::uint64_t>(cut), p.min_bps);
  alpha_ = (1 - p.gain) * alpha_ + p.gain;
  alpha_due_ = now + p.alpha_period_ps;
  stage_due_ = now + p.stage_period_ps;
  bytes_ = 0;
  timer_stages_ = 0;
  byte_stages_ = 0;
  limited_ = true;
}

void DcqcnRate::on_sent(Time now, std::uint32_t bytes) {
  advance(now);
  if (!limited_) return;
  bytes_ += bytes;
  while (limited_ && bytes_ >= parameters_->stage_bytes) {
    bytes_ -= parameters_->stage_bytes;
    byte_stages_ = std::min<std::uint16_t>(byte_stages_ + 1, kMaxStages);
    increase();
  }
}

void DcqcnRate::advance(Time now) {
  while (alpha_due_ <= now) {
    alpha_ *= 1 - parameters_->gain;
    alpha_due_ = alpha_ > kSmallestAlpha ? alpha_due_ + parameters_->alpha_period_ps : kEndOfTime;
  }
  while (stage_due_ <= now) {
    stage_due_ += parameters_->stage_period_ps;
    timer_stages_ = std::min<std::uint16_t>(timer_stages_ + 1, kMaxStages);
    increase();
  }
}

void DcqcnRate::increase() {
  const DcqcnParameters& p = *parameters_;
  const std::uint16_t most = std::max(timer_stages_, byte_stages_);
  const std::uint16_t least = std::min(timer_stages_, byte_stages_);
  if (least > p.fast_recovery_stages)
    target_bps_ += p.hyper_bps * (least - p.fast_recovery_stages);
  else if (most >= p.fast_recovery_stages)
    target_bps_ += p.additive_bps;
  target_bps_ = std::min(target_bps_, p.line_bps);
  rate_bps_ = (rate_bps_ + target_bps_) / 2;
  // Halving never arrives; the last additive step is where the limit no longer matters.
  if (rate_bps_ + p.additive_bps < p.line_bps) return;
  rate_bps_ = target_bps_ = p.line_bps;
  stage_due_ = kEndOfTime;
  limited_ = false;
}

}  // namespace mrc::sim
