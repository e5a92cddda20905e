// Quick adapt, receiver penalty, trims, losses, base RTT, bandwidth, pacing, and nonsense.
#include <gtest/gtest.h>

#include <algorithm>
#include <limits>

#include "base/planted_bug.h"
#include "base/prng.h"
#include "core/cc/nscc.h"
#include "unit/core/nscc_fixture.h"

namespace mrc::core {
namespace {

constexpr std::int64_t kBig = std::numeric_limits<std::int64_t>::max();

// Length of a quick adapt window: base RTT and target delay.
constexpr DurationNs kAdaptWindow = kBaseRtt + kBaseRtt * 3 / 4;

// --- Quick adapt, trim and loss
// -------------------------------------------------------------------

TEST(NsccQuickAdapt, AfterATrimTheWindowBecomesWhatWasAchieved) {
  Nscc cc = make_nscc();
  cc.on_sent(500'000);
  cc.on_trim(0, kMtu, false);  // opens the measuring window
  for (int i = 0; i < 5; ++i)
    ack(cc, 1'000 * i, 6'000, true);
  cc.on_trim(kAdaptWindow, kMtu, false);
  EXPECT_EQ(cc.window_bytes(), 5 * kMtu);
}

TEST(NsccQuickAdapt, TheWindowKeepsAtLeastOnePacket) {
  Nscc cc = make_nscc();
  cc.on_sent(500'000);
  cc.on_trim(0, kMtu, false);
  cc.on_trim(kAdaptWindow, kMtu, false);
  EXPECT_EQ(cc.window_bytes(), kMtu);
}

TEST(NsccQuickAdapt, DoesNotFireWhenEnoughWasAchieved) {
  Nscc cc = make_nscc();
  cc.on_trim(0, kMtu, false);
  const std::int64_t gate = cc.max_window_bytes() / 8;
  ack(cc, 1'000, 6'000, true, gate);
  const std::int64_t before = cc.window_bytes();
  cc.on_trim(kAdaptWindow, kMtu, false);
  EXPECT_EQ(cc.window_bytes(), before - kMtu);
}

TEST(NsccQuickAdapt, GateParameterSetsWhatIsEnough) {
  CcProfile profile = two_tier();
  profile.nscc.qa_gate = 1;
  Nscc cc = make_nscc(profile);
  cc.on_trim(0, kMtu, false);
  const std::int64_t achieved = cc.max_window_bytes() / 4;
  ack(cc, 1'000, 6'000, true, achieved);
  cc.on_trim(kAdaptWindow, kMtu, false);
  EXPECT_EQ(cc.window_bytes(), achieved);
}

TEST(NsccQuickAdapt, CanBeDisabled) {
  CcProfile profile = two_tier();
  profile.nscc.disable_qa = true;
  Nscc cc = make_nscc(profile);
  const std::int64_t before = cc.window_bytes();
  cc.on_trim(0, kMtu, false);
  cc.on_trim(kAdaptWindow, kMtu, false);
  EXPECT_EQ(cc.window_bytes(), before - 2 * kMtu);
}

TEST(NsccQuickAdapt, SignalsOfTheOldQueueAreIgnoredUntilItDrained) {
  Nscc cc = make_nscc();
  cc.on_sent(3 * kMtu);
  cc.on_trim(0, kMtu, false);
  cc.on_trim(kAdaptWindow, kMtu, false);
  ASSERT_EQ(cc.window_bytes(), kMtu);
  const DurationNs average = cc.average_delay_ns();
  TimeNs now = kAdaptWindow + 2 * kBaseRtt;
  // Two of three packets in flight at that time: a mark does nothing, not even the period bonus.
  ack(cc, now, 6'000, true);
  cc.on_trim(now, kMtu, false);
  EXPECT_EQ(cc.window_bytes(), kMtu);
  EXPECT_GT(cc.average_delay_ns(), average);
  // The third is the last one, and not ignored any more.
  ack(cc, now, 6'000, true);
  EXPECT_GT(cc.window_bytes(), kMtu);
}

TEST(NsccQuickAdapt, WithoutTrimmingALongDelayIsEnough) {
  CcProfile profile = two_tier();
  profile.network_trims = false;
  const DurationNs window = 2 * kBaseRtt;
  for (const DurationNs delay : {4 * kBaseRtt, 4 * kBaseRtt + 1}) {
    Nscc cc = make_nscc(profile);
    settle(cc, 0, 100'000);
    ack(cc, 100, 6'000, true);
    ack(cc, window, delay, true, 0);
    EXPECT_EQ(cc.window_bytes() == kMtu, delay > 4 * kBaseRtt);
  }
}

TEST(NsccQuickAdapt, DelayThresholdParameterAlsoWorksWithTrimming) {
  CcProfile profile = two_tier();
  profile.nscc.qa_threshold_ns = 20'000;
  Nscc cc = make_nscc(profile);
  settle(cc, 0, 100'000);
  ack(cc, kAdaptWindow, 20'001, true, 0);
  EXPECT_EQ(cc.window_bytes(), kMtu);
}

TEST(NsccQuickAdapt, ATrimDoesNotOutliveItsWindow) {
  Nscc cc = make_nscc();
  cc.on_trim(0, kMtu, false);
  ack(cc, 1'000, 6'000, true, cc.max_window_bytes() / 4);
  ack(cc, kAdaptWindow, 6'000, true);  // closes: enough was achieved
  const std::int64_t before = cc.window_bytes();
  ack(cc, 3 * kAdaptWindow, 6'000, true);  // hardly any data since, and no trim
  EXPECT_GE(cc.window_bytes(), before);
}

TEST(NsccQuickAdapt, APauseStartsANewMeasurement) {
  Nscc cc = make_nscc();
  ack(cc, 0, 1'000);
  // Long after the window ended a new burst starts and is trimmed.
  const TimeNs later = 100 * kBaseRtt;
  cc.on_sent(kMtu);
  cc.on_packet_sent(later, kMtu);
  const std::int64_t before = cc.window_bytes();
  cc.on_trim(later + kBaseRtt, kMtu, false);
  EXPECT_EQ(cc.window_bytes(), before - kMtu);
}

TEST(NsccTrim, TakesOnePacketAtTheLastHopToo) {
  for (const bool last_hop : {false, true}) {
    Nscc cc = make_nscc();
    const std::int64_t before = cc.window_bytes();
    cc.on_trim(0, kMtu, last_hop);
    EXPECT_EQ(cc.window_bytes(), before - kMtu);
  }
}

TEST(NsccTrim, EndsFastIncrease) {
  Nscc cc = make_nscc();
  settle(cc, 0, 10 * kMtu);
  for (int i = 0; i < 20; ++i)
    ack(cc, 1, 0);
  cc.on_trim(1, kMtu, false);
  const std::int64_t before = cc.window_bytes();
  ack(cc, 1, 0);
  EXPECT_EQ(cc.window_bytes(), before);
}

TEST(NsccLoss, TakesOnePacketAndNeverTheLast) {
  Nscc cc = make_nscc();
  const std::int64_t before = cc.window_bytes();
  cc.on_loss(0, kMtu);
  EXPECT_EQ(cc.window_bytes(), before - kMtu);
  for (int i = 0; i < 1'000; ++i)
    cc.on_loss(i, kMtu);
  EXPECT_EQ(cc.window_bytes(), kMtu);
}

// --- Receiver penalty
// -----------------------------------------------------------------------------

void penalise(Nscc& cc, TimeNs now, std::uint8_t penalty, bool restore = false) {
  cc.on_ack({.now = now,
             .acked_bytes = kMtu,
             .rtt_ns = cc.base_rtt_ns(),
             .window_penalty = penalty,
             .restore_window = restore});
}

// One window of answers, with as much in flight as the window allows.
void penalise_one_window(Nscc& cc, std::uint8_t penalty) {
  const std::int64_t packets = cc.window_bytes() / kMtu;
  for (std::int64_t i = 0; i < packets; ++i) {
    cc.on_sent(std::max<std::int64_t>(cc.window_bytes() - cc.in_flight_bytes(), 0));
    cc.on_left_network(kMtu);
    penalise(cc, i, penalty);
  }
}

TEST(NsccPenalty, SixtyFourThroughOneWindowHalvesIt) {
  Nscc cc = make_nscc();
  settle(cc, 0, 100 * kMtu);
  penalise_one_window(cc, 64);
  EXPECT_NEAR(static_cast<double>(cc.window_bytes()), 50.0 * kMtu, kMtu);
}

TEST(NsccPenalty, TheLargestLeavesOnePacket) {
  Nscc cc = make_nscc();
  settle(cc, 0, 100 * kMtu);
  penalise_one_window(cc, 127);
  EXPECT_LT(cc.window_bytes(), 3 * kMtu);
  for (int i = 0; i < 10'000; ++i)
    penalise(cc, i * 100, 127);
  EXPECT_EQ(cc.window_bytes(), kMtu);
}

TEST(NsccPenalty, AWindowThatIsNotUsedIsCutToWhatIs) {
  Nscc cc = make_nscc();
  settle(cc, 0, 100 * kMtu);
  cc.on_sent(9 * kMtu);
  penalise(cc, 1, 64);
  EXPECT_EQ(cc.window_bytes(), 10 * kMtu - kMtu / 2);
}

TEST(NsccPenalty, NothingGrowsMeanwhile) {
  Nscc cc = make_nscc();
  settle(cc, 0, 100 * kMtu);
  cc.on_sent(100 * kMtu);
  std::int64_t before = cc.window_bytes();
  for (int i = 1; i < 100; ++i) {
    penalise(cc, i * kBaseRtt, 1);
    EXPECT_LT(cc.window_bytes(), before);
    before = cc.window_bytes();
  }
}

TEST(NsccPenalty, RestoreBringsTheOldWindowBack) {
  Nscc cc = make_nscc();
  settle(cc, 0, 100 * kMtu);
  penalise_one_window(cc, 64);
  penalise(cc, 200, 0, true);
  EXPECT_GE(cc.window_bytes(), 100 * kMtu);
  EXPECT_LT(cc.window_bytes(), 102 * kMtu);
}

TEST(NsccPenalty, WithoutRestoreTheWindowGrowsFromWhereItIs) {
  Nscc cc = make_nscc();
  settle(cc, 0, 100 * kMtu);
  penalise_one_window(cc, 64);
  const std::int64_t penalised = cc.window_bytes();
  penalise(cc, kBaseRtt * 3, 0);
  EXPECT_GT(cc.window_bytes(), penalised);
  EXPECT_LT(cc.window_bytes(), 60 * kMtu);
  // Too late to restore: the episode is over.
  penalise(cc, kBaseRtt * 3, 0, true);
  EXPECT_LT(cc.window_bytes(), 60 * kMtu);
}

TEST(NsccPenalty, AnswersOfAnotherQueuePairDoNotEndIt) {
  Nscc cc = make_nscc();
  settle(cc, 0, 100 * kMtu);
  cc.on_sent(100 * kMtu);
  for (int i = 0; i < 50; ++i) {
    penalise(cc, i, 64);
    penalise(cc, i, 0);
  }
  EXPECT_EQ(cc.window_bytes(), 100 * kMtu - 50 * (kMtu / 2));
  penalise(cc, 60, 0, true);
  EXPECT_GE(cc.window_bytes(), 100 * kMtu);
}

TEST(NsccPenalty, ADecreaseOfTheNetworkIsNotUndoneByRestore) {
  Nscc cc = make_nscc();
  settle(cc, 0, 100 * kMtu);
  penalise_one_window(cc, 64);
  const std::int64_t penalised = cc.window_bytes();
  cc.on_loss(150, penalised / 2);
  penalise(cc, 200, 0, true);
  EXPECT_NEAR(static_cast<double>(cc.window_bytes()), 50.0 * kMtu, 2 * kMtu);
}

// --- Base RTT
// -------------------------------------------------------------------------------------

void sample_rtt(Nscc& cc, TimeNs now, DurationNs rtt_ns) {
  cc.on_ack({.now = now, .acked_bytes = kMtu, .rtt_ns = rtt_ns});
}

TEST(NsccBaseRtt, UnknownStartsAtTheReference) {
  EXPECT_EQ(Nscc({}, environment()).base_rtt_ns(), 12'000);
}

TEST(NsccBaseRtt, FallsWithSamplesAndTakesTheMaximumWindowAlong) {
  Nscc cc = make_nscc();
  const std::int64_t before = cc.max_window_bytes();
  sample_rtt(cc, 1, 9'000);
  EXPECT_EQ(cc.base_rtt_ns(), kBaseRtt);
  sample_rtt(cc, 2, 4'000);
  EXPECT_EQ(cc.base_rtt_ns(), 4'000);
  EXPECT_NEAR(static_cast<double>(cc.max_window_bytes()),
              static_cast<double>(before) * 4'000 / kBaseRtt, 2);
  EXPECT_LE(cc.window_bytes(), cc.max_window_bytes());
}

TEST(NsccBaseRtt, AnExplicitMaximumStays) {
  CcProfile profile = two_tier();
  profile.nscc.max_cwnd = 300'000;
  Nscc cc = make_nscc(profile);
  sample_rtt(cc, 1, 2'000);
  EXPECT_EQ(cc.max_window_bytes(), 300'000);
}

TEST(NsccBaseRtt, TheStartWindowFollowsTheFirstSample) {
  Nscc cc({}, environment(400, 10));
  const std::int64_t before = cc.window_bytes();
  cc.on_ack({.now = 1, .acked_bytes = 0, .marked = true, .rtt_ns = 4'000});
  EXPECT_NEAR(static_cast<double>(cc.window_bytes()), static_cast<double>(before) / 3, 100);
}

TEST(NsccBaseRtt, OneAbsurdSampleDoesNotRuinIt) {
  Nscc cc = make_nscc();
  for (const DurationNs rtt :
       {DurationNs{0}, DurationNs{-1}, std::numeric_limits<std::int64_t>::min()})
    sample_rtt(cc, 1, rtt);
  EXPECT_EQ(cc.base_rtt_ns(), kBaseRtt);
  sample_rtt(cc, 2, 1);
  EXPECT_EQ(cc.base_rtt_ns(), kBaseRtt / 16);
}

// --- Start and bandwidth
// --------------------------------------------------------------------------

TEST(NsccStart, OpensWithTheMaximumDividedByTheIncastDegree) {
  const std::int64_t max = make_nscc().max_window_bytes();
  EXPECT_EQ(make_nscc().window_bytes(), max);
  EXPECT_EQ(Nscc(two_tier(), environment(400, 1)).window_bytes(), max);
  EXPECT_EQ(Nscc(two_tier(), environment(400, 8)).window_bytes(), max / 8);
  EXPECT_EQ(Nscc(two_tier(), environment(400, 1'000'000)).window_bytes(), kMtu);
}

TEST(NsccBandwidth, TheWindowShrinksAndGrowsBackInProportionAtOnce) {
  Nscc cc = make_nscc();
  settle(cc, 0, 400'000);
  ack(cc, 5 * kBaseRtt, 1'000, true, 0);  // the losses that set the window are history
  const std::int64_t window = cc.window_bytes();
  const std::int64_t max = cc.max_window_bytes();
  cc.set_bandwidth(300 * kGigabit);
  EXPECT_NEAR(static_cast<double>(cc.window_bytes()), static_cast<double>(window) * 3 / 4, 2);
  EXPECT_NEAR(static_cast<double>(cc.max_window_bytes()), static_cast<double>(max) * 3 / 4, 2);
  cc.set_bandwidth(100 * kGigabit);
  EXPECT_NEAR(static_cast<double>(cc.window_bytes()), static_cast<double>(window) / 4, 2);
  cc.set_bandwidth(400 * kGigabit);
  EXPECT_NEAR(static_cast<double>(cc.window_bytes()), static_cast<double>(window), 10);
  EXPECT_EQ(cc.max_window_bytes(), max);
}

TEST(NsccBandwidth, ZeroKeepsOnePacketAndTheShareForLater) {
  Nscc cc = make_nscc();
  settle(cc, 0, 400'000);
  ack(cc, 5 * kBaseRtt, 1'000, true, 0);
  const auto window = static_cast<double>(cc.window_bytes());
  cc.set_bandwidth(0);
  EXPECT_GE(cc.window_bytes(), kMtu);
  for (int i = 0; i < 100; ++i)
    cc.on_loss(6 * kBaseRtt, kMtu);
  for (int i = 0; i < 100; ++i)
    ack(cc, 6 * kBaseRtt, 9'000);
  cc.set_bandwidth(200 * kGigabit);
  EXPECT_NEAR(static_cast<double>(cc.window_bytes()), window / 2, 20);
}

TEST(NsccBandwidth, AControllerMayStartWithoutAny) {
  Nscc cc(two_tier(), environment(0, 4));
  EXPECT_GE(cc.window_bytes(), kMtu);
  for (int i = 0; i < 100; ++i)
    ack(cc, i * 1'000, 0);
  cc.set_bandwidth(400 * kGigabit);
  EXPECT_EQ(cc.window_bytes(), cc.max_window_bytes() / 4);
}

TEST(NsccBandwidth, AnExplicitMaximumShrinksWithThePlanes) {
  CcProfile profile = two_tier();
  profile.nscc.max_cwnd = 400'000;
  Nscc cc = make_nscc(profile);
  cc.set_bandwidth(200 * kGigabit);
  EXPECT_EQ(cc.max_window_bytes(), 200'000);
  EXPECT_EQ(cc.window_bytes(), 200'000);
  cc.set_bandwidth(800 * kGigabit);
  EXPECT_EQ(cc.max_window_bytes(), 400'000);
}

TEST(NsccBandwidth, LossesOfALostPlaneArePaidOnce) {
  for (const bool losses_first : {true, false}) {
    Nscc cc = make_nscc();
    const std::int64_t half = cc.max_window_bytes() / 2;
    if (!losses_first) cc.set_bandwidth(200 * kGigabit);
    for (std::int64_t lost = 0; lost + kMtu <= half; lost += kMtu)
      cc.on_loss(1, kMtu);
    if (losses_first) cc.set_bandwidth(200 * kGigabit);
    EXPECT_NEAR(static_cast<double>(cc.window_bytes()), static_cast<double>(half), 2 * kMtu);
    cc.on_loss(2, 10 * kMtu);
    cc.on_loss(2, 10 * kMtu);
    EXPECT_LT(cc.window_bytes(), half - 9 * kMtu);
  }
}

// --- Pacing
// ---------------------------------------------------------------------------------------

void send(Nscc& cc, TimeNs now) {
  cc.on_sent(kMtu);
  cc.on_packet_sent(now, kMtu);
}

// A packet is sent and trimmed one round trip later.
void trim_round(Nscc& cc, TimeNs now) {
  send(cc, now);
  cc.on_left_network(kMtu);
  cc.on_trim(now + kBaseRtt, kMtu, true);
}

CcProfile without_quick_adapt() {
  CcProfile profile = two_tier();
  profile.nscc.disable_qa = true;
  return profile;
}

TEST(NsccPacing, AWindowOfTwoPacketsIsNotPaced) {
  Nscc cc = make_nscc();
  settle(cc, 0, 2 * kMtu);
  send(cc, 1'000);
  EXPECT_EQ(cc.next_send(), 0);
}

TEST(NsccPacing, ASmallerOneSpreadsPacketsOverTheRoundTrip) {
  double sum = 0;
  for (int i = 0; i < 1'000; ++i) {
    Nscc cc = make_nscc();
    settle(cc, 0, kMtu);
    const TimeNs now = 1'000 + i;
    send(cc, now);
    const DurationNs gap = cc.next_send() - now;
    EXPECT_GE(gap, kBaseRtt / 2 - 200);
    EXPECT_LE(gap, kBaseRtt * 3 / 2 + 200);
    sum += static_cast<double>(gap);
  }
  EXPECT_NEAR(sum / 1'000, kBaseRtt, kBaseRtt / 20.0);
}

TEST(NsccPacing, SeedsKeepSendersOutOfStep) {
  CcEnvironment first = environment(400, 1'000);
  CcEnvironment second = first;
  second.seed = 1;
  Nscc one(two_tier(), first);
  Nscc two(two_tier(), second);
  send(one, 0);
  send(two, 0);
  EXPECT_NE(one.next_send(), two.next_send());
}

TEST(NsccPacing, TrimsAtTheFloorDoubleTheGapEachRoundTripUpToSixtyFour) {
  Nscc cc = make_nscc(without_quick_adapt());
  settle(cc, 0, kMtu);
  const unsigned expected[] = {2, 4, 8, 16, 32, 64, 64, 64};
  TimeNs now = 10 * kBaseRtt;
  for (const unsigned scale : expected) {
    trim_round(cc, now);
    cc.on_trim(now + kBaseRtt, kMtu, true);  // the same round trip: counts once
    EXPECT_EQ(cc.pace_scale(), scale);
    EXPECT_GE(cc.next_send(), now + kBaseRtt + scale * (kBaseRtt / 2 - 200));
    now += 4 * kBaseRtt;
  }
  EXPECT_LE(cc.next_send() - now, 64 * 4 * kBaseRtt * 3 / 2);
}

TEST(NsccPacing, TheRoundTripThatReachesTheFloorDoesNotCount) {
  Nscc cc = make_nscc(without_quick_adapt());
  for (int i = 0; i < 1'000; ++i)
    cc.on_trim(1, kMtu, true);
  EXPECT_EQ(cc.window_bytes(), kMtu);
  EXPECT_EQ(cc.pace_scale(), 1U);
}

TEST(NsccPacing, AnswersHalveTheGapBeforeTheWindowGrows) {
  Nscc cc = make_nscc(without_quick_adapt());
  settle(cc, 0, kMtu);
  for (int i = 0; i < 3; ++i)
    trim_round(cc, (10 + 4 * i) * kBaseRtt);
  ASSERT_EQ(cc.pace_scale(), 8U);
  TimeNs now = 100 * kBaseRtt;
  for (const unsigned scale : {4U, 2U}) {
    ack(cc, now, 0);
    ack(cc, now, 0);  // the same round trip: counts once
    EXPECT_EQ(cc.pace_scale(), scale);
    EXPECT_EQ(cc.window_bytes(), kMtu);
    EXPECT_LE(cc.next_send(), now + scale * kBaseRtt * 2);
    now += 4 * kBaseRtt;
  }
  ack(cc, now, 0);
  EXPECT_EQ(cc.pace_scale(), 1U);
  for (int i = 1; i < 100 && cc.window_bytes() < 2 * kMtu; ++i)
    ack(cc, now + i * kBaseRtt, 0);
  EXPECT_EQ(cc.next_send(), 0);
}

TEST(NsccPacing, LossesAtTheFloorCountLikeTrims) {
  Nscc cc = make_nscc();
  settle(cc, 0, kMtu);
  cc.on_loss(10 * kBaseRtt, kMtu);
  EXPECT_EQ(cc.pace_scale(), 2U);
}

// --- Nonsense
// -------------------------------------------------------------------------------------

DurationNs random_rtt(Prng& prng) {
  constexpr DurationNs kOdd[] = {
      0, 1, -1, 127, kBig, std::numeric_limits<std::int64_t>::min(), kSecondNs, 10 * kSecondNs};
  if (prng.below(4) == 0) return kOdd[prng.below(std::size(kOdd))];
  return static_cast<DurationNs>(prng.below(1U << (1 + prng.below(20))));
}

std::int64_t random_bytes(Prng& prng) {
  constexpr std::int64_t kOdd[] = {0, -1, 1, kBig, std::numeric_limits<std::int64_t>::min()};
  if (prng.below(8) == 0) return kOdd[prng.below(std::size(kOdd))];
  return prng.below(8) * kMtu;
}

CcProfile random_profile(Prng& prng) {
  CcProfile profile;
  profile.network_trims = prng.below(2) == 0;
  const auto odd = [&prng] { return prng.below(3) == 0 ? prng.next32() : 0; };
  profile.nscc.disable_qa = prng.below(4) == 0;
  profile.nscc.adjust_bytes_threshold = odd();
  profile.nscc.adjust_period_threshold_ns = odd();
  profile.nscc.base_rtt_ns = odd();
  profile.nscc.eta = static_cast<float>(odd());
  profile.nscc.fi = static_cast<float>(odd());
  profile.nscc.fi_scale = static_cast<float>(odd());
  profile.nscc.gamma = static_cast<float>(odd()) / 1e6F;
  profile.nscc.max_md_jump = static_cast<float>(odd()) / 1e9F;
  profile.nscc.max_cwnd = odd();
  profile.nscc.qa_gate = static_cast<std::uint8_t>(odd());
  profile.nscc.qa_threshold_ns = odd();
  profile.nscc.target_delay_ns = odd();
  return profile;
}

// One random signal; returns nothing, the invariants are checked by the caller.
void random_signal(Nscc& cc, Prng& prng, TimeNs now) {
  switch (prng.below(8)) {
    case 0:
      return cc.on_trim(now, random_bytes(prng), prng.below(2) == 0);
    case 1:
      return cc.on_loss(now, random_bytes(prng));
    case 2:
      return cc.set_bandwidth(prng.below(3) == 0 ? prng.next64() >> prng.below(64)
                                                 : prng.below(9) * 100 * kGigabit);
    case 3:
      cc.on_sent(kMtu);
      return cc.on_packet_sent(now, prng.below(8) == 0 ? random_bytes(prng) : kMtu);
    case 4:
      return cc.on_left_network(cc.in_flight_bytes() / 2);
    default:
      AckSample sample{.now = now,
                       .acked_bytes = random_bytes(prng),
                       .marked = prng.below(2) == 0,
                       .restore_window = prng.below(4) == 0};
      if (prng.below(4) != 0) sample.rtt_ns = random_rtt(prng);
      if (prng.below(8) == 0) sample.window_penalty = static_cast<std::uint8_t>(prng.next32());
      return cc.on_ack(sample);
  }
}

TEST(NsccRobustness, NoSequenceOfSignalsBreaksTheInvariants) {
  for (std::uint64_t seed = 0; seed < 300; ++seed) {
    Prng prng(seed);
    CcEnvironment network =
        environment(prng.below(9) * 100, prng.below(3) == 0 ? prng.next32() : 0);
    network.seed = seed;
    Nscc cc(random_profile(prng), network);
    TimeNs now = 0;
    for (int step = 0; step < 2'000; ++step) {
      now += prng.below(1U << prng.below(20));
      random_signal(cc, prng, now);
      ASSERT_GE(cc.window_bytes(), kMtu) << "seed " << seed << " step " << step;
      ASSERT_LE(cc.window_bytes(), cc.max_window_bytes()) << "seed " << seed << " step " << step;
      // A paced packet leaves before long: 64 gaps of at most four base RTTs, half as much jitter.
      ASSERT_LE(cc.next_send(), now + 64 * 4 * kMaxBaseRttNs * 3 / 2) << "seed " << seed;
      ASSERT_GE(cc.average_delay_ns(), 0) << "seed " << seed << " step " << step;
    }
  }
}

TEST(NsccRobustness, PenaltyForEverStillSendsOnePacketPerRoundTrip) {
  Nscc cc = make_nscc();
  TimeNs now = 0;
  int sent = 0;
  while (now < 1'000 * kBaseRtt) {
    if (cc.may_send(now, kMtu)) {
      send(cc, now);
      ++sent;
    }
    now = std::max(now + kBaseRtt, cc.next_send());
    if (cc.in_flight_bytes() == 0) continue;
    cc.on_left_network(kMtu);
    penalise(cc, now, 255);
  }
  EXPECT_GT(sent, 600);
}

TEST(NsccRobustness, AControllerIsSmall) {
  RecordProperty("bytes", static_cast<int>(sizeof(Nscc)));
  EXPECT_LE(sizeof(Nscc), 320U);
}

// --- Planted bugs
// ---------------------------------------------------------------------------------

#ifdef MRC_PLANTED_BUGS

class NsccPlanted : public ::testing::Test {
 protected:
  ~NsccPlanted() override { active_planted_bug = PlantedBug::kNone; }
};

TEST_F(NsccPlanted, FloorZeroLetsTheWindowFallBelowOnePacket) {
  active_planted_bug = PlantedBug::kCcFloorZero;
  Nscc cc = make_nscc();
  cc.on_loss(0, cc.window_bytes());
  EXPECT_LT(cc.window_bytes(), kMtu);
}

TEST_F(NsccPlanted, IgnoredTrimsLeaveTheWindow) {
  active_planted_bug = PlantedBug::kCcIgnoresTrim;
  Nscc cc = make_nscc();
  const std::int64_t before = cc.window_bytes();
  for (int i = 0; i < 1'000; ++i)
    cc.on_trim(i * 1'000, kMtu, true);
  EXPECT_EQ(cc.window_bytes(), before);
}

TEST_F(NsccPlanted, EndlessPaceStopsTheSender) {
  active_planted_bug = PlantedBug::kCcPaceNeverEnds;
  Nscc cc = make_nscc();
  settle(cc, 0, kMtu);
  send(cc, 1'000);
  EXPECT_FALSE(cc.may_send(1'000 * kSecondNs, kMtu));
}

TEST_F(NsccPlanted, ALostPlaneLeavesNoWindow) {
  active_planted_bug = PlantedBug::kCcPlaneLossEmptiesWindow;
  Nscc cc = make_nscc();
  cc.set_bandwidth(300 * kGigabit);
  EXPECT_LT(cc.window_bytes(), kMtu);
}

#endif

}  // namespace
}  // namespace mrc::core
