#include "sim/roce_dcqcn.h"

#include <gtest/gtest.h>

#include <cmath>

#include "fabric/input_error.h"

namespace mrc::sim {
namespace {

constexpr std::uint64_t kLine = 400'000'000'000;
constexpr Time kUs = 1'000'000;

// The published algorithm: the estimate moves as slowly as the rate, every cut sets the target.
DcqcnParameters published() {
  DcqcnParameters p;
  p.alpha_period_ps = 55 * kUs;
  p.clamp_target = true;
  return p.scaled_to(kLine);
}

TEST(DcqcnRate, StartsAtLineRateWithoutALimit) {
  const DcqcnParameters p = published();
  DcqcnRate rate(p);
  rate.on_sent(10 * kUs, 4'178);
  EXPECT_FALSE(rate.limited());
  EXPECT_EQ(rate.rate_bps(), kLine);
}

TEST(DcqcnRate, ScalesItsStepsToTheLine) {
  const DcqcnParameters p = DcqcnParameters{}.scaled_to(kLine);
  EXPECT_EQ(p.additive_bps, 400'000'000u);
  EXPECT_EQ(p.hyper_bps, 4'000'000'000u);
  EXPECT_EQ(p.min_bps, 400'000'000u);
  EXPECT_EQ(DcqcnParameters{.additive_bps = 7}.scaled_to(kLine).additive_bps, 7u);
}

TEST(DcqcnRate, FirstCnpHalvesTheRate) {
  const DcqcnParameters p = published();
  DcqcnRate rate(p);
  rate.on_cnp(100 * kUs);
  EXPECT_TRUE(rate.limited());
  EXPECT_EQ(rate.rate_bps(), kLine / 2);
  EXPECT_EQ(rate.target_bps(), kLine);
  EXPECT_DOUBLE_EQ(rate.alpha(), 1);
}

TEST(DcqcnRate, CutsLessWhenCnpsHaveBeenRare) {
  const DcqcnParameters p = published();
  DcqcnRate rate(p);
  rate.on_cnp(0);
  rate.advance(550 * kUs);
  const double expected = 1 - 10.0 / 256;
  EXPECT_NEAR(rate.alpha(), expected, 0.001);
  const auto before = static_cast<double>(rate.rate_bps());
  rate.on_cnp(551 * kUs);
  EXPECT_NEAR(static_cast<double>(rate.rate_bps()) / before, 1 - expected / 2, 0.001);
  EXPECT_GT(rate.alpha(), expected - 0.001);
}

TEST(DcqcnRate, FastRecoveryHalvesTheDistanceToTheTarget) {
  const DcqcnParameters p = published();
  DcqcnRate rate(p);
  rate.on_cnp(0);
  std::uint64_t missing = kLine / 2;
  for (int stage = 1; stage <= 4; ++stage) {
    rate.advance(stage * 55 * kUs - 1);
    EXPECT_EQ(rate.rate_bps(), kLine - missing) << stage;
    rate.advance(stage * 55 * kUs);
    missing /= 2;
    EXPECT_EQ(rate.rate_bps(), kLine - missing) << stage;
    EXPECT_EQ(rate.target_bps(), kLine);
  }
}

TEST(DcqcnRate, AdditiveIncreaseBeginsAfterFastRecovery) {
  const DcqcnParameters p = published();
  DcqcnRate rate(p);
  rate.on_cnp(0);
  rate.on_cnp(1);
  ASSERT_EQ(rate.target_bps(), kLine / 2);
  rate.advance(4 * 55 * kUs + 1);
  EXPECT_EQ(rate.target_bps(), kLine / 2);
  rate.advance(5 * 55 * kUs + 1);
  EXPECT_EQ(rate.target_bps(), kLine / 2 + p.additive_bps);
  // However long the timer alone has run, the steps stay small.
  rate.advance(25 * 55 * kUs + 1);
  EXPECT_EQ(rate.target_bps(), kLine / 2 + 21 * p.additive_bps);
}

TEST(DcqcnRate, HyperIncreaseNeedsBothTimerAndBytes) {
  const DcqcnParameters p = published();
  DcqcnRate rate(p);
  rate.on_cnp(0);
  rate.on_cnp(1);
  rate.advance(6 * 55 * kUs + 1);
  const std::uint64_t target = rate.target_bps();
  for (int stage = 1; stage <= 5; ++stage)
    rate.on_sent(6 * 55 * kUs + 2, p.stage_bytes);
  EXPECT_EQ(rate.target_bps(), target + 5 * p.additive_bps);
  rate.on_sent(6 * 55 * kUs + 2, p.stage_bytes);
  EXPECT_EQ(rate.target_bps(), target + 5 * p.additive_bps + p.hyper_bps);
  rate.advance(7 * 55 * kUs + 1);
  rate.on_sent(7 * 55 * kUs + 2, p.stage_bytes);
  EXPECT_EQ(rate.target_bps(), target + 5 * p.additive_bps + (1 + 1 + 2) * p.hyper_bps);
}

TEST(DcqcnRate, BytesBeginStagesBeforeTheTimerDoes) {
  const DcqcnParameters p = published();
  DcqcnRate rate(p);
  rate.on_cnp(0);
  rate.on_sent(1, p.stage_bytes - 1);
  EXPECT_EQ(rate.rate_bps(), kLine / 2);
  rate.on_sent(2, 1);
  EXPECT_EQ(rate.rate_bps(), kLine * 3 / 4);
}

TEST(DcqcnRate, ACnpStartsTheStagesAgain) {
  const DcqcnParameters p = published();
  DcqcnRate rate(p);
  rate.on_cnp(0);
  rate.advance(50 * kUs);
  rate.on_cnp(50 * kUs);
  EXPECT_EQ(rate.rate_bps(), kLine / 4);
  rate.advance(104 * kUs);
  EXPECT_EQ(rate.rate_bps(), kLine / 4);
  rate.advance(105 * kUs);
  EXPECT_EQ(rate.rate_bps(), kLine * 3 / 8);
}

TEST(DcqcnRate, ACnpStartsTheByteCounterAgain) {
  const DcqcnParameters p = published();
  DcqcnRate rate(p);
  rate.on_cnp(0);
  for (int stage = 0; stage < 4; ++stage)
    rate.on_sent(1, p.stage_bytes);
  rate.on_sent(1, p.stage_bytes - 1);
  rate.on_cnp(2);
  const std::uint64_t cut = rate.rate_bps();
  rate.on_sent(3, p.stage_bytes - 1);
  EXPECT_EQ(rate.rate_bps(), cut);
  const std::uint64_t target = rate.target_bps();
  for (int stage = 0; stage < 4; ++stage)
    rate.on_sent(3, p.stage_bytes);
  EXPECT_GT(rate.rate_bps(), cut);
  EXPECT_EQ(rate.target_bps(), target) << "still fast recovery";
}

TEST(DcqcnRate, EveryCnpRaisesTheEstimate) {
  const DcqcnParameters p = DcqcnParameters{}.scaled_to(kLine);
  DcqcnRate rate(p);
  rate.on_cnp(0);
  rate.advance(200 * kUs);
  const double before = rate.alpha();
  EXPECT_LT(before, 0.5);
  rate.on_cnp(200 * kUs);
  EXPECT_DOUBLE_EQ(rate.alpha(), (1 - p.gain) * before + p.gain);
}

TEST(DcqcnRate, TargetStaysThroughATrainOfCutsUnlessClamped) {
  const DcqcnParameters p = DcqcnParameters{}.scaled_to(kLine);
  DcqcnRate rate(p);
  rate.on_cnp(0);
  rate.on_cnp(50 * kUs);
  EXPECT_EQ(rate.target_bps(), kLine);
  EXPECT_LT(rate.rate_bps(), kLine / 2);
  // Once the rate has risen, the next cut counts from there.
  rate.advance(105 * kUs);
  const std::uint64_t risen = rate.rate_bps();
  rate.on_cnp(106 * kUs);
  EXPECT_EQ(rate.target_bps(), risen);
}

TEST(DcqcnRate, NeverFallsBelowTheMinimum) {
  const DcqcnParameters p = published();
  DcqcnRate rate(p);
  for (int i = 0; i < 20; ++i)
    rate.on_cnp(i * 50 * kUs);
  EXPECT_EQ(rate.rate_bps(), p.min_bps);
}

TEST(DcqcnRate, LimiterComesOffAtLineRate) {
  const DcqcnParameters p = published();
  DcqcnRate rate(p);
  rate.on_cnp(0);
  rate.advance(6 * 55 * kUs);
  EXPECT_TRUE(rate.limited());
  rate.advance(20 * 55 * kUs);
  EXPECT_FALSE(rate.limited());
  EXPECT_EQ(rate.rate_bps(), kLine);
  // And back on with the next CNP, by what is left of the estimate.
  rate.on_cnp(21 * 55 * kUs);
  EXPECT_TRUE(rate.limited());
  EXPECT_GT(rate.rate_bps(), kLine / 2);
}

TEST(DcqcnRate, CatchingUpAtOnceEqualsManySmallSteps) {
  const DcqcnParameters p = DcqcnParameters{}.scaled_to(kLine);
  DcqcnRate at_once(p);
  DcqcnRate in_steps(p);
  for (DcqcnRate* rate : {&at_once, &in_steps}) {
    rate->on_cnp(0);
    rate->on_cnp(50 * kUs);
    rate->on_cnp(100 * kUs);
  }
  for (Time t = 101 * kUs; t <= 400 * kUs; t += kUs / 3)
    in_steps.advance(t);
  in_steps.advance(400 * kUs);
  at_once.advance(400 * kUs);
  EXPECT_EQ(at_once.rate_bps(), in_steps.rate_bps());
  EXPECT_EQ(at_once.target_bps(), in_steps.target_bps());
  EXPECT_EQ(at_once.alpha(), in_steps.alpha());
}

TEST(DcqcnParameters, OfANicCutAndRiseAsItsDefaultsSay) {
  const DcqcnParameters p = DcqcnParameters::named("nic").scaled_to(kLine);
  EXPECT_EQ(p.additive_bps, 5'000'000u);  // whatever the line
  DcqcnRate rate(p);
  rate.on_cnp(0);
  EXPECT_EQ(rate.rate_bps(), kLine / 2);  // alpha begins with 1
  // One stage of fast recovery by the timer, after 300 us; then 5 Mb/s more of the target each.
  rate.advance(300 * kUs);
  EXPECT_EQ(rate.target_bps(), kLine);
  EXPECT_EQ(rate.rate_bps(), kLine * 3 / 4);
  EXPECT_NEAR(rate.alpha(), std::pow(1019.0 / 1024, 300), 1e-9);
  // Bytes make stages, too: one each 32 kB.
  rate.on_sent(301 * kUs, 32'767);
  EXPECT_EQ(rate.rate_bps(), kLine * 7 / 8);
}

TEST(DcqcnParameters, HaveNames) {
  EXPECT_TRUE(DcqcnParameters::named("paper").clamp_target);
  EXPECT_EQ(DcqcnParameters::named("tuned").alpha_period_ps, DcqcnParameters{}.alpha_period_ps);
  EXPECT_THROW(DcqcnParameters::named("best"), fabric::InputError);
}

}  // namespace
}  // namespace mrc::sim
