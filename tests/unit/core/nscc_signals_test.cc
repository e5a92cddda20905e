// Quick adapt, receiver penalty, trims, losses, base RTT, bandwidth, pacing.
#include <gtest/gtest.h>

#include <algorithm>
#include <limits>

#include "core/cc/nscc.h"
#include "unit/core/nscc_fixture.h"

namespace mrc::core {
namespace {

// Length of a quick adapt window: base RTT and target delay.
constexpr DurationNs kAdaptWindow = kBaseRtt + kBaseRtt * 3 / 4;

// --- Quick adapt, trim and loss ---

TEST(NsccQuickAdapt, AfterATrimTheWindowBecomesWhatWasAchieved) {
  Nscc cc = make_nscc();
  cc.on_sent(500'000);
  cc.on_trim(0, kNsccMtu, false);  // opens the measuring window
  for (int i = 0; i < 5; ++i)
    ack(cc, 1'000 * i, 6'000, true);
  cc.on_trim(kAdaptWindow, kNsccMtu, false);
  EXPECT_EQ(cc.window_bytes(), 5 * kNsccMtu);
}

TEST(NsccQuickAdapt, TheWindowKeepsAtLeastOnePacket) {
  Nscc cc = make_nscc();
  cc.on_sent(500'000);
  cc.on_trim(0, kNsccMtu, false);
  cc.on_trim(kAdaptWindow, kNsccMtu, false);
  EXPECT_EQ(cc.window_bytes(), kNsccMtu);
}

TEST(NsccQuickAdapt, DoesNotFireWhenEnoughWasAchieved) {
  Nscc cc = make_nscc();
  cc.on_trim(0, kNsccMtu, false);
  const std::int64_t gate = cc.max_window_bytes() / 8;
  ack(cc, 1'000, 6'000, true, gate);
  const std::int64_t before = cc.window_bytes();
  cc.on_trim(kAdaptWindow, kNsccMtu, false);
  EXPECT_EQ(cc.window_bytes(), before - kNsccMtu);
}

TEST(NsccQuickAdapt, GateParameterSetsWhatIsEnough) {
  CcProfile profile = two_tier();
  profile.nscc.qa_gate = 1;
  Nscc cc = make_nscc(profile);
  cc.on_trim(0, kNsccMtu, false);
  const std::int64_t achieved = cc.max_window_bytes() / 4;
  ack(cc, 1'000, 6'000, true, achieved);
  cc.on_trim(kAdaptWindow, kNsccMtu, false);
  EXPECT_EQ(cc.window_bytes(), achieved);
}

TEST(NsccQuickAdapt, CanBeDisabled) {
  CcProfile profile = two_tier();
  profile.nscc.disable_qa = true;
  Nscc cc = make_nscc(profile);
  const std::int64_t before = cc.window_bytes();
  cc.on_trim(0, kNsccMtu, false);
  cc.on_trim(kAdaptWindow, kNsccMtu, false);
  EXPECT_EQ(cc.window_bytes(), before - 2 * kNsccMtu);
}

TEST(NsccQuickAdapt, SignalsOfTheOldQueueAreIgnoredUntilItDrained) {
  Nscc cc = make_nscc();
  cc.on_sent(3 * kNsccMtu);
  cc.on_trim(0, kNsccMtu, false);
  cc.on_trim(kAdaptWindow, kNsccMtu, false);
  ASSERT_EQ(cc.window_bytes(), kNsccMtu);
  const DurationNs average = cc.average_delay_ns();
  TimeNs now = kAdaptWindow + 2 * kBaseRtt;
  // Two of three packets in flight at that time: a mark does nothing, not even the period bonus.
  ack(cc, now, 6'000, true);
  cc.on_trim(now, kNsccMtu, false);
  EXPECT_EQ(cc.window_bytes(), kNsccMtu);
  EXPECT_GT(cc.average_delay_ns(), average);
  // The third is the last one, and not ignored any more.
  ack(cc, now, 6'000, true);
  EXPECT_GT(cc.window_bytes(), kNsccMtu);
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
    EXPECT_EQ(cc.window_bytes() == kNsccMtu, delay > 4 * kBaseRtt);
  }
}

TEST(NsccQuickAdapt, DelayThresholdParameterAlsoWorksWithTrimming) {
  CcProfile profile = two_tier();
  profile.nscc.qa_threshold_ns = 20'000;
  Nscc cc = make_nscc(profile);
  settle(cc, 0, 100'000);
  ack(cc, kAdaptWindow, 20'001, true, 0);
  EXPECT_EQ(cc.window_bytes(), kNsccMtu);
}

TEST(NsccQuickAdapt, ATrimDoesNotOutliveItsWindow) {
  Nscc cc = make_nscc();
  cc.on_trim(0, kNsccMtu, false);
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
  cc.on_sent(kNsccMtu);
  cc.on_packet_sent(later, kNsccMtu);
  const std::int64_t before = cc.window_bytes();
  cc.on_trim(later + kBaseRtt, kNsccMtu, false);
  EXPECT_EQ(cc.window_bytes(), before - kNsccMtu);
}

TEST(NsccQuickAdapt, ATrimInTheMiddleOfAWindowCountsAtItsEnd) {
  Nscc cc = make_nscc();
  ack(cc, 0, 6'000, true);
  cc.on_trim(1'000, kNsccMtu, false);
  ack(cc, 2'000, 6'000, true);
  ack(cc, kAdaptWindow, 6'000, true);
  EXPECT_EQ(cc.window_bytes(), 2 * kNsccMtu);
}

TEST(NsccQuickAdapt, NeverRaisesTheWindow) {
  Nscc cc = make_nscc();
  settle(cc, 0, 2 * kNsccMtu);
  for (int i = 0; i < 5; ++i)
    ack(cc, 1'000, 6'000, true);
  cc.on_trim(kAdaptWindow, kNsccMtu, false);
  EXPECT_LE(cc.window_bytes(), 2 * kNsccMtu);
}

TEST(NsccQuickAdapt, ForgetsTheIncreaseThatWasDue) {
  for (const bool trimmed : {true, false}) {
    CcProfile profile = two_tier();
    profile.nscc.qa_threshold_ns = 20'000;
    profile.nscc.eta = 1;
    Nscc cc = make_nscc(profile);
    ack(cc, 0, 1'000, true, 0);
    for (int i = 0; i < 5; ++i)
      ack(cc, 1'000, 2'000);
    if (trimmed) {
      cc.on_trim(kAdaptWindow, kNsccMtu, false);
    } else {
      ack(cc, kAdaptWindow, 20'001, true, 0);
    }
    ASSERT_EQ(cc.window_bytes(), 5 * kNsccMtu);
    ack(cc, kAdaptWindow, 6'000, true, 0);  // the period is over: applies what is due, and eta
    EXPECT_EQ(cc.window_bytes(), 5 * kNsccMtu + 1);
  }
}

TEST(NsccQuickAdapt, AnUnmarkedAnswerIsHeardEvenWhileTheOldQueueDrains) {
  Nscc cc = make_nscc();
  cc.on_sent(100 * kNsccMtu);
  cc.on_trim(0, kNsccMtu, false);
  cc.on_trim(kAdaptWindow, kNsccMtu, false);
  ASSERT_EQ(cc.window_bytes(), kNsccMtu);
  ack(cc, kAdaptWindow + kBaseRtt, 3'000);
  EXPECT_GT(cc.window_bytes(), kNsccMtu);
}

TEST(NsccTrim, TakesOnePacketAtTheLastHopToo) {
  for (const bool last_hop : {false, true}) {
    Nscc cc = make_nscc();
    const std::int64_t before = cc.window_bytes();
    cc.on_trim(0, kNsccMtu, last_hop);
    EXPECT_EQ(cc.window_bytes(), before - kNsccMtu);
  }
}

TEST(NsccTrim, EndsFastIncrease) {
  Nscc cc = make_nscc();
  settle(cc, 0, 10 * kNsccMtu);
  for (int i = 0; i < 20; ++i)
    ack(cc, 1, 0);
  cc.on_trim(1, kNsccMtu, false);
  const std::int64_t before = cc.window_bytes();
  ack(cc, 1, 0);
  EXPECT_EQ(cc.window_bytes(), before);
}

TEST(NsccLoss, TakesOnePacketAndNeverTheLast) {
  Nscc cc = make_nscc();
  const std::int64_t before = cc.window_bytes();
  cc.on_loss(0, kNsccMtu);
  EXPECT_EQ(cc.window_bytes(), before - kNsccMtu);
  for (int i = 0; i < 1'000; ++i)
    cc.on_loss(i, kNsccMtu);
  EXPECT_EQ(cc.window_bytes(), kNsccMtu);
}

// --- Receiver penalty ---

// One window of answers, with as much in flight as the window allows.
void penalise_one_window(Nscc& cc, std::uint8_t penalty) {
  const std::int64_t packets = cc.window_bytes() / kNsccMtu;
  for (std::int64_t i = 0; i < packets; ++i) {
    cc.on_sent(std::max<std::int64_t>(cc.window_bytes() - cc.in_flight_bytes(), 0));
    cc.on_left_network(kNsccMtu);
    penalise(cc, i, penalty);
  }
}

TEST(NsccPenalty, SixtyFourThroughOneWindowHalvesIt) {
  Nscc cc = make_nscc();
  settle(cc, 0, 100 * kNsccMtu);
  penalise_one_window(cc, 64);
  EXPECT_NEAR(static_cast<double>(cc.window_bytes()), 50.0 * kNsccMtu, kNsccMtu);
}

TEST(NsccPenalty, TheLargestLeavesOnePacket) {
  Nscc cc = make_nscc();
  settle(cc, 0, 100 * kNsccMtu);
  penalise_one_window(cc, 127);
  EXPECT_LT(cc.window_bytes(), 3 * kNsccMtu);
  for (int i = 0; i < 10'000; ++i)
    penalise(cc, i * 100, 127);
  EXPECT_EQ(cc.window_bytes(), kNsccMtu);
}

TEST(NsccPenalty, AWindowThatIsNotUsedIsCutToWhatIs) {
  Nscc cc = make_nscc();
  settle(cc, 0, 100 * kNsccMtu);
  cc.on_sent(9 * kNsccMtu);
  penalise(cc, 1, 64);
  EXPECT_EQ(cc.window_bytes(), 10 * kNsccMtu - kNsccMtu / 2);
}

TEST(NsccPenalty, NothingGrowsMeanwhile) {
  Nscc cc = make_nscc();
  settle(cc, 0, 100 * kNsccMtu);
  cc.on_sent(100 * kNsccMtu);
  std::int64_t before = cc.window_bytes();
  for (int i = 1; i < 100; ++i) {
    penalise(cc, i * kBaseRtt, 1);
    EXPECT_LT(cc.window_bytes(), before);
    before = cc.window_bytes();
  }
}

TEST(NsccPenalty, RestoreBringsTheOldWindowBack) {
  Nscc cc = make_nscc();
  settle(cc, 0, 100 * kNsccMtu);
  penalise_one_window(cc, 64);
  penalise(cc, 200, 0, true);
  EXPECT_GE(cc.window_bytes(), 100 * kNsccMtu);
  EXPECT_LT(cc.window_bytes(), 102 * kNsccMtu);
}

TEST(NsccPenalty, WithoutRestoreTheWindowGrowsFromWhereItIs) {
  Nscc cc = make_nscc();
  settle(cc, 0, 100 * kNsccMtu);
  penalise_one_window(cc, 64);
  const std::int64_t penalised = cc.window_bytes();
  penalise(cc, kBaseRtt * 3, 0);
  EXPECT_GT(cc.window_bytes(), penalised);
  EXPECT_LT(cc.window_bytes(), 60 * kNsccMtu);
  // Too late to restore: the episode is over.
  penalise(cc, kBaseRtt * 3, 0, true);
  EXPECT_LT(cc.window_bytes(), 60 * kNsccMtu);
}

TEST(NsccPenalty, AnswersOfAnotherQueuePairDoNotEndIt) {
  Nscc cc = make_nscc();
  settle(cc, 0, 100 * kNsccMtu);
  cc.on_sent(100 * kNsccMtu);
  for (int i = 0; i < 50; ++i) {
    penalise(cc, i, 64);
    penalise(cc, i, 0);
  }
  EXPECT_EQ(cc.window_bytes(), 100 * kNsccMtu - 50 * (kNsccMtu / 2));
  penalise(cc, 60, 0, true);
  EXPECT_GE(cc.window_bytes(), 100 * kNsccMtu);
}

TEST(NsccPenalty, ValuesBeyondTheFieldCountAsItsLargest) {
  Nscc one = make_nscc();
  Nscc two = make_nscc();
  one.on_sent(400'000);
  two.on_sent(400'000);
  penalise(one, 1, 127);
  penalise(two, 1, 255);
  EXPECT_EQ(one.window_bytes(), two.window_bytes());
}

TEST(NsccPenalty, ALostPlaneShrinksTheWindowToRestore) {
  Nscc cc = make_nscc();
  settle(cc, 0, 100 * kNsccMtu);
  penalise_one_window(cc, 64);
  cc.set_bandwidth(200 * kGigabit);
  penalise(cc, 200, 0, true);
  EXPECT_NEAR(static_cast<double>(cc.window_bytes()), 50.0 * kNsccMtu, 2 * kNsccMtu);
}

TEST(NsccPenalty, ADecreaseOfTheNetworkIsNotUndoneByRestore) {
  Nscc cc = make_nscc();
  settle(cc, 0, 100 * kNsccMtu);
  penalise_one_window(cc, 64);
  const std::int64_t penalised = cc.window_bytes();
  cc.on_loss(150, penalised / 2);
  penalise(cc, 200, 0, true);
  EXPECT_NEAR(static_cast<double>(cc.window_bytes()), 50.0 * kNsccMtu, 2 * kNsccMtu);
}

// --- Base RTT ---

void sample_rtt(Nscc& cc, TimeNs now, DurationNs rtt_ns) {
  cc.on_ack({.now = now, .acked_bytes = kNsccMtu, .rtt_ns = rtt_ns});
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
  const double before = static_cast<double>(cc.window_bytes());
  cc.on_ack({.now = 1, .acked_bytes = 0, .marked = true, .rtt_ns = 4'000});
  // A third, and the step of one adjustment.
  EXPECT_NEAR(static_cast<double>(cc.window_bytes()), before / 3, before / 100);
}

TEST(NsccBaseRtt, ALaterFallOnlyCapsTheWindow) {
  Nscc cc = make_nscc();
  settle(cc, 0, 100'000);
  cc.on_ack({.now = 1, .acked_bytes = 0, .marked = true, .rtt_ns = 4'000});
  EXPECT_EQ(cc.window_bytes(), 100'000);
  cc.on_ack({.now = 1, .acked_bytes = 0, .marked = true, .rtt_ns = 1'000});
  EXPECT_EQ(cc.window_bytes(), cc.max_window_bytes());
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

// --- Start and bandwidth ---

TEST(NsccStart, OpensWithTheMaximumDividedByTheIncastDegree) {
  const std::int64_t max = make_nscc().max_window_bytes();
  EXPECT_EQ(Nscc(two_tier(), environment(400, 2)).window_bytes(), max / 2);
  EXPECT_EQ(Nscc(two_tier(), environment(400, 8)).window_bytes(), max / 8);
  EXPECT_EQ(Nscc(two_tier(), environment(400, 1'000'000)).window_bytes(), kNsccMtu);
}

TEST(NsccStart, OpensWithALittleMoreThanTheWireHolds) {
  const std::int64_t bdp = 400 * kBaseRtt / 8;
  EXPECT_NEAR(static_cast<double>(make_nscc().window_bytes()), 1.2 * static_cast<double>(bdp), 2);
  EXPECT_EQ(Nscc(two_tier(), environment(400, 1)).window_bytes(), make_nscc().window_bytes());
  CcProfile profile = two_tier();
  profile.nscc.max_cwnd = 300'000;
  EXPECT_EQ(make_nscc(profile).window_bytes(), 300'000) << "a maximum that was asked for is used";
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
  EXPECT_GE(cc.window_bytes(), kNsccMtu);
  for (int i = 0; i < 100; ++i)
    cc.on_loss(6 * kBaseRtt, kNsccMtu);
  for (int i = 0; i < 100; ++i)
    ack(cc, 6 * kBaseRtt, 9'000);
  cc.set_bandwidth(200 * kGigabit);
  EXPECT_NEAR(static_cast<double>(cc.window_bytes()), window / 2, 20);
}

TEST(NsccBandwidth, AControllerMayStartWithoutAny) {
  Nscc cc(two_tier(), environment(0, 4));
  EXPECT_GE(cc.window_bytes(), kNsccMtu);
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
    const std::int64_t half = cc.window_bytes() / 2;
    if (!losses_first) cc.set_bandwidth(200 * kGigabit);
    for (std::int64_t lost = 0; lost + kNsccMtu <= half; lost += kNsccMtu)
      cc.on_loss(10 * kBaseRtt, kNsccMtu);
    ack(cc, 12 * kBaseRtt, 1'000, true, 0);
    cc.set_bandwidth(200 * kGigabit);  // the other order: news by now
    EXPECT_NEAR(static_cast<double>(cc.window_bytes()), static_cast<double>(half), 2 * kNsccMtu);
    cc.on_loss(13 * kBaseRtt, 20 * kNsccMtu);
    EXPECT_LT(cc.window_bytes(), half - 15 * kNsccMtu);
  }
}

TEST(NsccBandwidth, HearingTheSameTwiceDoesNotEndTheForgiveness) {
  Nscc cc = make_nscc();
  const std::int64_t half = cc.window_bytes() / 2;
  cc.set_bandwidth(200 * kGigabit);
  cc.set_bandwidth(200 * kGigabit);
  cc.on_loss(1, half - kNsccMtu);
  EXPECT_NEAR(static_cast<double>(cc.window_bytes()), static_cast<double>(half), kNsccMtu);
}

TEST(NsccBandwidth, LossesAreCreditedToOneLostPlaneOnly) {
  Nscc cc = make_nscc();
  settle(cc, 0, 400'000);
  ack(cc, 5 * kBaseRtt, 1'000, true, 0);  // the losses that set the window are history
  cc.on_loss(6 * kBaseRtt, 100'000);
  cc.set_bandwidth(300 * kGigabit);
  const auto window = static_cast<double>(cc.window_bytes());
  cc.set_bandwidth(150 * kGigabit);
  EXPECT_NEAR(static_cast<double>(cc.window_bytes()), window / 2, 2);
}

TEST(NsccBandwidth, AnExplicitMaximumIsMeantForAllPlanesEvenIfOneWasMissingAtFirst) {
  CcProfile profile = two_tier();
  profile.nscc.max_cwnd = 400'000;
  Nscc cc(profile, environment(200));
  cc.set_bandwidth(400 * kGigabit);
  EXPECT_EQ(cc.max_window_bytes(), 400'000);
  cc.set_bandwidth(200 * kGigabit);
  EXPECT_EQ(cc.max_window_bytes(), 200'000);
}

// --- Pacing ---

// A packet is sent and trimmed one round trip later.
void trim_round(Nscc& cc, TimeNs now) {
  send(cc, now);
  cc.on_left_network(kNsccMtu);
  cc.on_trim(now + kBaseRtt, kNsccMtu, true);
}

CcProfile without_quick_adapt() {
  CcProfile profile = two_tier();
  profile.nscc.disable_qa = true;
  return profile;
}

TEST(NsccPacing, AWindowOfTwoPacketsIsNotPaced) {
  Nscc cc = make_nscc();
  settle(cc, 0, 2 * kNsccMtu);
  send(cc, 1'000);
  EXPECT_EQ(cc.next_send(), 0);
}

TEST(NsccPacing, ASmallerOneSpreadsPacketsOverTheRoundTrip) {
  double sum = 0;
  for (int i = 0; i < 1'000; ++i) {
    Nscc cc = make_nscc();
    settle(cc, 0, kNsccMtu);
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

TEST(NsccPacing, TrimsAtTheFloorDoubleTheGapEachRoundTripUpToSixteen) {
  Nscc cc = make_nscc(without_quick_adapt());
  settle(cc, 0, kNsccMtu);
  const unsigned expected[] = {2, 4, 8, 16, 16, 16, 16, 16};
  TimeNs now = 10 * kBaseRtt;
  for (const unsigned scale : expected) {
    trim_round(cc, now);
    cc.on_trim(now + kBaseRtt, kNsccMtu, true);  // the same round trip: counts once
    EXPECT_EQ(cc.pace_scale(), scale);
    EXPECT_GE(cc.next_send(), now + kBaseRtt + scale * (kBaseRtt / 2 - 200));
    now += 4 * kBaseRtt;
  }
  EXPECT_LE(cc.next_send() - now, 16 * 4 * kBaseRtt * 3 / 2);
}

TEST(NsccPacing, TheRoundTripThatReachesTheFloorDoesNotCount) {
  Nscc cc = make_nscc(without_quick_adapt());
  for (int i = 0; i < 1'000; ++i)
    cc.on_trim(1, kNsccMtu, true);
  EXPECT_EQ(cc.window_bytes(), kNsccMtu);
  EXPECT_EQ(cc.pace_scale(), 1U);
}

TEST(NsccPacing, AnswersHalveTheGapBeforeTheWindowGrows) {
  Nscc cc = make_nscc(without_quick_adapt());
  settle(cc, 0, kNsccMtu);
  for (int i = 0; i < 3; ++i)
    trim_round(cc, (10 + 4 * i) * kBaseRtt);
  ASSERT_EQ(cc.pace_scale(), 8U);
  TimeNs now = 100 * kBaseRtt;
  const DurationNs queued = 2 * kBaseRtt;
  for (const unsigned scale : {4U, 2U}) {
    ack(cc, now, queued);
    ack(cc, now, queued);  // the same round trip: counts once
    EXPECT_EQ(cc.pace_scale(), scale);
    EXPECT_EQ(cc.window_bytes(), kNsccMtu);
    EXPECT_LE(cc.next_send(), now + scale * kBaseRtt * 6);
    now += 4 * kBaseRtt;
  }
  ack(cc, now, 0);
  EXPECT_EQ(cc.pace_scale(), 1U);
  for (int i = 1; i < 100 && cc.window_bytes() < 2 * kNsccMtu; ++i)
    ack(cc, now + i * kBaseRtt, 0);
  EXPECT_EQ(cc.next_send(), 0);
}

TEST(NsccPacing, AnAnswerShortensTheWait) {
  Nscc cc = make_nscc(without_quick_adapt());
  settle(cc, 0, kNsccMtu);
  for (int i = 0; i < 6; ++i)
    trim_round(cc, (10 + 4 * i) * kBaseRtt);
  ASSERT_EQ(cc.pace_scale(), 16U);
  const TimeNs now = 34 * kBaseRtt;
  for (int i = 0; i < 3; ++i)
    ack(cc, now + i * 2 * kBaseRtt, 0);
  ASSERT_EQ(cc.pace_scale(), 2U);
  EXPECT_LE(cc.next_send(), now + 6 * kBaseRtt + 4 * kBaseRtt);
}

TEST(NsccPacing, HugeRoundTripsDoNotMakeHugeGaps) {
  Nscc cc = make_nscc();
  for (int i = 0; i < 100; ++i)
    sample_rtt(cc, i, std::numeric_limits<std::int64_t>::max());
  cc.on_loss(100, cc.window_bytes());
  send(cc, 1'000);
  EXPECT_LE(cc.next_send(), 1'000 + 4 * kBaseRtt * 3 / 2);
}

TEST(NsccPacing, EndsWhenThePlanesComeBack) {
  Nscc cc(without_quick_adapt(), environment(100));
  settle(cc, 0, kNsccMtu);
  trim_round(cc, 10 * kBaseRtt);
  ASSERT_EQ(cc.pace_scale(), 2U);
  cc.set_bandwidth(400 * kGigabit);
  EXPECT_EQ(cc.pace_scale(), 1U);
  EXPECT_EQ(cc.next_send(), 0);
}

TEST(NsccPacing, LossesAtTheFloorCountLikeTrims) {
  Nscc cc = make_nscc();
  settle(cc, 0, kNsccMtu);
  cc.on_loss(10 * kBaseRtt, kNsccMtu);
  EXPECT_EQ(cc.pace_scale(), 2U);
}

}  // namespace
}  // namespace mrc::core
