// How PathSet judges paths: losses, probes, the floor, denial, ports.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <set>
#include <vector>

#include "core/path_set.h"
#include "unit/core/path_set_fixture.h"

namespace mrc::core {
namespace {

using enum EvState;

constexpr DurationNs kBase = 10 * kMicrosecondNs;
constexpr DurationNs kCap = 10 * kMillisecondNs;

PathEvent bad(unsigned ev, std::uint32_t drops = 1) {
  return PathEvent::state_of(ev_at(ev), kAssumedBad, drops);
}
PathEvent good(unsigned ev, std::uint32_t drops = 0) {
  return PathEvent::state_of(ev_at(ev), kGood, drops);
}
PathEvent denied(unsigned ev, std::uint32_t drops = 0) {
  return PathEvent::state_of(ev_at(ev), kDenied, drops);
}
PathEvent floor_at(unsigned ev) { return PathEvent::floor(ev_at(ev)); }
PathEvent plane_lost(unsigned port) { return PathEvent::plane(port_at(port), false); }
PathEvent plane_back(unsigned port) { return PathEvent::plane(port_at(port), true); }

TEST(PathSetLoss, TakesTheEvOutOfUseAtOnce) {
  Paths paths(2, 4);
  paths.set.on_lost(ev_at(2), 5);
  EXPECT_EQ(paths.recorder.take(), PathEvents{bad(2)});
  EXPECT_EQ(paths.set.good_count(), 7U);
  EXPECT_EQ(paths.set.bad_count(), 1U);
  const std::vector<unsigned> chosen = paths.choose_many(100);
  EXPECT_EQ(std::count(chosen.begin(), chosen.end(), 2U), 0);
}

TEST(PathSetLoss, WhatAllPathsLoseTakesNoneOutOfUse) {
  Paths paths(2, 4);
  paths.lose_here_and_there();
  EXPECT_FALSE(paths.set.on_lost(ev_at(5), 10)) << "excused";
  EXPECT_EQ(paths.set.state(ev_at(5)), kGood);
  EXPECT_EQ(paths.set.counters(ev_at(5)).lost, 1U);
  EXPECT_TRUE(paths.set.on_lost(ev_at(5), 11)) << "the second in a row";
  EXPECT_EQ(paths.recorder.take(), PathEvents{bad(5, 2)});
  EXPECT_TRUE(paths.set.on_lost(ev_at(0), 12)) << "of those that are out of use all count";
}

TEST(PathSetLoss, CountsDropsSinceTheLastEvent) {
  Paths paths(1, 4);
  for (unsigned i = 0; i < 3; ++i)
    paths.set.on_lost(ev_at(2), i);
  EXPECT_EQ(paths.recorder.take(), PathEvents{bad(2)});
  EXPECT_EQ(paths.set.counters(ev_at(2)).lost, 3U);
  paths.probe_and_answer(ev_at(2), 100);
  paths.probe_and_answer(ev_at(2), 200);
  EXPECT_EQ(paths.recorder.take(), PathEvents{good(2, 2)});
  paths.set.on_lost(ev_at(2), 300);
  EXPECT_EQ(paths.recorder.take(), PathEvents{bad(2, 1)});
}

TEST(PathSetLoss, AlwaysSkipMakesAnEvBadWithoutADrop) {
  Paths paths(1, 4);
  paths.set.on_always_skip(ev_at(1), 0);
  EXPECT_EQ(paths.recorder.take(), PathEvents{bad(1, 0)});
  EXPECT_EQ(paths.set.counters(ev_at(1)).lost, 0U);
}

TEST(PathSetLoss, ASkippedEvCanGoBadToo) {
  Paths paths(1, 4);
  paths.set.on_marked(ev_at(1));
  paths.set.on_lost(ev_at(1), 0);
  EXPECT_EQ(paths.set.state(ev_at(1)), kAssumedBad);
}

TEST(PathSetSpurious, TakesTheBlameBack) {
  Paths paths(1, 4);
  paths.set.on_lost(ev_at(1), 0);
  paths.set.on_spurious_loss(ev_at(1), 10);
  EXPECT_EQ(paths.recorder.take(), (PathEvents{bad(1), good(1)}));
  EXPECT_EQ(paths.set.bad_count(), 0U);
  EXPECT_EQ(paths.set.next_probe_time(), kNever);
}

TEST(PathSetSpurious, DoesNotExcuseAnotherLoss) {
  Paths paths(1, 4);
  paths.set.on_lost(ev_at(1), 0);
  paths.set.on_lost(ev_at(1), 1);
  paths.set.on_spurious_loss(ev_at(1), 2);
  EXPECT_EQ(paths.set.state(ev_at(1)), kAssumedBad);
  paths.set.on_spurious_loss(ev_at(1), 3);
  EXPECT_EQ(paths.set.state(ev_at(1)), kGood);
}

TEST(PathSetSpurious, DoesNotExcuseAnUnansweredProbe) {
  Paths paths(1, 4);
  paths.set.on_lost(ev_at(1), 0);
  paths.set.on_probe_sent(ev_at(1), kBase);
  paths.set.on_probe_sent(ev_at(1), 3 * kBase);
  paths.set.on_spurious_loss(ev_at(1), 3 * kBase);
  EXPECT_EQ(paths.set.state(ev_at(1)), kAssumedBad);
}

TEST(PathSetSpurious, DoesNotExcuseAlwaysSkip) {
  Paths paths(1, 6);
  paths.set.on_always_skip(ev_at(1), 0);
  paths.set.on_spurious_loss(ev_at(1), 1);
  EXPECT_EQ(paths.set.state(ev_at(1)), kAssumedBad);
  paths.set.on_lost(ev_at(2), 0);
  paths.set.on_always_skip(ev_at(2), 0);
  paths.set.on_spurious_loss(ev_at(2), 1);
  EXPECT_EQ(paths.set.state(ev_at(2)), kAssumedBad);
}

TEST(PathSetSpurious, MeansNothingForAnEvInUse) {
  Paths paths(1, 4);
  paths.set.on_marked(ev_at(1));
  paths.set.on_spurious_loss(ev_at(1), 1);
  EXPECT_EQ(paths.set.state(ev_at(1)), kSkip);
  EXPECT_TRUE(paths.recorder.take().empty());
}

TEST(PathSetSpurious, DoesNotExcuseHundredsOfLosses) {
  Paths paths(1, 4);
  for (unsigned i = 0; i < 300; ++i)
    paths.set.on_lost(ev_at(1), i);
  for (unsigned i = 0; i < 299; ++i)
    paths.set.on_spurious_loss(ev_at(1), 300 + i);
  EXPECT_EQ(paths.set.state(ev_at(1)), kAssumedBad);
}

TEST(PathSetProbes, AreDueAfterDoublingPeriodsUpToTheCap) {
  Paths paths(1, 4, {.probe_base_ns = kBase, .probe_cap_ns = 55 * kMicrosecondNs});
  TimeNs now = 1000;
  paths.set.on_lost(ev_at(1), now);
  for (const DurationNs period_us : {10, 20, 40, 55, 55, 55}) {
    const TimeNs due = now + period_us * kMicrosecondNs;
    EXPECT_EQ(paths.set.next_probe_time(), due);
    EXPECT_EQ(paths.set.due_probe(due - 1, kAllPorts), kNoEv);
    EXPECT_EQ(paths.set.due_probe(due, kAllPorts), ev_at(1));
    now = due;
    paths.set.on_probe_sent(ev_at(1), now);
  }
}

TEST(PathSetProbes, NeverStopOnADeadPlane) {
  Paths paths(2, 4, {.min_active = 1});
  for (const unsigned ev : {0U, 2U, 4U, 6U})
    paths.set.on_lost(ev_at(ev), 0);
  unsigned probes = 0;
  TimeNs now = 0;
  while (now < kSecondNs) {
    ASSERT_NE(paths.set.next_probe_time(), kNever);
    now = std::max(now, paths.set.next_probe_time());
    const EvIndex ev = paths.set.due_probe(now, kAllPorts);
    ASSERT_NE(ev, kNoEv);
    paths.set.on_probe_sent(ev, now);
    ++probes;
  }
  EXPECT_GE(probes, 4U * 100) << "about one per EV and cap period";
  EXPECT_LE(probes, 4U * 120);
}

TEST(PathSetProbes, TwoAnswersInARowReviveAnEv) {
  Paths paths(1, 4);
  paths.set.on_lost(ev_at(1), 0);
  paths.probe_and_answer(ev_at(1), kBase);
  EXPECT_EQ(paths.set.state(ev_at(1)), kAssumedBad);
  paths.probe_and_answer(ev_at(1), 2 * kBase);
  EXPECT_EQ(paths.recorder.take(), (PathEvents{bad(1), good(1)}));
  EXPECT_EQ(paths.set.state(ev_at(1)), kGood);
  EXPECT_EQ(paths.set.next_probe_time(), kNever);
  const std::vector<unsigned> chosen = paths.choose_many(8);
  EXPECT_NE(std::count(chosen.begin(), chosen.end(), 1U), 0);
}

// The peer does not hear us, and one EV that is not in use answers: two answers in a row would need
// the peer's answers to find their one way to us twice in a row.
TEST(PathSetDoubt, IsNotEndedByAnAnswerOfABadEv) {
  Paths paths(2, 4);
  paths.set.on_lost(ev_at(1), 0);
  for (unsigned question = 0; question < 7; ++question)
    paths.set.on_asked_again();
  paths.probe_and_answer(ev_at(1), kBase);
  EXPECT_EQ(paths.set.state(ev_at(1)), kAssumedBad);
  paths.set.on_asked_again();
  EXPECT_TRUE(paths.set.reverse().answers_in_doubt());
  paths.set.on_probe_sent(ev_at(1), 2 * kBase);
  paths.set.on_probe_sent(ev_at(1), 4 * kBase);
  paths.set.on_probe_answered(ev_at(1), false, 5 * kBase);
  EXPECT_EQ(paths.set.state(ev_at(1)), kGood) << "one answer is enough in doubt";
  EXPECT_FALSE(paths.set.reverse().answers_in_doubt()) << "now one in use has shown life";
}

TEST(PathSetDoubt, IsEndedByAnAnswerOfAnEvInUse) {
  Paths paths(2, 4);
  for (unsigned question = 0; question < 8; ++question)
    paths.set.on_asked_again();
  EXPECT_TRUE(paths.set.reverse().answers_in_doubt());
  paths.set.on_delivered(ev_at(3));
  EXPECT_FALSE(paths.set.reverse().answers_in_doubt());
}

TEST(PathSetProbes, TheSecondFollowsSoonAfterTheFirstAnswer) {
  Paths paths(1, 4, {.probe_base_ns = kBase, .probe_cap_ns = kCap});
  paths.set.on_lost(ev_at(1), 0);
  TimeNs now = 0;
  for (unsigned i = 0; i < 8; ++i) {
    now = paths.set.next_probe_time();
    paths.set.on_probe_sent(ev_at(1), now);
  }
  paths.set.on_probe_answered(ev_at(1), false, now + 5);
  EXPECT_EQ(paths.set.next_probe_time(), now + 5 + kBase);
}

TEST(PathSetProbes, AnUnansweredProbeBreaksTheRow) {
  Paths paths(1, 4);
  paths.set.on_lost(ev_at(1), 0);
  paths.probe_and_answer(ev_at(1), kBase);
  paths.set.on_probe_sent(ev_at(1), 2 * kBase);
  paths.set.on_probe_sent(ev_at(1), 4 * kBase);
  paths.set.on_probe_answered(ev_at(1), false, 5 * kBase);
  EXPECT_EQ(paths.set.state(ev_at(1)), kAssumedBad);
  paths.probe_and_answer(ev_at(1), 6 * kBase);
  EXPECT_EQ(paths.set.state(ev_at(1)), kGood);
}

TEST(PathSetProbes, AlwaysSkipBreaksTheRow) {
  Paths paths(1, 4);
  paths.set.on_lost(ev_at(1), 0);
  paths.probe_and_answer(ev_at(1), kBase);
  paths.set.on_always_skip(ev_at(1), 2 * kBase);
  paths.probe_and_answer(ev_at(1), 3 * kBase);
  EXPECT_EQ(paths.set.state(ev_at(1)), kAssumedBad);
}

TEST(PathSetProbes, ADuplicateOrUnaskedAnswerDoesNotCount) {
  Paths paths(1, 4);
  paths.set.on_lost(ev_at(1), 0);
  for (unsigned i = 0; i < 5; ++i)
    paths.set.on_probe_answered(ev_at(1), false, i);
  EXPECT_EQ(paths.set.state(ev_at(1)), kAssumedBad);
  paths.set.on_probe_sent(ev_at(1), kBase);
  for (unsigned i = 0; i < 5; ++i)
    paths.set.on_probe_answered(ev_at(1), false, kBase + i);
  EXPECT_EQ(paths.set.state(ev_at(1)), kAssumedBad);
}

TEST(PathSetProbes, AMarkedLastAnswerRevivesToSkip) {
  Paths paths(1, 8);
  paths.set.on_lost(ev_at(1), 0);
  paths.probe_and_answer(ev_at(1), kBase);
  paths.probe_and_answer(ev_at(1), 2 * kBase, true);
  paths.set.on_lost(ev_at(2), 0);
  paths.probe_and_answer(ev_at(2), kBase, true);
  paths.probe_and_answer(ev_at(2), 2 * kBase);
  paths.expect_states({kGood, kSkip, kGood});
  EXPECT_EQ(paths.recorder.take(), (PathEvents{bad(1), good(1), bad(2), good(2)}));
}

TEST(PathSetProbes, AnAnswerOnAGoodEvOnlyTellsOfMarks) {
  Paths paths(1, 4);
  paths.set.on_probe_sent(ev_at(0), 0);
  paths.set.on_probe_answered(ev_at(0), true, 5);
  paths.set.on_probe_sent(ev_at(1), 0);
  paths.set.on_probe_answered(ev_at(1), false, 5);
  paths.expect_states({kSkip, kGood, kGood, kGood});
  EXPECT_EQ(paths.set.counters(ev_at(0)).marked, 1U);
  EXPECT_EQ(paths.set.next_probe_time(), kNever);
}

TEST(PathSetProbes, AllBadEvsTogetherGetOneProbePerQuarterOfTheBasePeriod) {
  Paths paths(4, 64, {.min_active = 1, .probe_base_ns = kBase, .probe_cap_ns = kCap});
  for (unsigned i = 0; i < 255; ++i)
    paths.set.on_lost(ev_at(i), 0);
  std::set<EvIndex> probed;
  TimeNs previous = -kCap;
  TimeNs now = 0;
  for (unsigned i = 0; i < 255; ++i) {
    now = std::max(now, paths.set.next_probe_time());
    EXPECT_GE(now - previous, kBase / 4);
    const EvIndex ev = paths.set.due_probe(now, kAllPorts);
    ASSERT_NE(ev, kNoEv);
    EXPECT_TRUE(probed.insert(ev).second || now >= 3 * kBase);
    paths.set.on_probe_sent(ev, now);
    EXPECT_EQ(paths.set.due_probe(now + kBase / 4 - 1, kAllPorts), kNoEv);
    previous = now;
  }
}

TEST(PathSetProbes, NoBadEvIsForgottenUnderTheSharedBudget) {
  Paths paths(2, 100, {.min_active = 1, .probe_base_ns = kBase, .probe_cap_ns = 100 * kBase});
  for (unsigned i = 0; i < 199; ++i)
    paths.set.on_lost(ev_at(i), i);
  std::vector<unsigned> probes(200);
  TimeNs now = 0;
  while (now < 2000 * kBase) {
    now = std::max(now, paths.set.next_probe_time());
    const EvIndex ev = paths.set.due_probe(now, kAllPorts);
    ++probes[index_of(ev)];
    paths.set.on_probe_sent(ev, now);
  }
  const auto [least, most] = std::minmax_element(probes.begin(), probes.end() - 1);
  EXPECT_GE(*least, 18U);
  EXPECT_LE(*most - *least, 2U);
}

TEST(PathSetProbes, GoOnlyToFreePorts) {
  Paths paths(2, 4, {.min_active = 1});
  paths.set.on_lost(ev_at(0), 0);
  paths.set.on_lost(ev_at(1), 1);
  EXPECT_EQ(paths.set.due_probe(kBase + 1, PortMask(0b11)), ev_at(0));
  EXPECT_EQ(paths.set.due_probe(kBase + 1, PortMask(0b10)), ev_at(1));
  EXPECT_EQ(paths.set.due_probe(kBase + 1, PortMask(0b00)), kNoEv);
}

TEST(PathSetProbes, DoNotGoToUnusablePorts) {
  Paths paths(2, 4, {.min_active = 1});
  paths.set.on_lost(ev_at(0), 0);
  paths.set.set_usable_ports(PortMask(0b10));
  EXPECT_EQ(paths.set.next_probe_time(), kNever);
  EXPECT_EQ(paths.set.due_probe(kSecondNs, kAllPorts), kNoEv);
}

TEST(PathSetProbes, StartAfreshWhenAPortComesBack) {
  Paths paths(2, 4, {.min_active = 1, .probe_base_ns = kBase, .probe_cap_ns = kCap});
  paths.set.on_lost(ev_at(0), 0);
  for (unsigned i = 0; i < 10; ++i) {
    paths.set.on_probe_sent(ev_at(0), paths.set.next_probe_time());
  }
  paths.set.set_usable_ports(PortMask(0b10));
  paths.set.set_usable_ports(PortMask(0b11));
  const TimeNs now = paths.set.next_probe_time();
  EXPECT_LE(now, 5 * kCap);
  EXPECT_EQ(paths.set.due_probe(now, kAllPorts), ev_at(0));
  paths.set.on_probe_sent(ev_at(0), now);
  EXPECT_EQ(paths.set.next_probe_time(), now + 2 * kBase);
}

TEST(PathSetProbes, FollowANewBasePeriod) {
  Paths paths(1, 4, {.probe_base_ns = kBase, .probe_cap_ns = kCap});
  ProbeTurns turns;
  paths.set.pace_probes(3 * kBase, turns);
  paths.set.on_lost(ev_at(0), 0);
  EXPECT_EQ(paths.set.next_probe_time(), 3 * kBase);
}

TEST(PathSetFloor, IsAQuarterOfTheProfileUnlessSet) {
  for (const auto& [min_active, expected] : std::vector<std::pair<std::uint16_t, unsigned>>{
           {0, 5}, {1, 1}, {12, 12}, {20, 20}, {500, 20}}) {
    Paths paths(2, 10, {.min_active = min_active});
    for (unsigned i = 0; i < 20; ++i)
      paths.set.on_lost(ev_at(i), i);
    EXPECT_EQ(paths.set.good_count(), expected);
  }
  Paths tiny(1, 2);
  tiny.set.on_lost(ev_at(0), 0);
  tiny.set.on_lost(ev_at(1), 0);
  EXPECT_EQ(tiny.set.good_count(), 1U) << "a quarter of 2 is at least 1";
}

TEST(PathSetFloor, PutsTheLeastRecentlyBadEvOfThatPlaneBackInUse) {
  Paths paths(2, 4, {.min_active = 5});
  for (const unsigned ev : {1U, 4U, 2U})
    paths.set.on_lost(ev_at(ev), 0);
  paths.recorder.take();
  paths.set.on_lost(ev_at(6), 1);
  EXPECT_EQ(paths.recorder.take(), (PathEvents{bad(6), good(4), floor_at(4)}));
  paths.expect_states({kGood, kAssumedBad, kAssumedBad, kGood, kSkip, kGood, kAssumedBad, kGood});
  paths.set.on_lost(ev_at(0), 2);
  EXPECT_EQ(paths.recorder.take(), (PathEvents{bad(0), good(2), floor_at(2)}));
  EXPECT_EQ(paths.set.good_count(), 5U);
}

TEST(PathSetFloor, KeepsTheEvThatLastShowedLifeBeforeOneWhoseProbesStayUnanswered) {
  Paths paths(1, 4, {.min_active = 1, .probe_base_ns = kBase});
  for (const unsigned ev : {0U, 1U, 2U})
    paths.set.on_lost(ev_at(ev), 0);
  paths.set.on_delivered(ev_at(3));
  paths.recorder.take();
  paths.set.on_probe_sent(ev_at(0), kBase);
  paths.set.on_lost(ev_at(3), kBase);
  EXPECT_EQ(paths.recorder.take(), PathEvents{floor_at(3)});
  // After a long silence it is no better than any other.
  for (unsigned i = 0; i < 64 && paths.set.state(ev_at(3)) == kGood; ++i)
    paths.set.on_lost(ev_at(3), kBase);
  EXPECT_EQ(paths.recorder.take().back(), floor_at(0));
}

TEST(PathSetFloor, BringsAnEvBackWithItsFirstAnsweredProbe) {
  Paths paths(1, 4, {.min_active = 2, .probe_base_ns = kBase});
  paths.set.on_lost(ev_at(0), 0);
  paths.set.on_lost(ev_at(1), 0);
  paths.set.on_probe_sent(ev_at(1), kBase);
  paths.set.on_probe_answered(ev_at(1), false, 2 * kBase);
  paths.expect_states({kAssumedBad, kGood, kGood, kGood});
  paths.set.on_probe_sent(ev_at(0), 3 * kBase);
  paths.set.on_probe_answered(ev_at(0), false, 4 * kBase);
  paths.expect_states({kAssumedBad, kGood, kGood, kGood});
}

TEST(PathSetFloor, KeepsTheEvItselfWhenItsPlaneHasNoOtherBadOne) {
  Paths paths(2, 2, {.min_active = 3});
  paths.set.on_lost(ev_at(0), 0);
  paths.recorder.take();
  paths.set.on_marked(ev_at(1));
  paths.set.on_lost(ev_at(1), 1);
  EXPECT_EQ(paths.recorder.take(), PathEvents{floor_at(1)});
  EXPECT_EQ(paths.set.state(ev_at(1)), kGood);
  EXPECT_EQ(paths.set.counters(ev_at(1)).lost, 1U);
  EXPECT_EQ(paths.set.next_probe_time(), kBase) << "only EV 0 is probed";
}

TEST(PathSetFloor, AppliesToAlwaysSkip) {
  Paths paths(1, 2, {.min_active = 2});
  paths.set.on_always_skip(ev_at(1), 1);
  EXPECT_EQ(paths.recorder.take(), PathEvents{floor_at(1)});
}

TEST(PathSetFloor, TheLastEvOnUsablePortsStaysInUse) {
  Paths paths(2, 4, {.min_active = 1});
  paths.set.set_usable_ports(PortMask(0b01));
  paths.recorder.take();
  for (const unsigned ev : {0U, 2U, 4U})
    paths.set.on_lost(ev_at(ev), 0);
  EXPECT_EQ(paths.recorder.take(), (PathEvents{bad(0), bad(2), bad(4)}));
  paths.set.on_lost(ev_at(6), 0);
  EXPECT_EQ(paths.recorder.take(), (PathEvents{bad(6), good(0), floor_at(0)}));
  EXPECT_EQ(paths.choose(), ev_at(0));
}

TEST(PathSetFloor, ABadEvIsTriedAgainWhenTheOtherPortsGoDown) {
  Paths paths(2, 2, {.min_active = 1});
  paths.set.on_lost(ev_at(2), 0);
  paths.set.on_lost(ev_at(0), 1);
  EXPECT_EQ(paths.recorder.take(), (PathEvents{bad(2), bad(0), plane_lost(1)}));
  paths.set.set_usable_ports(PortMask(0b01));
  EXPECT_EQ(paths.recorder.take(),
            (PathEvents{good(2), floor_at(2), plane_back(1), plane_lost(2)}));
  EXPECT_EQ(paths.choose(), ev_at(2));
}

TEST(PathSetFloor, OneLivingPathAmongManyIsAlwaysInUse) {
  Paths paths(4, 32);
  const EvIndex living = ev_at(77);
  unsigned delivered = 0;
  for (TimeNs now = 0; now < 20'000; ++now) {
    const EvIndex ev = paths.choose();
    ASSERT_NE(ev, kNoEv);
    if (ev == living) {
      ++delivered;
      paths.set.on_delivered(ev);
    } else {
      paths.set.on_lost(ev, now);
    }
    ASSERT_GE(paths.set.good_count(), 32U);
  }
  EXPECT_GE(delivered, 20'000U / 40);
}

TEST(PathSetLoss, PathsThatFailAndReturnDoNotStarveTheGoodOnes) {
  Paths paths(1, 32, {.min_active = 1});
  const EvIndex living = ev_at(9);
  unsigned delivered = 0;
  for (TimeNs now = 0; now < 3200; ++now) {
    const EvIndex ev = paths.choose();
    if (ev == living) {
      ++delivered;
      continue;
    }
    paths.set.on_lost(ev, now);
    paths.probe_and_answer(ev, now);
    paths.probe_and_answer(ev, now);
  }
  EXPECT_GE(delivered, 95U);
}

TEST(PathSetDenied, IsNeitherChosenNorProbed) {
  Paths paths(1, 4);
  paths.set.set_denied(ev_at(1), true, 0);
  paths.set.on_lost(ev_at(2), 0);
  paths.set.set_denied(ev_at(2), true, 1);
  EXPECT_EQ(paths.recorder.take(), (PathEvents{denied(1), bad(2), denied(2)}));
  const std::vector<unsigned> chosen = paths.choose_many(50);
  EXPECT_EQ(std::set<unsigned>(chosen.begin(), chosen.end()), (std::set<unsigned>{0, 3}));
  EXPECT_EQ(paths.set.next_probe_time(), kNever);
  EXPECT_EQ(paths.set.bad_count(), 0U);
  EXPECT_EQ(paths.set.good_count(), 2U);
}

TEST(PathSetDenied, IgnoresFeedbackUntilAllowedAgain) {
  Paths paths(1, 4);
  paths.set.set_denied(ev_at(1), true, 0);
  paths.set.set_denied(ev_at(1), true, 0);
  paths.recorder.take();
  paths.set.on_lost(ev_at(1), 1);
  paths.set.on_always_skip(ev_at(1), 1);
  paths.probe_and_answer(ev_at(1), 1);
  paths.probe_and_answer(ev_at(1), 2, true);
  paths.set.on_spurious_loss(ev_at(1), 3);
  paths.set.on_delivered(ev_at(1));
  EXPECT_EQ(paths.set.state(ev_at(1)), kDenied);
  EXPECT_TRUE(paths.recorder.take().empty());
  paths.set.set_denied(ev_at(1), false, 4);
  EXPECT_EQ(paths.recorder.take(), PathEvents{good(1, 1)});
  EXPECT_EQ(paths.set.state(ev_at(1)), kGood);
}

TEST(PathSetDenied, AllowingAnEvThatIsNotDeniedChangesNothing) {
  Paths paths(1, 4);
  paths.set.on_lost(ev_at(1), 0);
  paths.recorder.take();
  paths.set.set_denied(ev_at(1), false, 1);
  EXPECT_EQ(paths.set.state(ev_at(1)), kAssumedBad);
  EXPECT_TRUE(paths.recorder.take().empty());
}

TEST(PathSetDenied, TheProfileCanDenyFromTheStart) {
  EvProfile profile = striped_profile(2, 3);
  for (const unsigned ev : {0U, 1U, 3U, 5U})
    profile.set_denied(ev_at(ev), true);
  Paths paths(profile);
  EXPECT_EQ(paths.set.good_count(), 2U);
  EXPECT_EQ(paths.set.planes_in_use(), PortMask(0b01));
  const std::vector<unsigned> chosen = paths.choose_many(10);
  EXPECT_EQ(std::set<unsigned>(chosen.begin(), chosen.end()), (std::set<unsigned>{2, 4}));
  paths.set.set_denied(ev_at(3), false, 0);
  EXPECT_EQ(paths.recorder.take(), (PathEvents{good(3), plane_back(2)}));
}

TEST(PathSetDenied, EverythingDeniedMeansNoPath) {
  Paths paths(2, 2);
  for (unsigned i = 0; i < 4; ++i)
    paths.set.set_denied(ev_at(i), true, 0);
  EXPECT_EQ(paths.choose(), kNoEv);
  EXPECT_EQ(paths.set.choose(kAllPorts, ev_at(1)), kNoEv);
  EXPECT_EQ(paths.set.good_count(), 0U);
  EXPECT_TRUE(paths.set.planes_in_use().empty());
}

TEST(PathSetDenied, DenyingTheLastGoodEvBringsABadOneBack) {
  Paths paths(1, 3, {.min_active = 1});
  paths.set.on_lost(ev_at(2), 0);
  paths.set.on_lost(ev_at(0), 1);
  paths.recorder.take();
  paths.set.set_denied(ev_at(1), true, 2);
  EXPECT_EQ(paths.recorder.take(), (PathEvents{denied(1), good(2), floor_at(2)}));
  EXPECT_EQ(paths.choose(), ev_at(2));
}

TEST(PathSetPorts, APlaneIsLostWithItsLastEvAndBackWithItsFirst) {
  Paths paths(2, 2, {.min_active = 1});
  paths.set.on_lost(ev_at(1), 0);
  paths.set.on_lost(ev_at(3), 0);
  EXPECT_EQ(paths.recorder.take(), (PathEvents{bad(1), bad(3), plane_lost(2)}));
  EXPECT_EQ(paths.set.planes_in_use(), PortMask(0b01));
  EXPECT_EQ(paths.choose_on(2), kNoEv);
  paths.probe_and_answer(ev_at(3), kBase);
  paths.probe_and_answer(ev_at(3), 2 * kBase);
  EXPECT_EQ(paths.recorder.take(), (PathEvents{good(3), plane_back(2)}));
  EXPECT_EQ(paths.choose_on(2), ev_at(3));
}

TEST(PathSetPorts, AnUnusablePortIsNotChosen) {
  Paths paths(3, 2);
  paths.set.set_usable_ports(PortMask(0b101));
  EXPECT_EQ(paths.recorder.take(), PathEvents{plane_lost(2)});
  for (unsigned i = 0; i < 20; ++i)
    EXPECT_NE(paths.profile.port(paths.choose()), port_at(2));
  EXPECT_EQ(paths.choose_on(2), kNoEv);
  paths.set.set_usable_ports(PortMask(0b101));
  EXPECT_TRUE(paths.recorder.take().empty());
  paths.set.set_usable_ports(PortMask(0xFFFF'FFFF));
  EXPECT_EQ(paths.recorder.take(), PathEvents{plane_back(2)});
  EXPECT_EQ(paths.set.planes_in_use(), PortMask(0b111));
}

TEST(PathSetPorts, NoUsablePortMeansNoPath) {
  Paths paths(2, 2);
  paths.set.set_usable_ports(PortMask());
  EXPECT_EQ(paths.choose(), kNoEv);
  EXPECT_EQ(paths.recorder.take(), (PathEvents{plane_lost(1), plane_lost(2)}));
}

TEST(PathSetPorts, StatesOutliveAPortThatGoesAway) {
  Paths paths(2, 3);
  paths.set.on_lost(ev_at(1), 0);
  paths.set.on_marked(ev_at(3));
  paths.set.set_usable_ports(PortMask(0b01));
  paths.set.set_usable_ports(PortMask(0b11));
  paths.expect_states({kGood, kAssumedBad, kGood, kSkip, kGood, kGood});
}

TEST(PathSetProbes, ThePeriodStaysLongHoweverShortTheBaseIs) {
  const EvProfile profile = striped_profile(1, 8);
  PathRecorder recorder;
  PathSet paths(profile, {.probe_base_ns = 128}, 7, recorder);
  paths.on_lost(ev_at(3), 0);
  TimeNs now = 0;
  DurationNs period = 0;
  for (int i = 0; i < 40; ++i) {
    const TimeNs due = paths.next_probe_time();
    EXPECT_GE(due - now, period) << "probe " << i;
    period = due - now;
    now = due;
    paths.on_probe_sent(ev_at(3), now);
  }
}

}  // namespace
}  // namespace mrc::core
