// The estimate of the round trip: smooth, and not moved far by answers that were held up.
#include "core/rtt.h"

#include <gtest/gtest.h>

namespace mrc::core {
namespace {

constexpr DurationNs kUsual = 30 * kMicrosecondNs;
constexpr DurationNs kHeldUp = 27 * kMillisecondNs;

// An estimator that has seen enough of the usual round trips; the next is sent at `now`.
struct Settled {
  Settled() {
    for (unsigned i = 0; i < 100; ++i)
      exchange(kUsual);
  }
  // Sends something now, which is answered after `rtt`.
  void exchange(DurationNs rtt) {
    const TimeNs sent_at = now;
    now += rtt;
    estimate.add(now, sent_at, rtt);
  }
  RttEstimator estimate{12 * kMicrosecondNs};
  TimeNs now = 0;
};

TEST(Rtt, TakesTheFirstSampleAsItIs) {
  RttEstimator estimate(12 * kMicrosecondNs);
  EXPECT_FALSE(estimate.has_sample());
  EXPECT_EQ(estimate.smoothed(), 12 * kMicrosecondNs);
  estimate.add(kUsual, 0, kUsual);
  EXPECT_TRUE(estimate.has_sample());
  EXPECT_EQ(estimate.smoothed(), kUsual);
  EXPECT_EQ(estimate.variation(), kUsual / 2);
  EXPECT_EQ(estimate.minimum(), kUsual);
}

TEST(Rtt, MovesAnEighthOfTheWay) {
  RttEstimator estimate;
  estimate.add(8'000, 0, 8'000);
  estimate.add(24'000, 8'000, 16'000);
  EXPECT_EQ(estimate.smoothed(), 9'000);
  EXPECT_EQ(estimate.variation(), 4'000 + (8'000 - 4'000) / 4);
  EXPECT_EQ(estimate.minimum(), 8'000);
  estimate.add(25'000, 24'000, 1'000);
  EXPECT_EQ(estimate.smoothed(), 8'000);
  EXPECT_EQ(estimate.minimum(), 1'000);
}

TEST(Rtt, AnswersHeldUpTogetherCountOnce) {
  Settled once;
  once.exchange(kHeldUp);
  EXPECT_LE(once.estimate.smoothed(), 2 * kUsual);

  Settled many;
  const TimeNs sent_at = many.now;
  for (unsigned i = 0; i < 50; ++i) {
    const TimeNs answered_at = sent_at + kHeldUp + i;
    many.estimate.add(answered_at, sent_at + i, kHeldUp);
  }
  EXPECT_EQ(many.estimate.smoothed(), once.estimate.smoothed());
  EXPECT_EQ(many.estimate.variation(), once.estimate.variation());
}

TEST(Rtt, FirstAnswerMayBeHeldUpToo) {
  RttEstimator estimate(12 * kMicrosecondNs);
  estimate.add(kHeldUp, 0, kHeldUp);
  EXPECT_FALSE(estimate.has_sample());
  EXPECT_EQ(estimate.smoothed(), 12 * kMicrosecondNs);
  estimate.add(2 * kHeldUp, kHeldUp, kHeldUp);
  EXPECT_EQ(estimate.smoothed(), 64 * 12 * kMicrosecondNs)
      << "one after the other: it is like that";
}

TEST(Rtt, SlowFirstAnswerStandsUntilAFastOne) {
  RttEstimator estimate(12 * kMicrosecondNs);
  estimate.add(400 * kMicrosecondNs, 0, 400 * kMicrosecondNs);
  EXPECT_EQ(estimate.smoothed(), 400 * kMicrosecondNs);
  estimate.add(410 * kMicrosecondNs, 0, 410 * kMicrosecondNs);
  EXPECT_GE(estimate.smoothed(), 400 * kMicrosecondNs) << "it may be like that";
  estimate.add(450 * kMicrosecondNs, 410 * kMicrosecondNs, kUsual);
  EXPECT_EQ(estimate.smoothed(), kUsual);
  EXPECT_EQ(estimate.variation(), kUsual / 2);
  estimate.add(453 * kMicrosecondNs, 450 * kMicrosecondNs, 3 * kMicrosecondNs);
  EXPECT_GT(estimate.smoothed(), kUsual / 2) << "it is forgotten once";
}

TEST(Rtt, OfWhatWaitedWithASlowFirstAnswerTheFastestCounts) {
  constexpr TimeNs kAnswered = 250 * kMicrosecondNs;
  RttEstimator estimate(12 * kMicrosecondNs);
  estimate.add(kAnswered, 0, 250 * kMicrosecondNs);
  estimate.add(kAnswered, 200 * kMicrosecondNs, 50 * kMicrosecondNs);
  EXPECT_EQ(estimate.smoothed(), 50 * kMicrosecondNs);
  EXPECT_EQ(estimate.variation(), 25 * kMicrosecondNs);
  estimate.add(kAnswered + 100 * kMicrosecondNs, 200 * kMicrosecondNs, 150 * kMicrosecondNs);
  EXPECT_GT(estimate.smoothed(), 50 * kMicrosecondNs) << "a queue looks like that";
  const DurationNs with_queue = estimate.smoothed();
  estimate.add(kAnswered + 140 * kMicrosecondNs, kAnswered + 100 * kMicrosecondNs,
               40 * kMicrosecondNs);
  EXPECT_GT(estimate.smoothed(), 40 * kMicrosecondNs) << "it left after the first was answered";
  EXPECT_LT(estimate.smoothed(), with_queue);
}

TEST(Rtt, TheSlowestAnswerOfEachFlightMakesThePatience) {
  Settled once;
  once.estimate.add(once.now + 7 * kUsual, once.now, 7 * kUsual);
  Settled many;
  for (DurationNs queued = 2; queued <= 7; ++queued)
    many.estimate.add(many.now + queued * kUsual, many.now, queued * kUsual);
  EXPECT_EQ(many.estimate.patience(), once.estimate.patience());
  EXPECT_GT(many.estimate.smoothed(), once.estimate.smoothed()) << "losses are judged by all";
  many.estimate.add(many.now + 20 * kUsual, many.now + 13 * kUsual, 7 * kUsual);
  EXPECT_GT(many.estimate.patience(), once.estimate.patience()) << "the next flight";
}

TEST(Rtt, ThePatienceReachesTheSlowestPath) {
  RttEstimator estimate(12 * kMicrosecondNs);
  constexpr DurationNs kSlow = 8 * kUsual;
  TimeNs now = 0;
  for (unsigned flight = 0; flight < 40; ++flight, now += kSlow) {
    estimate.add(now + kUsual, now, kUsual);
    estimate.add(now + kSlow, now, kSlow);
  }
  EXPECT_GT(estimate.patience(), kSlow);
}

TEST(Rtt, TheDoubtEnds) {
  RttEstimator estimate(12 * kMicrosecondNs);
  constexpr DurationNs kSlow = 40 * kUsual;
  TimeNs now = 0;
  for (unsigned flight = 0; flight < 30; ++flight, now += kSlow)
    estimate.add(now + kSlow, now, kSlow);
  estimate.add(now + kUsual, now, kUsual);
  EXPECT_GT(estimate.smoothed(), kSlow / 2) << "so many say that it is like that";
}

TEST(Rtt, FirstAnswerAsExpectedIsNotInDoubt) {
  RttEstimator estimate(12 * kMicrosecondNs);
  estimate.add(kUsual, 0, kUsual);
  estimate.add(kUsual + 1'000, kUsual, 1'000);
  EXPECT_GT(estimate.smoothed(), kUsual / 2);
}

TEST(Rtt, OthersThatWereHeldUpWithTheFirstDoNotCount) {
  constexpr DurationNs kPause = 3'400 * kMicrosecondNs;
  RttEstimator estimate(12 * kMicrosecondNs);
  for (TimeNs sent_at = 0; sent_at < 10; ++sent_at)
    estimate.add(kPause + sent_at, sent_at, kPause);
  EXPECT_FALSE(estimate.has_sample());
  estimate.add(kPause + 20, kPause + 20 - 100 * kUsual, 100 * kUsual);
  EXPECT_FALSE(estimate.has_sample()) << "it left before the late ones came";
}

TEST(Rtt, TheAnswerAfterOneThatWasHeldUpIsTheFirst) {
  constexpr DurationNs kPause = 3'400 * kMicrosecondNs;
  RttEstimator estimate(12 * kMicrosecondNs);
  estimate.add(kPause, 0, kPause);
  estimate.add(kPause + kUsual, kPause, kUsual);
  EXPECT_EQ(estimate.smoothed(), kUsual);
  EXPECT_EQ(estimate.variation(), kUsual / 2);
  estimate.add(2 * kPause, kPause + kUsual, kPause - kUsual);
  EXPECT_LE(estimate.smoothed(), 2 * kUsual) << "the next late one counts as eight usual ones";
}

TEST(Rtt, LongerRoundTripsAreBelievedWhenTheyGoOn) {
  Settled settled;
  for (unsigned i = 0; i < 40; ++i)
    settled.exchange(kHeldUp);
  EXPECT_GT(settled.estimate.smoothed(), kHeldUp * 9 / 10);
  EXPECT_LE(settled.estimate.smoothed(), kHeldUp);
  EXPECT_EQ(settled.estimate.minimum(), kUsual);
}

TEST(Rtt, TwoLateAnswersInARowAreNotAStart) {
  RttEstimator estimate(12 * kMicrosecondNs);
  constexpr DurationNs kFirst = 64 * 12 * kMicrosecondNs;
  estimate.add(3 * kMillisecondNs, 0, 3 * kMillisecondNs);
  estimate.add(9 * kMillisecondNs, 3 * kMillisecondNs, 6 * kMillisecondNs);
  EXPECT_LT(estimate.smoothed(), 2 * kFirst) << "an eighth of it, not all";
}

TEST(Rtt, GrowsFromTheShortestThereIs) {
  RttEstimator estimate(12 * kMicrosecondNs);
  estimate.add(1'000, 0, round_trip(1'000, 0, 1'000 / kTickNs));
  EXPECT_EQ(estimate.smoothed(), kTickNs);
  for (TimeNs now = 0; now < 100; ++now)
    estimate.add((now + 1) * kHeldUp, now * kHeldUp, kUsual);
  EXPECT_GT(estimate.smoothed(), kUsual / 2);
}

TEST(RoundTrip, LeavesOutTheTimeAtThePeer) {
  constexpr TimeNs kSentAt = 1'000 * kTickNs;
  constexpr auto kStamp = ticks_at(kSentAt);
  EXPECT_EQ(round_trip(kSentAt + 100 * kTickNs, kSentAt, kStamp), 100 * kTickNs);
  EXPECT_EQ(round_trip(kSentAt + 100 * kTickNs, kSentAt, kStamp + 30), 70 * kTickNs);
}

TEST(RoundTrip, RefusesStampsOfAnotherTransmission) {
  constexpr TimeNs kSentAt = 1'000 * kTickNs;
  constexpr auto kStamp = ticks_at(kSentAt);
  EXPECT_EQ(round_trip(kSentAt + 100 * kTickNs, kSentAt, kStamp - 1), 0);
  EXPECT_EQ(round_trip(kSentAt + 100 * kTickNs, kSentAt, kStamp + 102), 0);
  EXPECT_EQ(round_trip(kSentAt, kSentAt, kStamp), 0);
}

}  // namespace
}  // namespace mrc::core
