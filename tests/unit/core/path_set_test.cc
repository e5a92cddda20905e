// How PathSet chooses: rotation, planes, SKIP, avoiding, backups, control packets.
#include "core/path_set.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <iostream>
#include <set>
#include <vector>

#include "unit/core/path_set_fixture.h"

namespace mrc::core {
namespace {

using enum EvState;

// The difference between the most and the least used EV among those that are GOOD.
std::uint32_t spread_of_use(const PathSet& set) {
  std::uint32_t least = 0xFFFF'FFFF;
  std::uint32_t most = 0;
  for (unsigned i = 0; i < set.size(); ++i) {
    if (set.state(ev_at(i)) != kGood) continue;
    least = std::min(least, set.counters(ev_at(i)).sent);
    most = std::max(most, set.counters(ev_at(i)).sent);
  }
  return most - least;
}

std::vector<unsigned> packets_by_port(const PathSet& set) {
  std::vector<unsigned> packets(kMaxPorts + 1);
  for (unsigned i = 0; i < set.size(); ++i) {
    packets[static_cast<unsigned>(set.profile().port(ev_at(i)))] += set.counters(ev_at(i)).sent;
  }
  return packets;
}

TEST(PathSetRotation, UsesEveryEvEquallyWithinOneAtEveryMoment) {
  for (const unsigned planes : {1U, 3U, 16U}) {
    Paths paths(planes, 20);
    for (unsigned i = 0; i < planes * 20 * 50; ++i) {
      ASSERT_NE(paths.choose(), kNoEv);
      ASSERT_LE(spread_of_use(paths.set), 1U) << planes << " planes, packet " << i;
    }
  }
}

TEST(PathSetRotation, UsesEveryEvOnceInEachRotation) {
  Paths paths(1, 100);
  for (unsigned rotation = 0; rotation < 60; ++rotation) {
    const std::vector<unsigned> chosen = paths.choose_many(100);
    EXPECT_EQ(std::set<unsigned>(chosen.begin(), chosen.end()).size(), 100U);
  }
}

TEST(PathSetRotation, StaysFairWhenAnEvLeavesInTheMiddleOfARotation) {
  for (unsigned leaves_after = 0; leaves_after < 30; ++leaves_after) {
    Paths paths(1, 20, {.min_active = 1}, leaves_after);
    paths.choose_many(5 * 20 + leaves_after);
    paths.set.on_lost(ev_at(7), 0);
    for (unsigned i = 0; i < 19 * 4; ++i) {
      ASSERT_NE(paths.choose(), ev_at(7));
      ASSERT_LE(spread_of_use(paths.set), 1U) << leaves_after;
    }
  }
}

TEST(PathSetRotation, KeepsItsOrderForAWhileAndThenRedrawsIt) {
  Paths paths(1, 64);
  std::set<std::vector<unsigned>> orders;
  unsigned repeats = 0;
  std::vector<unsigned> previous;
  for (unsigned rotation = 0; rotation < 100; ++rotation) {
    const std::vector<unsigned> order = paths.choose_many(64);
    if (order == previous) ++repeats;
    orders.insert(order);
    previous = order;
  }
  EXPECT_GT(repeats, 80U);
  EXPECT_GE(orders.size(), 5U);
}

TEST(PathSetRotation, DiffersBetweenSeedsAndRepeatsWithTheSameSeed) {
  const std::vector<unsigned> first = Paths(4, 32, {}, 1).choose_many(128);
  EXPECT_EQ(first, Paths(4, 32, {}, 1).choose_many(128));
  EXPECT_NE(first, Paths(4, 32, {}, 2).choose_many(128));
}

TEST(PathSetRotation, StartsOnDifferentPlanesForDifferentSeeds) {
  std::set<PortId> first_ports;
  for (std::uint64_t seed = 0; seed < 64; ++seed) {
    Paths paths(8, 1, {}, seed);
    first_ports.insert(paths.profile.port(paths.choose()));
  }
  EXPECT_EQ(first_ports.size(), 8U);
}

TEST(PathSetPlanes, AreLoadedEquallyWithinOnePacketWhateverTheirEvCount) {
  std::vector<EvEntry> entries;
  for (unsigned port = 1; port <= 5; ++port) {
    for (unsigned i = 0; i < port * port; ++i) {
      entries.push_back({.entropy = port * 1000 + i, .port = port_at(port)});
    }
  }
  Paths paths(EvProfile::create(entries).value());
  for (unsigned sent = 1; sent <= 1000; ++sent) {
    paths.choose();
    const std::vector<unsigned> packets = packets_by_port(paths.set);
    const auto [least, most] = std::minmax_element(packets.begin() + 1, packets.begin() + 6);
    ASSERT_LE(*most - *least, 1U) << sent;
  }
}

TEST(PathSetPlanes, OnlyFreePortsAreUsed) {
  Paths paths(4, 8);
  for (unsigned i = 0; i < 50; ++i) {
    const PortId port = paths.profile.port(paths.set.choose(PortMask(0b1010), kNoEv));
    EXPECT_TRUE(port == port_at(2) || port == port_at(4));
  }
  EXPECT_EQ(paths.set.choose(PortMask(), kNoEv), kNoEv);
  EXPECT_EQ(paths.set.choose(PortMask(0xFFF0), kNoEv), kNoEv);
}

TEST(PathSetPlanes, ABusyPortCatchesUpLater) {
  Paths paths(2, 8);
  for (unsigned i = 0; i < 5; ++i)
    paths.choose_on(1);
  for (unsigned i = 0; i < 5; ++i)
    EXPECT_EQ(paths.profile.port(paths.choose()), port_at(2));
  const std::vector<unsigned> packets = packets_by_port(paths.set);
  EXPECT_EQ(packets[1], packets[2]);
}

TEST(PathSetPlanes, CatchingUpIsBounded) {
  Paths paths(2, 8);
  for (unsigned i = 0; i < 1000; ++i)
    paths.choose_on(1);
  unsigned in_a_row = 0;
  while (paths.profile.port(paths.choose()) == port_at(2))
    ++in_a_row;
  EXPECT_GE(in_a_row, 1U);
  EXPECT_LE(in_a_row, 10U);
}

TEST(PathSetPlanes, APlaneThatComesBackHasNothingToCatchUp) {
  Paths paths(2, 8);
  paths.set.set_usable_ports(PortMask(0b01));
  paths.choose_many(5);
  paths.set.set_usable_ports(PortMask(0b11));
  paths.choose_many(10);
  EXPECT_EQ(packets_by_port(paths.set)[2], 5U);
}

TEST(PathSetSkip, AMarkCostsExactlyOneTurn) {
  Paths paths(1, 10);
  paths.choose_many(160);
  paths.set.on_marked(ev_at(3));
  EXPECT_EQ(paths.set.state(ev_at(3)), kSkip);
  const std::vector<unsigned> skipping = paths.choose_many(9);
  EXPECT_EQ(std::count(skipping.begin(), skipping.end(), 3U), 0);
  const std::vector<unsigned> after = paths.choose_many(10);
  EXPECT_EQ(std::count(after.begin(), after.end(), 3U), 1);
  EXPECT_EQ(paths.set.counters(ev_at(3)).marked, 1U);
}

TEST(PathSetSkip, OnePacketRevivesOnlyTheFirstSkipEntryItMeets) {
  Paths paths(1, 6);
  const std::vector<unsigned> order = paths.choose_many(6 * 17);  // into an order that stays
  const std::vector<unsigned> next(order.end() - 6, order.end());
  for (unsigned i = 0; i < 3; ++i)
    paths.set.on_marked(ev_at(next[i]));
  EXPECT_EQ(index_of(paths.choose()), next[3]);
  EXPECT_EQ(paths.set.state(ev_at(next[0])), kGood);
  EXPECT_EQ(paths.set.state(ev_at(next[1])), kSkip);
  EXPECT_EQ(paths.set.state(ev_at(next[2])), kSkip);
  EXPECT_EQ(index_of(paths.choose()), next[4]);
  EXPECT_EQ(paths.set.state(ev_at(next[1])), kSkip) << "not met by this packet";
}

TEST(PathSetSkip, WithoutAnyGoodEvTheOneJustRevivedIsUsed) {
  Paths paths(1, 5);
  for (unsigned i = 0; i < 5; ++i)
    paths.set.on_marked(ev_at(i));
  const EvIndex chosen = paths.choose();
  ASSERT_NE(chosen, kNoEv);
  for (unsigned i = 0; i < 5; ++i) {
    EXPECT_EQ(paths.set.state(ev_at(i)), ev_at(i) == chosen ? kGood : kSkip);
  }
}

TEST(PathSetSkip, TrafficFlowsOverAllEvsWhenEveryPacketIsMarked) {
  Paths paths(2, 8);
  std::set<EvIndex> used;
  for (unsigned i = 0; i < 200; ++i) {
    const EvIndex ev = paths.choose();
    ASSERT_NE(ev, kNoEv);
    used.insert(ev);
    paths.set.on_marked(ev);
  }
  EXPECT_EQ(used.size(), 16U);
}

TEST(PathSetSkip, ALatePathIsPassedOverForAsManyRotationsAsItIsLate) {
  const EvProfile profile = striped_profile(1, 8);
  PathRecorder recorder;
  PathSet paths(profile, {}, 7, recorder);
  paths.on_late(ev_at(3), 3 * 8 + 5);
  EXPECT_EQ(paths.state(ev_at(3)), EvState::kSkip);
  for (unsigned i = 0; i < 3 * 7; ++i)
    EXPECT_NE(paths.choose(kAllPorts, kNoEv), ev_at(3)) << "packet " << i;
  EXPECT_EQ(paths.state(ev_at(3)), EvState::kGood);
}

TEST(PathSetSkip, APathThatIsLateByLessThanARotationIsUsedAgainInItsTurn) {
  const EvProfile profile = striped_profile(1, 8);
  PathRecorder recorder;
  PathSet paths(profile, {}, 7, recorder);
  paths.on_late(ev_at(3), 7);
  EXPECT_EQ(paths.state(ev_at(3)), EvState::kGood);
}

TEST(PathSetSkip, AMarkDoesNotTouchABadOrDeniedEv) {
  Paths paths(1, 4);
  paths.set.on_lost(ev_at(0), 0);
  paths.set.set_denied(ev_at(1), true, 0);
  paths.set.on_marked(ev_at(0));
  paths.set.on_marked(ev_at(1));
  paths.expect_states({kAssumedBad, kDenied, kGood, kGood});
}

TEST(PathSetAvoid, IsNeverReturnedWhileAnotherEvIsUsable) {
  Paths paths(2, 3);
  for (unsigned i = 0; i < 600; ++i) {
    const EvIndex avoid = ev_at(i % 6);
    const PortMask free_ports = PortMask(1 + i % 3);
    EXPECT_NE(paths.set.choose(free_ports, avoid), avoid);
    if (i % 2 == 0) paths.set.on_marked(ev_at(i * 5 % 6));
  }
}

TEST(PathSetAvoid, PrefersASkippedEvToTheAvoidedOne) {
  Paths paths(1, 2);
  paths.set.on_marked(ev_at(1));
  for (unsigned i = 0; i < 4; ++i) {
    EXPECT_EQ(paths.set.choose(kAllPorts, ev_at(0)), ev_at(1));
    paths.set.on_marked(ev_at(1));
  }
}

TEST(PathSetAvoid, TheSkippedEntryBehindItIsStillTheFirstOneMet) {
  Paths paths(1, 6);
  const std::vector<unsigned> order = paths.choose_many(6 * 17);  // into an order that stays
  const std::vector<unsigned> next(order.end() - 6, order.end());
  paths.set.on_marked(ev_at(next[1]));
  paths.set.on_marked(ev_at(next[2]));
  EXPECT_EQ(paths.set.choose(kAllPorts, ev_at(next[0])), ev_at(next[3]));
  EXPECT_EQ(paths.set.state(ev_at(next[1])), kGood);
  EXPECT_EQ(paths.set.state(ev_at(next[2])), kSkip);
}

TEST(PathSetAvoid, TakesAnotherPlaneWhenItIsTheOnlyEvOfItsPlane) {
  Paths paths(2, 1);
  for (unsigned i = 0; i < 10; ++i)
    EXPECT_EQ(paths.set.choose(kAllPorts, ev_at(0)), ev_at(1));
}

TEST(PathSetAvoid, TakesABackupBeforeTheAvoidedEv) {
  Paths paths(1, 3, {.active_evs = 1});
  const EvIndex active = paths.choose();
  const EvIndex other = paths.set.choose(kAllPorts, active);
  EXPECT_NE(other, active);
  EXPECT_NE(other, kNoEv);
  EXPECT_EQ(paths.choose(), other) << "the active set keeps its size";
}

TEST(PathSetAvoid, IsUsedWhenItIsAllThereIs) {
  Paths paths(2, 1);
  EXPECT_EQ(paths.set.choose(PortMask(0b01), ev_at(0)), ev_at(0));
  EXPECT_EQ(paths.set.choose(PortMask(0b10), ev_at(0)), ev_at(1));
  paths.set.on_marked(ev_at(0));
  EXPECT_EQ(paths.set.choose(PortMask(0b01), ev_at(0)), ev_at(0));
  EXPECT_EQ(paths.set.choose(PortMask(), ev_at(0)), kNoEv);
}

std::set<unsigned> used_in(Paths& paths, unsigned packets) {
  const std::vector<unsigned> chosen = paths.choose_many(packets);
  return {chosen.begin(), chosen.end()};
}

TEST(PathSetBackups, OnlyTheActiveShareOfEachPlaneIsUsed) {
  Paths paths(4, 16, {.active_evs = 18});
  const std::set<unsigned> used = used_in(paths, 400);
  EXPECT_EQ(used.size(), 16U) << "18 EVs over 4 planes are 4 each";
  std::vector<unsigned> per_plane(4);
  for (const unsigned ev : used)
    ++per_plane[ev % 4];
  EXPECT_EQ(per_plane, std::vector<unsigned>(4, 4));
}

TEST(PathSetBackups, EveryPlaneHasAtLeastOneActiveEv) {
  Paths paths(8, 4, {.active_evs = 3});
  EXPECT_EQ(used_in(paths, 100).size(), 8U);
}

TEST(PathSetBackups, DifferentSeedsActivateDifferentEvs) {
  Paths first(1, 64, {.active_evs = 16}, 1);
  Paths second(1, 64, {.active_evs = 16}, 2);
  EXPECT_NE(used_in(first, 64), used_in(second, 64));
}

TEST(PathSetBackups, ABadEvIsReplacedFromItsOwnPlane) {
  Paths paths(2, 6, {.min_active = 1, .active_evs = 4});
  const std::set<unsigned> before = used_in(paths, 40);
  const unsigned lost = *before.begin();
  paths.set.on_lost(ev_at(lost), 0);
  const std::set<unsigned> after = used_in(paths, 40);
  EXPECT_EQ(after.size(), 4U);
  EXPECT_EQ(after.count(lost), 0U);
  unsigned joined = 0;
  for (const unsigned ev : after) {
    if (before.count(ev) == 0) {
      ++joined;
      EXPECT_EQ(ev % 2, lost % 2) << "same plane";
    }
  }
  EXPECT_EQ(joined, 1U);
}

// Two EVs, both in use because of the floor, one active: a working backup must not wait for ever.
TEST(PathSetBackups, AnEvThatTheFloorKeepsGivesItsTurnToABackup) {
  Paths paths(1, 2, {.min_active = 2, .active_evs = 1});
  const unsigned silent = *used_in(paths, 8).begin();
  paths.set.on_lost(ev_at(silent), 0);
  EXPECT_EQ(used_in(paths, 8), std::set<unsigned>{1 - silent});
}

TEST(PathSetBackups, WithoutBackupsAPlaneGoesOnWithFewerEvs) {
  Paths paths(2, 3, {.min_active = 1, .active_evs = 6});
  paths.set.on_lost(ev_at(0), 0);
  paths.set.on_lost(ev_at(2), 0);
  EXPECT_EQ(used_in(paths, 40), (std::set<unsigned>{1, 3, 4, 5}));
  const std::vector<unsigned> packets = packets_by_port(paths.set);
  EXPECT_EQ(packets[1], packets[2]) << "the plane still carries its share";
}

TEST(PathSetBackups, ARevivedEvIsActiveOnlyIfThePlaneIsShort) {
  Paths paths(1, 4, {.min_active = 1, .active_evs = 2});
  const std::set<unsigned> first = used_in(paths, 20);
  const EvIndex lost = ev_at(*first.begin());
  paths.set.on_lost(lost, 0);
  const std::set<unsigned> second = used_in(paths, 20);
  paths.probe_and_answer(lost, 100);
  paths.probe_and_answer(lost, 200);
  ASSERT_EQ(paths.set.state(lost), kGood);
  EXPECT_EQ(used_in(paths, 20), second) << "it became a backup";

  for (unsigned i = 0; i < 4; ++i) {
    if (ev_at(i) != lost && paths.set.good_count() > 1) paths.set.on_lost(ev_at(i), 300);
  }
  EXPECT_EQ(used_in(paths, 20), std::set<unsigned>{index_of(lost)});
  unsigned returning = index_of(lost) == 0 ? 1 : 0;
  paths.probe_and_answer(ev_at(returning), 400);
  paths.probe_and_answer(ev_at(returning), 500);
  EXPECT_EQ(used_in(paths, 20), (std::set<unsigned>{index_of(lost), returning}));
}

TEST(PathSetControl, PrefersThePlaneAskedForAndCountsNothing) {
  Paths paths(4, 4);
  for (unsigned i = 0; i < 4; ++i) {
    const EvIndex ev = paths.set.choose_control(kAllPorts, port_at(3));
    EXPECT_EQ(paths.profile.port(ev), port_at(3));
    EXPECT_EQ(paths.set.counters(ev).sent, 0U);
  }
  const EvIndex elsewhere = paths.set.choose_control(PortMask(0b0001), port_at(3));
  EXPECT_EQ(paths.profile.port(elsewhere), port_at(1));
  EXPECT_NE(paths.set.choose_control(kAllPorts, kNoPort), kNoEv);
}

TEST(PathSetControl, ChangesNoSkipState) {
  Paths paths(1, 3);
  for (unsigned i = 0; i < 3; ++i)
    paths.set.on_marked(ev_at(i));
  for (unsigned i = 0; i < 10; ++i) {
    EXPECT_NE(paths.set.choose_control(kAllPorts, port_at(1)), kNoEv);
  }
  paths.expect_states({kSkip, kSkip, kSkip});
}

TEST(PathSetControl, SharesBetweenTheEvThatShowedLifeAndTheOthers) {
  Paths paths(1, 16);
  unsigned confirmed = 0;
  std::set<EvIndex> used;
  for (unsigned i = 0; i < 640; ++i) {
    if (i % 4 == 0) paths.set.on_delivered(ev_at(5));
    const EvIndex ev = paths.set.choose_control(kAllPorts, port_at(1));
    used.insert(ev);
    if (ev == ev_at(5)) ++confirmed;
  }
  EXPECT_GT(confirmed, 240U);
  EXPECT_LT(confirmed, 400U);
  EXPECT_EQ(used.size(), 16U);
}

TEST(PathSetControl, NeverUsesABadEvWhileAGoodOneExists) {
  Paths paths(2, 4, {.min_active = 1});
  paths.set.on_delivered(ev_at(2));
  paths.set.on_lost(ev_at(2), 0);
  paths.set.set_denied(ev_at(1), true, 0);
  for (unsigned i = 0; i < 50; ++i) {
    const EvIndex ev = paths.set.choose_control(kAllPorts, port_at(1 + i % 2));
    EXPECT_NE(ev, ev_at(2));
    EXPECT_NE(ev, ev_at(1));
  }
}

TEST(PathSetControl, TriesOtherPlanesWhenThePreferredOneShowsNoLife) {
  Paths paths(4, 4);
  std::set<PortId> used;
  unsigned preferred = 0;
  for (unsigned i = 0; i < 64; ++i) {
    const PortId port = paths.profile.port(paths.set.choose_control(kAllPorts, port_at(2)));
    used.insert(port);
    if (port == port_at(2)) ++preferred;
  }
  EXPECT_EQ(used.size(), 4U);
  EXPECT_GE(preferred, 32U);
}

// Answers come in pairs, SACK and ACK. The plane asked for is not in use.
TEST(PathSetControl, GivesTheSecondOfEachPairNotAlwaysTheSamePlane) {
  Paths paths(3, 1, {.min_active = 1});
  paths.set.on_lost(ev_at(0), 0);
  std::vector<unsigned> seconds(3);
  for (unsigned pair = 0; pair < 64; ++pair) {
    paths.set.choose_control(kAllPorts, port_at(1));
    ++seconds[index_of(paths.set.choose_control(kAllPorts, port_at(1)))];
  }
  EXPECT_EQ(seconds[0], 0U);
  EXPECT_GT(seconds[1], 16U);
  EXPECT_GT(seconds[2], 16U);
}

TEST(PathSetControl, WaitsForAPlaneInUseRatherThanUseADeadOne) {
  Paths paths(3, 2, {.min_active = 1});
  for (const unsigned ev : {0U, 3U})
    paths.set.on_lost(ev_at(ev), 0);
  for (const unsigned ev : {1U, 4U})
    paths.set.set_denied(ev_at(ev), true, 0);
  const auto control_ev = [&paths](std::uint32_t free_ports) {
    return paths.set.choose_control(PortMask(free_ports), kNoPort);
  };
  EXPECT_EQ(control_ev(0b001), kNoEv) << "only bad EVs";
  EXPECT_EQ(control_ev(0b010), kNoEv) << "only denied EVs";
  EXPECT_EQ(paths.profile.port(control_ev(0b111)), port_at(3));
  EXPECT_EQ(control_ev(0xFFF8), kNoEv);
}

TEST(PathSetControl, FindsAnEvOnAnyPortOfTheProfileAsALastResort) {
  Paths paths(2, 2, {.min_active = 1});
  for (const unsigned ev : {0U, 1U, 2U, 3U})
    paths.set.set_denied(ev_at(ev), true, 0);
  EXPECT_EQ(paths.profile.port(paths.set.choose_control(PortMask(0b10), port_at(1))), port_at(2));
  EXPECT_EQ(paths.set.choose_control(PortMask(0xFFF8), port_at(1)), kNoEv);
  EXPECT_EQ(paths.set.choose_control(PortMask(), port_at(1)), kNoEv);
}

TEST(PathSetControl, GivesMarkedPathsTheirTurnWithoutASignOfLife) {
  Paths paths(1, 4);
  paths.set.on_marked(ev_at(2));
  unsigned marked = 0;
  for (unsigned i = 0; i < 64; ++i) {
    if (paths.set.choose_control(kAllPorts, port_at(1)) == ev_at(2)) ++marked;
  }
  EXPECT_GE(marked, 10U);
  EXPECT_EQ(paths.set.state(ev_at(2)), kSkip);
}

// Three packets at a time, one on each port: whose port is busy must not lose its turn.
TEST(PathSetSweep, ReachesEveryEvThoughPortsAreBusyInTheSameOrderEveryTime) {
  std::vector<EvEntry> entries;
  for (const unsigned port : {1U, 2U, 3U, 3U, 3U, 1U, 3U, 3U}) {
    entries.push_back(
        {.entropy = 0x1000 + static_cast<std::uint32_t>(entries.size()), .port = port_at(port)});
  }
  Paths paths(EvProfile::create(entries).value());
  std::vector<unsigned> used(entries.size());
  for (unsigned round = 0; round < 10; ++round) {
    for (PortMask free = PortMask::first(3); !free.empty();) {
      const EvIndex ev = paths.set.sweep(free);
      ASSERT_NE(ev, kNoEv);
      ++used[index_of(ev)];
      free = free.without(paths.profile.port(ev));
    }
  }
  EXPECT_EQ(used, (std::vector<unsigned>{5, 10, 2, 2, 2, 5, 2, 2}));
}

// Three of eight planes are in use, and answers draw between them and the sweep. With one turn for
// both, each answer on a plane in use would take the sweep back to the first planes, and the last
// would be met a fifth as often as its share.
TEST(PathSetSweep, GoesOnWhereItWasAfterAnswersOnPlanesInUse) {
  Paths paths(8, 1, {.min_active = 3});
  for (const unsigned ev : {3U, 4U, 5U, 6U, 7U})
    paths.set.on_lost(ev_at(ev), 0);
  for (unsigned question = 0; question < 8; ++question)
    paths.set.on_asked_again();
  std::vector<unsigned> used(8);
  for (unsigned i = 0; i < 1600; ++i)
    ++used[index_of(paths.set.choose_control(kAllPorts, port_at(6)))];
  EXPECT_GT(*std::min_element(used.begin(), used.end()), 80U) << "about 100 by the sweep alone";
}

TEST(PathSetSweep, LeavesOutDeniedEvsOnly) {
  Paths paths(2, 2);
  paths.set.set_denied(ev_at(0), true, 0);
  paths.set.on_lost(ev_at(2), 0);
  EXPECT_EQ(paths.set.sweep(PortMask(0b01)), ev_at(2)) << "bad ones are meant";
  EXPECT_EQ(paths.set.sweep(PortMask(0b01)), ev_at(2));
  paths.set.set_denied(ev_at(2), true, 0);
  EXPECT_EQ(paths.set.sweep(PortMask(0b01)), kNoEv);
  EXPECT_EQ(paths.profile.port(paths.set.sweep(kAllPorts)), port_at(2))
      << "no EV of port 1 is left";
  paths.set.set_usable_ports(PortMask(0b01));
  EXPECT_EQ(paths.profile.port(paths.set.sweep(kAllPorts)), port_at(2))
      << "what the peer said of its ports may be old news";
}

TEST(PathSetMemory, IsSmallAndDoesNotGrowInUse) {
  for (const unsigned evs : {128U, 1024U}) {
    Paths paths(4, evs / 4);
    const std::size_t bytes = paths.set.memory_bytes();
    std::cout << "path set of " << evs << " EVs: " << bytes << " bytes\n";
    EXPECT_LE(bytes, 1024 + evs * 44);
    for (unsigned i = 0; i < 10'000; ++i) {
      const EvIndex ev = paths.choose();
      if (i % 3 == 0) paths.set.on_lost(ev, i);
      if (i % 5 == 0) paths.set.on_marked(ev);
      const EvIndex due = paths.set.due_probe(i * kMicrosecondNs, kAllPorts);
      if (due != kNoEv) paths.probe_and_answer(due, i * kMicrosecondNs);
    }
    EXPECT_EQ(paths.set.memory_bytes(), bytes);
  }
}

}  // namespace
}  // namespace mrc::core
