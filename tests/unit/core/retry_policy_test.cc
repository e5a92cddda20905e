// Intervals, tries and the end of them.
#include "core/retry_policy.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace mrc::core {
namespace {

constexpr DurationNs kUnit = 1024 << 8;  // timeout 8: 262 us
constexpr RetryPolicy::Pace kQuick{.round_trip_ns = 10 * kMicrosecondNs, .jitter_ns = 0};
using Outcome = RetryPolicy::Outcome;

RetryPolicy make(std::uint8_t linear, std::uint8_t exponential) {
  QpReadyToSend rts;
  rts.timeout = 8;
  rts.linear_retries = linear;
  rts.exponential_retries = exponential;
  return RetryPolicy(rts);
}

// Data was sent and nothing came back.
Outcome silent_interval(RetryPolicy& policy, TimeNs& now) {
  policy.note_data(now);
  now = policy.expiry(kQuick);
  return policy.expire(now, {});
}

TEST(RetryPolicy, LinearThenDoublingThenTheEnd) {
  RetryPolicy policy = make(2, 2);
  TimeNs now = 0;
  policy.note_progress(now);
  const DurationNs waits[] = {kUnit, kUnit, 2 * kUnit, 4 * kUnit};
  for (const DurationNs wait : waits) {
    const TimeNs began = now;
    EXPECT_EQ(silent_interval(policy, now), Outcome::kTry);
    EXPECT_EQ(now - began, wait);
  }
  EXPECT_EQ(silent_interval(policy, now), Outcome::kGiveUp);
}

TEST(RetryPolicy, ADoubtfulRoundTripCountsForHalfAsMuchAfterEachTryInSilence) {
  constexpr DurationNs kSlow = 8 * kUnit;  // the only answers, far later than was expected
  for (const bool in_doubt : {true, false}) {
    RetryPolicy policy = make(5, 1);
    const RetryPolicy::Pace pace{.round_trip_ns = kSlow, .jitter_ns = 0, .in_doubt = in_doubt};
    TimeNs now = 0;
    policy.note_progress(now);
    for (unsigned tries = 0; tries < 5; ++tries) {
      policy.note_data(now);
      EXPECT_EQ(policy.expiry(pace) - now, in_doubt ? std::max(kSlow >> tries, kUnit) : kSlow);
      now = policy.expiry(pace);
      EXPECT_EQ(policy.expire(now, {}), Outcome::kTry);
    }
    EXPECT_EQ(policy.expiry(pace) - now, in_doubt ? 2 * kUnit : 2 * kSlow);
    policy.note_progress(now);  // who answers is asked at its own pace again
    EXPECT_EQ(policy.expiry(pace) - now, kSlow);
  }
}

TEST(RetryPolicy, TheLargestCountMeansForEver) {
  RetryPolicy policy = make(0, kMaxExponentialRetries);
  TimeNs now = 0;
  for (unsigned i = 0; i < 300; ++i)
    ASSERT_EQ(silent_interval(policy, now), Outcome::kTry) << i;
  EXPECT_EQ(policy.expiry(kQuick) - now, 32 * kSecondNs);
}

TEST(RetryPolicy, ProgressRenewsTheBudget) {
  RetryPolicy policy = make(1, 0);
  TimeNs now = 0;
  for (unsigned i = 0; i < 10; ++i) {
    EXPECT_EQ(silent_interval(policy, now), Outcome::kTry);
    policy.note_progress(now);
    EXPECT_EQ(policy.tries(), 0);
  }
}

TEST(RetryPolicy, NeverShorterThanAnAnswerTakes) {
  const RetryPolicy policy = make(1, 1);
  EXPECT_EQ(policy.base_ns(kQuick), kUnit);
  EXPECT_EQ(policy.base_ns({.round_trip_ns = kMillisecondNs, .jitter_ns = 0}), kMillisecondNs);
  EXPECT_EQ(policy.base_ns({.round_trip_ns = 0, .jitter_ns = kMillisecondNs}), 4 * kMillisecondNs);
}

TEST(RetryPolicy, NothingSentIsNoTry) {
  RetryPolicy policy = make(0, 0);
  for (TimeNs now = kUnit; now < 100 * kUnit; now += kUnit)
    EXPECT_EQ(policy.expire(now, {}), Outcome::kNoTry) << "all ports may be down";
  policy.note_data(99 * kUnit);
  EXPECT_EQ(policy.expire(100 * kUnit, {}), Outcome::kGiveUp);
}

TEST(RetryPolicy, WaitingForTheWindowIsNoTryWhileThePeerAnswers) {
  RetryPolicy policy = make(0, 0);
  policy.note_progress(0);
  policy.note_question(0);
  EXPECT_EQ(policy.expire(kUnit, {.heard_at = kUnit / 2, .waits = true}), Outcome::kNoTry);
  policy.note_data(kUnit);
  EXPECT_EQ(policy.expire(2 * kUnit, {.heard_at = kUnit + 1, .waits = true}), Outcome::kGiveUp)
      << "data was sent, and an answer to a question is no progress";
  RetryPolicy waiting = make(3, 0);
  waiting.note_question(0);
  EXPECT_EQ(waiting.expire(kUnit, {}), Outcome::kTry);
  waiting.note_question(kUnit);
  waiting.expire(2 * kUnit, {.heard_at = 2 * kUnit - 1, .waits = true, .nothing_out = false});
  EXPECT_EQ(waiting.tries(), 1) << "packets of its own are lost: their tries count";
  waiting.note_question(2 * kUnit);
  waiting.expire(3 * kUnit, {.heard_at = 3 * kUnit - 1, .waits = true, .nothing_out = true});
  EXPECT_EQ(waiting.tries(), 0);
  RetryPolicy alone = make(0, 0);
  alone.note_question(0);
  EXPECT_EQ(alone.expire(kUnit, {.heard_at = 0, .waits = true}), Outcome::kGiveUp) << "silence";
}

TEST(RetryPolicy, ATryHasItsWholeIntervalForTheAnswer) {
  RetryPolicy policy = make(0, 0);
  policy.note_progress(0);
  policy.note_data(kUnit - 1);  // a port came up
  EXPECT_EQ(policy.expiry(kQuick), 2 * kUnit - 1);
  policy.note_data(kUnit);
  EXPECT_EQ(policy.expiry(kQuick), 2 * kUnit - 1) << "only the first begins it";
  RetryPolicy waiting = make(0, 0);
  waiting.note_question(0);
  waiting.note_heard();
  waiting.note_data(kUnit - 1);
  EXPECT_EQ(waiting.expiry(kQuick), 2 * kUnit - 1) << "the peer was there, our turn was not";
  RetryPolicy unheard = make(0, 0);
  unheard.note_question(0);
  unheard.note_data(kUnit - 1);
  EXPECT_EQ(unheard.expiry(kQuick), kUnit) << "who is gone is found out about in time";
}

TEST(RetryPolicy, WhatWasAcknowledgedIsNoTryOfTheRest) {
  RetryPolicy policy = make(0, 0);
  policy.note_data(0);
  policy.note_progress(10);
  EXPECT_EQ(policy.expire(10 + kUnit, {}), Outcome::kNoTry);
  policy.note_data(20 + kUnit);
  policy.note_progress(30 + kUnit);
  EXPECT_EQ(policy.expire(30 + 2 * kUnit, {.under_way = true}), Outcome::kGiveUp)
      << "what is under way and was not acknowledged is";
}

// With jitter one packet is given up after the other, and the rest stay under way.
TEST(RetryPolicy, WhatStaysUnderWayIsNoTryOfLaterIntervals) {
  RetryPolicy policy = make(1, 0);
  TimeNs now = 0;
  EXPECT_EQ(silent_interval(policy, now), Outcome::kTry);
  for (unsigned i = 0; i < 10; ++i)
    EXPECT_EQ(policy.expire(now += kUnit, {.under_way = true}), Outcome::kAgain)
        << "all ports may be down; what is late is still to be sent again";
  EXPECT_EQ(policy.tries(), 1);
  EXPECT_EQ(silent_interval(policy, now), Outcome::kGiveUp);
}

TEST(RetryPolicy, ADoubledIntervalKeepsItsRoomForALinearOne) {
  RetryPolicy policy = make(1, 3);
  TimeNs now = 0;
  policy.note_progress(now);
  EXPECT_EQ(policy.room_ends(kQuick), kNever) << "the first interval is its own";
  silent_interval(policy, now);
  EXPECT_EQ(policy.room_ends(kQuick), now + kUnit) << "of two";
  policy.give_room();
  EXPECT_TRUE(policy.sends_nothing());
  EXPECT_EQ(policy.room_ends(kQuick), kNever) << "once";
  silent_interval(policy, now);
  EXPECT_FALSE(policy.sends_nothing()) << "the next try needs room again";
  EXPECT_EQ(policy.room_ends(kQuick), now + kUnit) << "of four";
}

TEST(RetryPolicy, WhoGaveRoomMaySendAgainOnceThePeerIsHeard) {
  RetryPolicy policy = make(1, 3);
  TimeNs now = 0;
  silent_interval(policy, now);
  policy.give_room();
  policy.note_heard();
  EXPECT_FALSE(policy.sends_nothing());
  policy.give_room();
  policy.note_progress(now + 1);
  EXPECT_FALSE(policy.sends_nothing());
}

TEST(RetryPolicy, AWaitEndsWhenTheTurnComes) {
  RetryPolicy policy = make(7, 3);
  TimeNs now = 0;
  for (unsigned i = 0; i < 8; ++i) {
    policy.note_question(now);
    now = policy.expiry(kQuick);
    policy.expire(now, {.heard_at = now - 1, .waits = true, .nothing_out = true});
  }
  EXPECT_EQ(policy.expiry(kQuick) - now, 256 * kUnit);
  policy.note_data(now + kUnit);
  EXPECT_EQ(policy.expiry(kQuick), now + 2 * kUnit);
}

TEST(RetryPolicy, WhoWaitsAsksLessAndLessOften) {
  RetryPolicy policy = make(7, 3);
  TimeNs now = 0;
  for (unsigned i = 0; i < 12; ++i) {
    const TimeNs began = now;
    policy.note_question(now);
    now = policy.expiry(kQuick);
    EXPECT_EQ(now - began, kUnit << std::min(i, 8U));
    policy.expire(now, {.heard_at = now, .waits = true, .nothing_out = true});
  }
  policy.note_progress(now);
  EXPECT_EQ(policy.expiry(kQuick) - now, kUnit);
}

}  // namespace
}  // namespace mrc::core
