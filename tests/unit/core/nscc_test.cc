#include "core/cc/nscc.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "unit/core/nscc_fixture.h"

namespace mrc::core {
namespace {

NsccGains gains_of(const CcProfile& profile, std::uint64_t gigabits, std::uint32_t mtu,
                   const QpHints& hints = {}) {
  const std::uint64_t bits = gigabits * kGigabit;
  return derive_gains(make_settings(profile, mtu, hints),
                      {.bits_per_second = bits,
                       .full_bits_per_second = bits,
                       .base_rtt_ns = profile.nscc.base_rtt_ns});
}

double from_q16(std::uint64_t value) { return static_cast<double>(value) / kOneQ16; }

// Nine packets are the first to pass the threshold of eight.
constexpr int kAcksPerAdjustment = 9;

// --- Parameters ---

TEST(NsccParameters, DefaultsMatchTheTwoTier400GigabitTable) {
  // The table counts increases in payload (4,086 bytes) and thresholds in packets (4,150).
  const NsccGains gains = gains_of(two_tier(), 400, 4'086);
  EXPECT_NEAR(gains.target_ns, 6'253, 1);
  EXPECT_NEAR(from_q16(gains.alpha_q16) * 1'000, 3'785, 1);
  EXPECT_NEAR(gains.fair_bytes, 56'776, 3);
  EXPECT_NEAR(gains.eta_bytes, 1'703, 1);
  EXPECT_NEAR(from_q16(gains.fast_q16), 0.695, 0.001);
  EXPECT_NEAR(from_q16(gains.gamma_q16), 0.8, 0.0001);
  EXPECT_NEAR(from_q16(gains.max_md_jump_q16), 0.5, 0.0001);
  EXPECT_NEAR(gains.max_window_bytes, 625'284, 10);
  EXPECT_EQ(gains.qa_gate_bytes, gains.max_window_bytes / 8);
  EXPECT_EQ(gains.adjust_period_ns, kBaseRtt);
  EXPECT_EQ(gains_of(two_tier(), 400, kMtu).adjust_bytes, 33'200U);
}

TEST(NsccParameters, DefaultsMatchTheThreeTier100GigabitTable) {
  CcProfile profile;
  profile.nscc.base_rtt_ns = 14'023;
  const NsccGains gains = gains_of(profile, 100, 4'086);
  EXPECT_NEAR(gains.target_ns, 10'517, 1);
  EXPECT_NEAR(from_q16(gains.alpha_q16) * 1'000, 1'592, 1);
  EXPECT_NEAR(gains.fair_bytes, 23'874, 10);
  EXPECT_NEAR(gains.eta_bytes, 716, 1);
  EXPECT_NEAR(from_q16(gains.fast_q16), 0.292, 0.001);
  EXPECT_NEAR(gains.max_window_bytes, 262'926, 10);
}

TEST(NsccParameters, WithoutTrimmingTheTargetIsOneBaseRttAndDelayTriggersQuickAdapt) {
  CcProfile profile = two_tier();
  profile.network_trims = false;
  const NsccGains gains = gains_of(profile, 400, kMtu);
  EXPECT_EQ(gains.target_ns, kBaseRtt);
  EXPECT_EQ(gains.qa_threshold_ns, 4 * kBaseRtt);
  EXPECT_EQ(gains_of(two_tier(), 400, kMtu).qa_threshold_ns,
            std::numeric_limits<std::uint32_t>::max());
}

TEST(NsccParameters, FastIncreaseDelayLimitScalesWithBaseRtt) {
  CcProfile profile;
  profile.nscc.base_rtt_ns = 12'000;
  EXPECT_EQ(gains_of(profile, 100, kMtu).near_zero_ns, 1'000U);
  profile.nscc.base_rtt_ns = 96'000;
  EXPECT_EQ(gains_of(profile, 100, kMtu).near_zero_ns, 8'000U);
  // Timestamps have steps of 128 ns; a single step is no delay.
  profile.nscc.base_rtt_ns = 600;
  EXPECT_EQ(gains_of(profile, 100, kMtu).near_zero_ns, 128U);
}

TEST(NsccParameters, ExplicitValuesWin) {
  CcProfile profile;
  profile.nscc = {.adjust_bytes_threshold = 1'001,
                  .adjust_period_threshold_ns = 1'002,
                  .base_rtt_ns = 10'000,
                  .eta = 1'003,
                  .fi = 1'004,
                  .fi_scale = 1.5F,
                  .gamma = 0.25F,
                  .max_md_jump = 0.75F,
                  .max_cwnd = 100'000,
                  .qa_gate = 2,
                  .qa_threshold_ns = 1'005,
                  .target_delay_ns = 1'006};
  for (const std::uint64_t gigabits : {25, 400}) {
    const NsccGains gains = gains_of(profile, gigabits, kMtu, {.remote_recv_peers = 16});
    EXPECT_EQ(gains.adjust_bytes, 1'001U);
    EXPECT_EQ(gains.adjust_period_ns, 1'002U);
    EXPECT_EQ(gains.eta_bytes, 1'003U);
    EXPECT_EQ(gains.fair_bytes, 1'004U);
    EXPECT_EQ(gains.fast_q16, 3 * kOneQ16 / 2);
    EXPECT_EQ(gains.gamma_q16, kOneQ16 / 4);
    EXPECT_EQ(gains.max_md_jump_q16, 3 * kOneQ16 / 4);
    EXPECT_EQ(gains.max_window_bytes, 100'000U);
    EXPECT_EQ(gains.qa_gate_bytes, 25'000U);
    EXPECT_EQ(gains.qa_threshold_ns, 1'005U);
    EXPECT_EQ(gains.target_ns, 1'006U);
  }
}

TEST(NsccParameters, AlphaDoesNotDependOnTheTarget) {
  CcProfile profile = two_tier();
  const NsccGains derived = gains_of(profile, 400, kMtu);
  profile.nscc.target_delay_ns = 2'000;
  EXPECT_EQ(gains_of(profile, 400, kMtu).alpha_q16, derived.alpha_q16);
}

TEST(NsccParameters, FloatsThatMeanNothingAreDerivedOrBounded) {
  const NsccGains derived = gains_of(two_tier(), 400, kMtu);
  const float infinity = std::numeric_limits<float>::infinity();
  for (const float nonsense : {-1.0F, -infinity, std::nanf("")}) {
    CcProfile profile = two_tier();
    profile.nscc.eta = profile.nscc.fi = profile.nscc.fi_scale = nonsense;
    profile.nscc.gamma = profile.nscc.max_md_jump = nonsense;
    const NsccGains gains = gains_of(profile, 400, kMtu);
    EXPECT_EQ(gains.eta_bytes, derived.eta_bytes);
    EXPECT_EQ(gains.fair_bytes, derived.fair_bytes);
    EXPECT_EQ(gains.fast_q16, derived.fast_q16);
    EXPECT_EQ(gains.gamma_q16, derived.gamma_q16);
    EXPECT_EQ(gains.max_md_jump_q16, derived.max_md_jump_q16);
  }
  CcProfile profile = two_tier();
  profile.nscc.eta = infinity;
  profile.nscc.max_md_jump = 7;
  profile.nscc.gamma = 1e-30F;
  EXPECT_EQ(gains_of(profile, 400, kMtu).eta_bytes, kMaxWindowBytes);
  EXPECT_EQ(gains_of(profile, 400, kMtu).max_md_jump_q16, kOneQ16);
  EXPECT_EQ(gains_of(profile, 400, kMtu).gamma_q16, 1U);
}

TEST(NsccParameters, TheRootOfTheIncastDegreeDividesTheDerivedIncreases) {
  const NsccGains one = gains_of(two_tier(), 400, kMtu);
  const NsccGains many = gains_of(two_tier(), 400, kMtu, {.remote_recv_peers = 16});
  EXPECT_NEAR(many.fair_bytes, one.fair_bytes / 4, 1);
  EXPECT_NEAR(many.eta_bytes, one.eta_bytes / 4, 1);
  EXPECT_EQ(many.alpha_q16, one.alpha_q16 / 4);
  EXPECT_EQ(many.fast_q16, one.fast_q16);
  EXPECT_EQ(many.max_window_bytes, one.max_window_bytes);
}

TEST(NsccParameters, AbsurdNetworksStayInBounds) {
  constexpr std::uint64_t kMaxBits = std::numeric_limits<std::uint64_t>::max();
  for (const std::uint64_t bits : {std::uint64_t{0}, std::uint64_t{1}, kMaxBits}) {
    for (const DurationNs rtt : {kMinBaseRttNs, kMaxBaseRttNs}) {
      for (const std::uint32_t mtu : {0U, std::numeric_limits<std::uint32_t>::max()}) {
        const NsccSettings settings = make_settings({}, mtu, {});
        const NsccGains gains = derive_gains(
            settings,
            {.bits_per_second = bits, .full_bits_per_second = kMaxBits, .base_rtt_ns = rtt});
        EXPECT_GE(gains.max_window_bytes, settings.mtu_bytes);
        EXPECT_LE(gains.max_window_bytes, kMaxWindowBytes);
        EXPECT_GE(gains.eta_bytes, 1U);
        EXPECT_GE(gains.target_ns, 1U);
      }
    }
  }
}

// --- The four quadrants ---

TEST(Nscc, BelowTargetWithoutMarkItGrowsInProportionToTheDistance) {
  const NsccGains gains = gains_of(two_tier(), 400, kMtu);
  for (const DurationNs delay : {DurationNs{1'000}, DurationNs{4'000}, DurationNs{6'000}}) {
    Nscc cc = make_nscc();
    settle(cc, 0, 100'000);
    for (int i = 0; i < kAcksPerAdjustment; ++i)
      ack(cc, 1 + i, delay);
    const double per_window =
        from_q16(gains.alpha_q16) * static_cast<double>(gains.target_ns - delay);
    EXPECT_NEAR(static_cast<double>(cc.window_bytes()),
                100'000 + per_window * kAcksPerAdjustment * kMtu / 100'000, 2);
  }
}

TEST(Nscc, AboveTargetWithoutMarkItGrowsByTheFairStep) {
  const NsccGains gains = gains_of(two_tier(), 400, kMtu);
  Nscc cc = make_nscc();
  settle(cc, 0, 100'000);
  for (int i = 0; i < kAcksPerAdjustment; ++i)
    ack(cc, 1 + i, gains.target_ns);
  const std::int64_t step = std::int64_t{gains.fair_bytes} * kAcksPerAdjustment * kMtu / 100'000;
  EXPECT_EQ(cc.window_bytes(), 100'000 + step);
}

TEST(Nscc, BelowTargetWithMarkNothingChanges) {
  Nscc cc = make_nscc();
  settle(cc, 0, 100'000);
  for (int i = 0; i < 50; ++i)
    ack(cc, 1 + i, 6'000, true);
  EXPECT_EQ(cc.window_bytes(), 100'000);
}

TEST(Nscc, AboveTargetWithMarkItDecreasesByTheAverageExcessOncePerBaseRtt) {
  const NsccGains gains = gains_of(two_tier(), 400, kMtu);
  Nscc cc = make_nscc();
  settle(cc, 0, 400'000);
  TimeNs now = 1;
  while (cc.window_bytes() == 400'000 && now < 1'000)
    ack(cc, now++, 8'000, true, 0);
  const auto average = static_cast<double>(cc.average_delay_ns());
  EXPECT_GT(average, gains.target_ns);
  const double factor = 1 - 0.8 * (average - gains.target_ns) / average;
  EXPECT_NEAR(static_cast<double>(cc.window_bytes()), 400'000 * factor, 10);

  const std::int64_t once = cc.window_bytes();
  while (now < kBaseRtt)
    ack(cc, now++, 8'000, true, 0);
  EXPECT_EQ(cc.window_bytes(), once);
  ack(cc, 2 * kBaseRtt, 8'000, true, 0);
  EXPECT_LT(cc.window_bytes(), once);
}

TEST(Nscc, NoSingleDecreaseTakesMoreThanHalf) {
  Nscc cc = make_nscc();
  settle(cc, 0, 400'000);
  const DurationNs huge = 10 * kMillisecondNs;
  for (int i = 0; i < 200 && cc.window_bytes() == 400'000; ++i)
    ack(cc, 1 + i, huge, true, 0);
  for (int i = 0; i < 200; ++i)
    ack(cc, 300 + i, huge, true, 0);
  const std::int64_t before = cc.window_bytes();
  ack(cc, 3 * kBaseRtt, huge, true, 0);
  // The period bonus is added after the decrease.
  EXPECT_NEAR(static_cast<double>(cc.window_bytes()),
              static_cast<double>(before) / 2 + gains_of(two_tier(), 400, kMtu).eta_bytes, 1);
}

TEST(Nscc, GammaAndMaxJumpShapeTheDecrease) {
  CcProfile profile = two_tier();
  profile.nscc.eta = 1;
  profile.nscc.gamma = 16;
  profile.nscc.max_md_jump = 0.9F;
  Nscc cc = make_nscc(profile);
  settle(cc, 0, 400'000);
  for (int i = 0; i < 100; ++i)
    ack(cc, 1 + i, 60'000, true, 0);
  EXPECT_NEAR(static_cast<double>(cc.window_bytes()), 360'000, 2'000);
}

TEST(Nscc, TargetDelayMovesTheBorderBetweenQuadrants) {
  CcProfile profile = two_tier();
  profile.nscc.target_delay_ns = 3'000;
  Nscc cc = make_nscc(profile);
  settle(cc, 0, 400'000);
  for (int i = 0; i < 200; ++i)
    ack(cc, 1 + i, 4'000, true, 0);
  EXPECT_LT(cc.window_bytes(), 400'000);
}

TEST(Nscc, ADelayThatEvenTheFastestPathHasDrainsTheCommonQueue) {
  Nscc cc = make_nscc();
  settle(cc, 0, 400'000);
  const DurationNs delay = 2 * kBaseRtt;
  for (int i = 1; i <= 3; ++i)
    ack(cc, i * (kBaseRtt + 1), delay, false, 0);
  const std::int64_t after = cc.window_bytes();
  EXPECT_LT(after, 400'000 * 3 / 4);
  ack(cc, 3 * (kBaseRtt + 1) + 1, delay, false, 0);
  EXPECT_EQ(cc.window_bytes(), after) << "once per round trip";
}

TEST(Nscc, OneFastPathProvesThatTheDelayIsNotCommon) {
  Nscc cc = make_nscc();
  settle(cc, 0, 400'000);
  for (int i = 1; i <= 300; ++i)
    ack(cc, i * 100, i % 10 == 0 ? 0 : 2 * kBaseRtt, false, 0);
  EXPECT_GE(cc.window_bytes(), 400'000);
}

// --- Increase mechanisms ---

TEST(Nscc, AQuarterOfAWindowWithoutDelayStartsFastIncrease) {
  const NsccGains gains = gains_of(two_tier(), 400, kMtu);
  Nscc cc = make_nscc();
  settle(cc, 0, 10 * kMtu);
  for (int i = 0; i < 2; ++i)
    ack(cc, 1, 0);
  EXPECT_EQ(cc.window_bytes(), 10 * kMtu);
  std::int64_t before = 0;
  for (int i = 0; i < 20; ++i) {
    before = cc.window_bytes();
    ack(cc, 1, 500);
  }
  const auto step = static_cast<std::int64_t>((std::uint64_t{gains.fast_q16} * kMtu) >> 16);
  EXPECT_EQ(cc.window_bytes(), before + step);
}

TEST(Nscc, AnyDelayEndsFastIncrease) {
  struct Delayed {
    DurationNs delay_ns;
    bool marked;
  };
  for (const Delayed delayed :
       {Delayed{1'000, false}, Delayed{9'000, false}, Delayed{9'000, true}}) {
    Nscc cc = make_nscc();
    settle(cc, 0, 10 * kMtu);
    for (int i = 0; i < 20; ++i)
      ack(cc, 1, 0);
    ack(cc, 1, delayed.delay_ns, delayed.marked);
    const std::int64_t before = cc.window_bytes();
    ack(cc, 1, 0);
    EXPECT_EQ(cc.window_bytes(), before) << delayed.delay_ns << delayed.marked;
  }
}

TEST(Nscc, FastIncreaseScaleSetsItsSpeed) {
  CcProfile profile = two_tier();
  profile.nscc.fi_scale = 2;
  Nscc cc = make_nscc(profile);
  settle(cc, 0, 2 * kMtu);
  for (int i = 0; i < 20; ++i)
    ack(cc, 1, 0);
  const std::int64_t before = cc.window_bytes();
  ack(cc, 1, 0);
  EXPECT_EQ(cc.window_bytes(), before + 2 * kMtu);
}

TEST(Nscc, EtaIsAddedOncePerPeriod) {
  CcProfile profile = two_tier();
  profile.nscc.eta = 700;
  profile.nscc.adjust_period_threshold_ns = 5'000;
  Nscc cc = make_nscc(profile);
  settle(cc, 0, 100'000);
  ack(cc, 4'999, 1'000, true);
  EXPECT_EQ(cc.window_bytes(), 100'000);
  ack(cc, 5'000, 1'000, true);
  EXPECT_EQ(cc.window_bytes(), 100'700);
  ack(cc, 9'999, 1'000, true);
  EXPECT_EQ(cc.window_bytes(), 100'700);
  ack(cc, 10'000, 1'000, true);
  EXPECT_EQ(cc.window_bytes(), 101'400);
}

TEST(Nscc, AdjustBytesThresholdSetsHowOftenTheIncreaseIsApplied) {
  CcProfile profile = two_tier();
  profile.nscc.adjust_bytes_threshold = 2 * kMtu;
  Nscc cc = make_nscc(profile);
  settle(cc, 0, 100'000);
  ack(cc, 1, 2'000);
  ack(cc, 2, 2'000);
  EXPECT_EQ(cc.window_bytes(), 100'000);
  ack(cc, 3, 2'000);
  EXPECT_GT(cc.window_bytes(), 100'000);
}

TEST(Nscc, FairIncreaseParameterSetsItsStep) {
  CcProfile profile = two_tier();
  profile.nscc.fi = 100'000;
  Nscc cc = make_nscc(profile);
  settle(cc, 0, 100'000);
  for (int i = 0; i < kAcksPerAdjustment; ++i)
    ack(cc, 1 + i, 9'000);
  EXPECT_EQ(cc.window_bytes(), 100'000 + kAcksPerAdjustment * kMtu);
}

TEST(Nscc, NothingGrowsBeyondTheMaximum) {
  CcProfile profile = two_tier();
  profile.nscc.max_cwnd = 50'000;
  Nscc cc = make_nscc(profile);
  for (int i = 0; i < 1'000; ++i)
    ack(cc, i * 100, i % 2 == 0 ? 0 : 9'000);
  EXPECT_EQ(cc.window_bytes(), 50'000);
}

TEST(Nscc, IncreasesDoNotOverflowAt800GigabitAnd100Microseconds) {
  CcProfile profile;
  profile.nscc.base_rtt_ns = 100'000;
  Nscc cc(profile, environment(800));
  ASSERT_EQ(cc.window_bytes(), 15'000'000);
  settle(cc, 0, 5'000'000);
  for (int i = 0; i < kAcksPerAdjustment; ++i)
    ack(cc, 1 + i, 75'000);
  // Fair increase: 5 * MTU * (10,000,000 / 150,000) per window; the sum passes 2^32 on the way.
  const double step = 5.0 * kMtu * 10'000'000 / 150'000 * kAcksPerAdjustment * kMtu / 5'000'000;
  EXPECT_NEAR(static_cast<double>(cc.window_bytes()), 5'000'000 + step, 2);
}

// --- Average delay ---

TEST(Nscc, ASlowAnswerWithoutMarkCountsAsNoise) {
  Nscc cc = make_nscc();
  for (int i = 0; i < 1'000; ++i)
    ack(cc, i, 50'000, false, 0);
  EXPECT_NEAR(static_cast<double>(cc.average_delay_ns()), kBaseRtt / 4.0, 2);
}

TEST(Nscc, OneSampleMovesTheAverageByAnEightieth) {
  Nscc cc = make_nscc();
  ack(cc, 0, 4'000, true, 0);
  EXPECT_EQ(cc.average_delay_ns(), 50);
}

TEST(Nscc, OneHugeSampleMovesTheAverageByAFewMicrosecondsOnly) {
  Nscc cc = make_nscc();
  ack(cc, 0, kSecondNs, true, 0);
  EXPECT_EQ(cc.average_delay_ns(), 16 * kBaseRtt / 80);
}

TEST(Nscc, ATrimCountsAsOneBaseRttOfDelay) {
  Nscc cc = make_nscc();
  for (int i = 0; i < 1'000; ++i)
    cc.on_trim(i, kMtu, false);
  EXPECT_NEAR(static_cast<double>(cc.average_delay_ns()), kBaseRtt, 2);
}

TEST(Nscc, AnAnswerWithoutSampleStandsForTheAverage) {
  Nscc cc = make_nscc();
  for (int i = 0; i < 1'000; ++i)
    ack(cc, i, 3'000, true, 0);
  settle(cc, 1'000, 100'000);
  const DurationNs average = cc.average_delay_ns();
  for (int i = 0; i < kAcksPerAdjustment; ++i)
    cc.on_ack({.now = 1'001, .acked_bytes = kMtu});
  EXPECT_EQ(cc.average_delay_ns(), average);
  EXPECT_GT(cc.window_bytes(), 100'000);
}

}  // namespace
}  // namespace mrc::core
