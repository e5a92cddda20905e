#include "core/cc/nscc.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "unit/core/nscc_fixture.h"

namespace mrc::core {
namespace {

// Nine packets are the first to pass the threshold of eight.
constexpr int kAcksPerAdjustment = 9;

// --- The four quadrants ---

TEST(Nscc, BelowTargetWithoutMarkItGrowsInProportionToTheDistance) {
  const NsccGains gains = gains_of(two_tier(), 400, kNsccMtu);
  for (const DurationNs delay : {DurationNs{1'000}, DurationNs{4'000}, DurationNs{6'000}}) {
    Nscc cc = make_nscc();
    settle(cc, 0, 100'000);
    for (int i = 0; i < kAcksPerAdjustment; ++i)
      ack(cc, 1 + i, delay);
    const double per_window =
        from_q16(gains.alpha_q16) * static_cast<double>(gains.target_ns - delay);
    EXPECT_NEAR(static_cast<double>(cc.window_bytes()),
                100'000 + per_window * kAcksPerAdjustment * kNsccMtu / 100'000, 2);
  }
}

TEST(Nscc, AboveTargetWithoutMarkItGrowsByTheFairStep) {
  const NsccGains gains = gains_of(two_tier(), 400, kNsccMtu);
  Nscc cc = make_nscc();
  settle(cc, 0, 100'000);
  for (int i = 0; i < kAcksPerAdjustment; ++i)
    ack(cc, 1 + i, gains.target_ns);
  const std::int64_t step =
      std::int64_t{gains.fair_bytes} * kAcksPerAdjustment * kNsccMtu / 100'000;
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
  const NsccGains gains = gains_of(two_tier(), 400, kNsccMtu);
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
              static_cast<double>(before) / 2 + gains_of(two_tier(), 400, kNsccMtu).eta_bytes, 1);
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

// What a window of answers that are late by half the target adds. One in `fast_in` of them is not
// late, one in `marked_in` is marked.
std::int64_t growth_below_target(std::int64_t window, int fast_in = 1'000, int marked_in = 1'000) {
  const NsccGains gains = gains_of(two_tier(), 400, kNsccMtu);
  Nscc cc = make_nscc();
  settle(cc, 0, window);
  const DurationNs delay = gains.target_ns / 2;
  const int answers = static_cast<int>(window / kNsccMtu);
  TimeNs now = 0;
  const auto round = [&](std::int64_t bytes) {
    for (int i = 1; i <= answers; ++i) {
      now += kBaseRtt / answers;
      const bool marked = i % marked_in == 0;
      ack(cc, now, i % fast_in == 0 ? 0 : delay, marked, bytes);
    }
  };
  for (int i = 0; i < 3; ++i)
    round(0);
  const std::int64_t before = cc.window_bytes();
  round(kNsccMtu);
  return cc.window_bytes() - before;
}

// Senders who end leave a queue that has to last until the others have taken over.
TEST(Nscc, ACommonQueueBelowTheTargetIsBroughtUpToItByAllSendersTogether) {
  const double target = gains_of(two_tier(), 400, kNsccMtu).target_ns;
  const double lacks = target / 2 / (kBaseRtt + target / 2);  // of what all have in flight
  for (const std::int64_t window : {100'000, 200'000}) {
    const std::int64_t own_share = growth_below_target(window) - growth_below_target(window, 8);
    EXPECT_GT(own_share, static_cast<double>(window) * lacks * 0.8);
    EXPECT_LT(own_share, static_cast<double>(window) * lacks * 1.4);
  }
}

// What one answer adds in fast increase, after a queue that all paths share, or after none.
std::int64_t fast_growth(const CcProfile& profile, DurationNs delay, bool marked = false) {
  Nscc cc = make_nscc(profile);
  settle(cc, 0, 100'000);
  TimeNs now = 0;
  for (int i = 0; i < 3; ++i)
    ack(cc, now += kBaseRtt + 1, delay, false, 0);
  if (marked) ack(cc, now += 1, delay, true, 0);
  for (int i = 0; i < 3; ++i)
    ack(cc, now += kBaseRtt + 1, 0, false, 0);
  for (int i = 0; i < kAcksPerAdjustment; ++i)
    ack(cc, now += 1, 0);  // more than a quarter of the window, and nothing is owed any more
  const std::int64_t before = cc.window_bytes();
  cc.on_ack({.now = now + 1, .acked_bytes = 1'000, .rtt_ns = cc.base_rtt_ns()});
  return cc.window_bytes() - before;
}

TEST(Nscc, WhoFindsTheLastHopsQueueEmptyTakesThePortOver) {
  const DurationNs delay = gains_of(two_tier(), 400, kNsccMtu).target_ns / 2;
  EXPECT_EQ(fast_growth(two_tier(), 0), 694) << "fi_scale";
  EXPECT_EQ(fast_growth(two_tier(), delay), 1'500);
  EXPECT_EQ(fast_growth(two_tier(), delay, true), 694) << "the queue was within the network";
  CcProfile asked_for = two_tier();
  asked_for.nscc.fi_scale = 0.5F;
  EXPECT_EQ(fast_growth(asked_for, delay), 500);
}

TEST(Nscc, AQueueThatMarksIsNotBroughtUpToTheTarget) {
  EXPECT_LT(growth_below_target(100'000, 1'000, 4), growth_below_target(100'000) / 2);
}

// --- What delay adds, marks take ---

// All paths are late by this much, and one answer of four was marked.
Nscc with_late_paths(const CcProfile& profile, DurationNs delay) {
  Nscc cc = make_nscc(profile);
  settle(cc, 0, 100'000);
  for (int i = 1; i <= 12; ++i)
    ack(cc, i * kBaseRtt, delay, i % 4 == 0, 0);
  return cc;
}

TEST(NsccBalance, AMarkTakesAQuarterOfWhatItAnswersFor) {
  CcProfile profile = two_tier();
  profile.nscc.adjust_bytes_threshold = 1'000'000;  // nothing is added meanwhile
  Nscc cc = with_late_paths(profile, 3'000);
  const std::int64_t before = cc.window_bytes();
  ack(cc, 12 * kBaseRtt + 1, 3'000, true, 4'000);
  EXPECT_EQ(cc.window_bytes(), before - 1'000);
}

TEST(NsccBalance, DelayAddsByTheRootOfTheWindowAndAtMostAQuarterOfIt) {
  for (const DurationNs delay : {DurationNs{2'000}, DurationNs{4'000}, DurationNs{30'000}}) {
    Nscc cc = with_late_paths(two_tier(), delay);
    const auto window = static_cast<double>(cc.window_bytes());
    // More than the eight packets that make it count.
    ack(cc, 12 * kBaseRtt + 1, delay, false, 9 * kNsccMtu);
    const double step = 2.5 * std::sqrt(window * kNsccMtu) * static_cast<double>(delay) / kBaseRtt;
    const double grown = std::min(step, window / 4) * 9 * kNsccMtu / window;
    EXPECT_NEAR(static_cast<double>(cc.window_bytes()), window + grown, 20) << delay;
  }
}

TEST(NsccBalance, AnnouncedSendersAddLess) {
  for (const std::uint32_t senders : {1U, 16U}) {
    Nscc cc(two_tier(), environment(400, senders));
    settle(cc, 0, 30'000);
    for (int i = 1; i <= 12; ++i)
      ack(cc, i * kBaseRtt, 2'000, i % 4 == 0, 0);
    const auto window = static_cast<double>(cc.window_bytes());
    ack(cc, 12 * kBaseRtt + 1, 2'000, false, 9 * kNsccMtu);
    const double step = 2.5 * std::sqrt(window * kNsccMtu) * 2'000 / kBaseRtt;
    EXPECT_NEAR(static_cast<double>(cc.window_bytes()) - window,
                step / (senders == 1 ? 1 : 4) * 9 * kNsccMtu / window, 20);
  }
}

// --- Increase mechanisms ---

TEST(Nscc, AQuarterOfAWindowWithoutDelayStartsFastIncrease) {
  const NsccGains gains = gains_of(two_tier(), 400, kNsccMtu);
  Nscc cc = make_nscc();
  settle(cc, 0, 10 * kNsccMtu);
  for (int i = 0; i < 2; ++i)
    ack(cc, 1, 0);
  EXPECT_EQ(cc.window_bytes(), 10 * kNsccMtu);
  std::int64_t before = 0;
  for (int i = 0; i < 20; ++i) {
    before = cc.window_bytes();
    ack(cc, 1, 500);
  }
  const auto step = static_cast<std::int64_t>((std::uint64_t{gains.fast_q16} * kNsccMtu) >> 16);
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
    settle(cc, 0, 10 * kNsccMtu);
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
  settle(cc, 0, 2 * kNsccMtu);
  for (int i = 0; i < 20; ++i)
    ack(cc, 1, 0);
  const std::int64_t before = cc.window_bytes();
  ack(cc, 1, 0);
  EXPECT_EQ(cc.window_bytes(), before + 2 * kNsccMtu);
}

TEST(Nscc, EtaIsAddedOncePerPeriod) {
  CcProfile profile = two_tier();
  profile.nscc.eta = 700;
  profile.nscc.adjust_period_threshold_ns = 5'000;
  Nscc cc = make_nscc(profile);
  settle(cc, 0, 100'000);
  ack(cc, 4'999, 600, true);
  EXPECT_EQ(cc.window_bytes(), 100'000);
  ack(cc, 5'000, 600, true);
  EXPECT_EQ(cc.window_bytes(), 100'700);
  ack(cc, 9'999, 600, true);
  EXPECT_EQ(cc.window_bytes(), 100'700);
  ack(cc, 10'000, 600, true);
  EXPECT_EQ(cc.window_bytes(), 101'400);
}

TEST(Nscc, AdjustBytesThresholdSetsHowOftenTheIncreaseIsApplied) {
  CcProfile profile = two_tier();
  profile.nscc.adjust_bytes_threshold = 2 * kNsccMtu;
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
  EXPECT_EQ(cc.window_bytes(), 100'000 + kAcksPerAdjustment * kNsccMtu);
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
  ASSERT_EQ(cc.max_window_bytes(), 15'000'000);
  settle(cc, 0, 5'000'000);
  for (int i = 0; i < kAcksPerAdjustment; ++i)
    ack(cc, 1 + i, 75'000);
  // Fair increase: 5 * MTU * (10,000,000 / 150,000) per window; the sum passes 2^32 on the way.
  const double step =
      5.0 * kNsccMtu * 10'000'000 / 150'000 * kAcksPerAdjustment * kNsccMtu / 5'000'000;
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
    cc.on_trim(i, kNsccMtu, false);
  EXPECT_NEAR(static_cast<double>(cc.average_delay_ns()), kBaseRtt, 2);
}

TEST(Nscc, AnAnswerWithoutSampleStandsForTheAverage) {
  Nscc cc = make_nscc();
  for (int i = 0; i < 1'000; ++i)
    ack(cc, i, 3'000, true, 0);
  settle(cc, 1'000, 100'000);
  const DurationNs average = cc.average_delay_ns();
  for (int i = 0; i < kAcksPerAdjustment; ++i)
    cc.on_ack({.now = 1'001, .acked_bytes = kNsccMtu});
  EXPECT_EQ(cc.average_delay_ns(), average);
  EXPECT_GT(cc.window_bytes(), 100'000);
}

}  // namespace
}  // namespace mrc::core
