// Due times of probes by themselves; PathSet's tests see them at work.
#include "core/probe_schedule.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <vector>

#include "core/rtt.h"
#include "unit/core/path_set_fixture.h"

namespace mrc::core {
namespace {

constexpr DurationNs kBase = 12 * kMicrosecondNs;
constexpr DurationNs kCap = 10 * kMillisecondNs;
constexpr PortMask kFirst = PortMask::first(1);
constexpr PortMask kBoth = PortMask::first(2);

struct Schedule {
  Schedule(unsigned planes, unsigned evs_per_plane)
      : profile(striped_profile(planes, evs_per_plane)), probes(profile, kBase, kCap) {}
  EvProfile profile;
  ProbeSchedule probes;
};

TEST(ProbeSchedule, TheFirstIsDueOneBasePeriodAfterItWasAdded) {
  Schedule schedule(1, 2);
  EXPECT_EQ(schedule.probes.next_time(PortMask()), kNever);
  schedule.probes.add(ev_at(1), 1'000);
  EXPECT_EQ(schedule.probes.next_time(kFirst), 1'000 + kBase);
  EXPECT_EQ(schedule.probes.due(1'000 + kBase - 1, kFirst), kNoEv);
  EXPECT_EQ(schedule.probes.due(1'000 + kBase, kFirst), ev_at(1));
}

TEST(ProbeSchedule, PeriodsDoubleUpToTheCap) {
  Schedule schedule(1, 1);
  schedule.probes.add(ev_at(0), 0);
  TimeNs now = 0;
  DurationNs expected = kBase;
  for (unsigned i = 0; i < 14; ++i) {
    const TimeNs due = schedule.probes.next_time(kFirst);
    EXPECT_EQ(due - now, expected) << i;
    now = due;
    schedule.probes.on_sent(ev_at(0), now);
    expected = std::min(2 * expected, kCap);
  }
  EXPECT_EQ(expected, kCap);
}

// 1,000 queue pairs of one peer, each with bad paths of its own, ask as often as 4 alone would.
TEST(ProbeSchedule, QueuePairsToOnePeerTakeTurns) {
  ProbeTurns turns;
  std::vector<std::unique_ptr<Schedule>> pairs;
  for (unsigned i = 0; i < 1'000; ++i) {
    pairs.push_back(std::make_unique<Schedule>(1, 2));
    pairs.back()->probes.pace(kBase, turns);
    pairs.back()->probes.add(ev_at(0), 0);
    pairs.back()->probes.add(ev_at(1), 0);
  }
  for (const auto& pair : pairs)
    pair->probes.on_sent(pair->probes.due(kBase, kFirst), kBase);
  TimeNs turn = kBase;
  for (unsigned i = 0; i < 1'000; ++i, turn += kBase / 16) {
    const TimeNs next = pairs[i]->probes.next_time(kFirst);
    EXPECT_EQ(next, std::max(turn, kBase + kBase / 4)) << i;
  }
  // The turns of those that have nothing left to ask are over when their time has passed.
  const TimeNs later = turn + kBase;
  pairs[0]->probes.on_sent(ev_at(1), later);
  EXPECT_EQ(pairs[0]->probes.next_time(kFirst), later + kBase / 4);
}

// Answers that take four round trips more than expected count a quarter each.
TEST(ProbeSchedule, SlowAnswersMakeProbesFewer) {
  ProbeTurns turns;
  Schedule one(1, 2);
  Schedule other(1, 2);
  for (Schedule* schedule : {&one, &other}) {
    schedule->probes.pace(kBase, turns);
    schedule->probes.add(ev_at(0), 0);
    schedule->probes.add(ev_at(1), 0);
  }
  one.probes.note_round_trip(5 * kBase);
  EXPECT_EQ(turns.round_trip(), 2 * kBase);
  one.probes.on_sent(ev_at(0), kBase);
  const DurationNs now_takes = 2 * kBase - 2 * kBase / 64;
  EXPECT_EQ(turns.round_trip(), now_takes);
  EXPECT_EQ(one.probes.next_time(kFirst), kBase + 2 * kBase / 4);
  other.probes.on_sent(ev_at(0), kBase);
  EXPECT_EQ(other.probes.next_time(kFirst), kBase + now_takes / 4);
}

// Stamps turn round in 8.4 ms; the time of the last probe tells how often they did.
TEST(ProbeSchedule, AnswersOfAPeerThatIsSlowAreTimedByTheirProbe) {
  ProbeTurns turns;
  Schedule schedule(1, 1);
  schedule.probes.pace(kBase, turns);
  schedule.probes.add(ev_at(0), 0);
  for (TimeNs now = kSecondNs; now < 2 * kSecondNs; now += 100 * kMillisecondNs) {
    schedule.probes.on_sent(ev_at(0), now);
    const TimeNs answered = now + 70 * kMillisecondNs;
    const DurationNs took = schedule.probes.took(ev_at(0), answered, ticks_at(now));
    EXPECT_NEAR(static_cast<double>(took), 70e6, 256);
    // The peer kept it for 1 ms and says so.
    const std::uint16_t kept = ticks_at(now + kMillisecondNs);
    EXPECT_NEAR(static_cast<double>(schedule.probes.took(ev_at(0), answered, kept)), 69e6, 256);
  }
  schedule.probes.on_sent(ev_at(0), 3 * kSecondNs);
  EXPECT_EQ(schedule.probes.took(ev_at(0), 3 * kSecondNs + kBase, ticks_at(3 * kSecondNs - kBase)),
            0)
      << "an answer to an earlier one";
}

TEST(ProbeSchedule, OneThatTookFarTooLongCountsAsEightTimesTheUsual) {
  ProbeTurns turns;
  turns.on_answered(kSecondNs, kBase);
  EXPECT_EQ(turns.round_trip(), kBase + 7 * kBase / 4);
}

TEST(ProbeSchedule, TheRoundTripIsNeverLessThanTheBasePeriod) {
  ProbeTurns turns;
  Schedule schedule(1, 2);
  schedule.probes.pace(kBase, turns);
  schedule.probes.add(ev_at(0), 0);
  schedule.probes.add(ev_at(1), 0);
  for (unsigned i = 0; i < 100; ++i)
    schedule.probes.note_round_trip(kBase / 100);
  schedule.probes.on_sent(ev_at(1), kSecondNs);
  EXPECT_EQ(schedule.probes.next_time(kFirst), kSecondNs + kBase / 4);
}

// After a pause of the peer, where nothing answers any more.
TEST(ProbeSchedule, ProbesWithoutAnAnswerBringTheRoundTripDown) {
  ProbeTurns turns;
  Schedule schedule(1, 1);
  schedule.probes.pace(kBase, turns);
  schedule.probes.add(ev_at(0), 0);
  for (unsigned i = 0; i < 20; ++i)
    schedule.probes.note_round_trip(400 * kBase);
  EXPECT_GT(turns.round_trip(), 390 * kBase);
  for (unsigned i = 0; i < 450; ++i)
    schedule.probes.on_sent(ev_at(0), kSecondNs);
  EXPECT_LT(turns.round_trip(), kBase);
}

TEST(ProbeSchedule, AllTogetherGetOnePerQuarterOfABasePeriod) {
  Schedule schedule(2, 50);
  for (unsigned i = 0; i < 100; ++i)
    schedule.probes.add(ev_at(i), 0);
  std::vector<unsigned> probed(100);
  TimeNs now = kBase;
  for (unsigned i = 0; i < 100; ++i) {
    const EvIndex ev = schedule.probes.due(now, kBoth);
    ASSERT_NE(ev, kNoEv);
    ++probed[index_of(ev)];
    schedule.probes.on_sent(ev, now);
    EXPECT_EQ(schedule.probes.due(now + kBase / 4 - 1, kBoth), kNoEv);
    now += kBase / 4;
  }
  EXPECT_GT(std::count_if(probed.begin(), probed.end(), [](unsigned n) { return n > 0; }), 80);
}

TEST(ProbeSchedule, TheEarliestOfThePortsAskedFor) {
  Schedule schedule(2, 2);
  schedule.probes.add(ev_at(1), 500);  // port 2
  schedule.probes.add(ev_at(0), 900);  // port 1
  EXPECT_EQ(schedule.probes.due(kSecondNs, kBoth), ev_at(1));
  EXPECT_EQ(schedule.probes.due(kSecondNs, kFirst), ev_at(0));
  schedule.probes.remove(ev_at(1));
  EXPECT_EQ(schedule.probes.due(kSecondNs, kFirst), ev_at(0));
}

TEST(ProbeSchedule, AnAnswerBringsTheNextOneForward) {
  Schedule schedule(1, 1);
  schedule.probes.add(ev_at(0), 0);
  for (unsigned i = 1; i < 6; ++i)
    schedule.probes.on_sent(ev_at(0), kSecondNs * i);
  const TimeNs answered = 5 * kSecondNs + 10;
  schedule.probes.ask_again_soon(ev_at(0), answered);
  EXPECT_EQ(schedule.probes.next_time(kFirst), answered + kBase);
}

TEST(ProbeSchedule, ARestartMakesThePlaneDueAtOnceWithShortPeriods) {
  Schedule schedule(2, 2);
  for (unsigned i = 0; i < 4; ++i) {
    schedule.probes.add(ev_at(i), 0);
    for (unsigned sent = 0; sent < 5; ++sent)
      schedule.probes.on_sent(ev_at(i), 0);
  }
  schedule.probes.restart(port_at(1), 7'000);
  EXPECT_EQ(schedule.probes.next_time(kFirst), 7'000);
  EXPECT_GT(schedule.probes.next_time(PortMask(0b10)), 7'000);
  const EvIndex ev = schedule.probes.due(7'000, kFirst);
  schedule.probes.on_sent(ev, 7'000);
  schedule.probes.remove(index_of(ev) == 0 ? ev_at(2) : ev_at(0));
  EXPECT_EQ(schedule.probes.next_time(kFirst), 7'000 + 2 * kBase);
}

}  // namespace
}  // namespace mrc::core
