// Zones, turns and SKIP of the rotation by itself; PathSet's tests see it at work.
#include "core/rotation.h"

#include <gtest/gtest.h>

#include <set>
#include <vector>

#include "unit/core/path_set_fixture.h"

namespace mrc::core {
namespace {

struct Turns {
  Turns(unsigned planes, unsigned evs_per_plane, unsigned active_evs = 0)
      : profile(striped_profile(planes, evs_per_plane)),
        rotation(profile, active_evs, nullptr, prng) {}

  EvIndex next(unsigned port, EvIndex avoid = kNoEv) {
    const EvIndex ev = rotation.next(port_at(port), avoid, prng);
    if (ev != kNoEv) rotation.use(ev);
    return ev;
  }
  std::set<EvIndex> round(unsigned port, unsigned packets) {
    std::set<EvIndex> used;
    for (unsigned i = 0; i < packets; ++i)
      used.insert(next(port));
    return used;
  }

  Prng prng{7};
  EvProfile profile;
  Rotation rotation;
};

TEST(Rotation, GivesEveryActiveEvOneTurnARound) {
  Turns turns(2, 8);
  EXPECT_EQ(turns.round(1, 8).size(), 8U);
  EXPECT_EQ(turns.round(2, 8).size(), 8U);
}

TEST(Rotation, KeepsBackupsOutOfTheTurns) {
  Turns turns(2, 8, 6);
  EXPECT_EQ(turns.round(1, 64).size(), 3U);
  EXPECT_EQ(turns.rotation.in_use_count(), 16U) << "backups are in use, too";
}

TEST(Rotation, ABackupTakesThePlaceOfWhoLeaves) {
  Turns turns(1, 4, 2);
  const std::set<EvIndex> before = turns.round(1, 8);
  const EvIndex gone = *before.begin();
  turns.rotation.leave(gone, kNoEv, turns.prng);
  EXPECT_FALSE(turns.rotation.in_use(gone));
  const std::set<EvIndex> after = turns.round(1, 8);
  EXPECT_EQ(after.size(), 2U);
  EXPECT_FALSE(after.contains(gone));
}

TEST(Rotation, WhoComesBackIsABackupWhereTheShareIsFull) {
  Turns turns(1, 4, 2);
  const EvIndex gone = *turns.round(1, 8).begin();
  turns.rotation.leave(gone, kNoEv, turns.prng);
  turns.rotation.join(gone, turns.prng);
  EXPECT_TRUE(turns.rotation.in_use(gone));
  EXPECT_FALSE(turns.rotation.is_active(gone));
}

TEST(Rotation, APortIsInUseWhileOneOfItsEvsIs) {
  Turns turns(2, 2);
  turns.rotation.leave(ev_at(0), kNoEv, turns.prng);
  EXPECT_TRUE(turns.rotation.is_only_one_of_its_plane(ev_at(2)));
  turns.rotation.leave(ev_at(2), kNoEv, turns.prng);
  EXPECT_EQ(turns.rotation.ports(), PortMask::of(port_at(2)));
  turns.rotation.join(ev_at(2), turns.prng);
  EXPECT_EQ(turns.rotation.ports(), PortMask::first(2));
}

TEST(Rotation, ReplacesInPlace) {
  Turns turns(1, 3);
  turns.rotation.leave(ev_at(1), kNoEv, turns.prng);
  turns.rotation.replace(ev_at(0), ev_at(1), kNoEv, turns.prng);
  EXPECT_FALSE(turns.rotation.in_use(ev_at(0)));
  EXPECT_TRUE(turns.rotation.is_good(ev_at(1)));
  EXPECT_EQ(turns.rotation.in_use_count(), 2U);
  EXPECT_EQ(turns.round(1, 8), (std::set<EvIndex>{ev_at(1), ev_at(2)}));
}

// Seed 1407374893627113: with a share of one the substitutes, all dead, had the only turn for ever
// and the one path that works stood by.
TEST(Rotation, ASubstituteQueuesBehindTheBackups) {
  Turns turns(1, 4, 1);
  const EvIndex dead = turns.next(1);
  const EvIndex substitute = dead == ev_at(0) ? ev_at(1) : ev_at(0);
  turns.rotation.leave(substitute, kNoEv, turns.prng);
  turns.rotation.replace(dead, substitute, kNoEv, turns.prng);
  EXPECT_FALSE(turns.rotation.in_use(dead));
  EXPECT_TRUE(turns.rotation.in_use(substitute));
  EXPECT_FALSE(turns.rotation.is_active(substitute));
  EXPECT_EQ(turns.round(1, 4).size(), 1U);
}

TEST(Rotation, ThePreferredBackupIsFirst) {
  for (unsigned preferred = 0; preferred < 8; ++preferred) {
    Turns turns(1, 8, 1);
    const EvIndex first = turns.next(1);
    if (first == ev_at(preferred)) continue;
    turns.rotation.leave(first, ev_at(preferred), turns.prng);
    EXPECT_EQ(turns.next(1), ev_at(preferred));
    const EvIndex second = ev_at(preferred == 0 || first == ev_at(0) ? 7 : 0);
    if (second == first) continue;
    turns.rotation.replace(ev_at(preferred), first, second, turns.prng);
    EXPECT_EQ(turns.next(1), second);
    EXPECT_FALSE(turns.rotation.is_active(first)) << "it queues behind the backups";
  }
}

TEST(Rotation, WhoIsPreferredElsewhereIsNoBackupHere) {
  Turns turns(2, 2, 2);
  const EvIndex gone = turns.next(1);
  const EvIndex elsewhere = turns.next(2);
  turns.rotation.leave(gone, elsewhere, turns.prng);
  EXPECT_EQ(turns.rotation.ports(), PortMask::first(2));
  EXPECT_EQ(turns.round(1, 4).size(), 1U);
  EXPECT_TRUE(turns.rotation.is_active(elsewhere));
}

TEST(Rotation, ASkippedEntryLetsAsManyTurnsGoByAsItIsSkipped) {
  Turns turns(1, 4);
  turns.round(1, 64);  // a whole number of orders
  turns.rotation.skip(ev_at(2), 3);
  turns.rotation.skip(ev_at(2), 1);
  unsigned used = 0;
  for (unsigned i = 0; i < 9; ++i)
    if (turns.next(1) == ev_at(2)) ++used;
  EXPECT_EQ(used, 0U) << "three rounds of the other three";
  EXPECT_TRUE(turns.round(1, 4).contains(ev_at(2)));
}

TEST(Rotation, SkipsNothingThatIsOutOfUse) {
  Turns turns(1, 2);
  turns.rotation.leave(ev_at(0), kNoEv, turns.prng);
  turns.rotation.skip(ev_at(0), 2);
  EXPECT_FALSE(turns.rotation.is_skipped(ev_at(0)));
  turns.rotation.join(ev_at(0), turns.prng);
  EXPECT_TRUE(turns.rotation.is_good(ev_at(0)));
}

TEST(Rotation, HasNoTurnForTheOnlyOneThatIsAvoided) {
  Turns turns(1, 1);
  EXPECT_EQ(turns.next(1, ev_at(0)), kNoEv);
  EXPECT_EQ(turns.rotation.beside(ev_at(0)), ev_at(0)) << "there is nobody beside it";
}

TEST(Rotation, PutsABackupInThePlaceOfTheAvoided) {
  Turns turns(1, 2, 1);
  const EvIndex active = turns.next(1);
  EXPECT_NE(turns.rotation.beside(active), active);
}

TEST(Rotation, ChoosesThePlaneWithTheFewestPackets) {
  Turns turns(3, 1);
  for (unsigned i = 0; i < 5; ++i)
    turns.rotation.charge(port_at(2));
  turns.rotation.charge(port_at(3));
  EXPECT_EQ(turns.rotation.least_loaded(PortMask::first(3)), port_at(1));
  EXPECT_EQ(turns.rotation.least_loaded(PortMask(0b110)), port_at(3));
  turns.rotation.forgive(port_at(1));
  EXPECT_EQ(turns.rotation.least_loaded(PortMask::first(3)), port_at(3));
}

TEST(Rotation, APeekMovesItsOwnCursorOnly) {
  Turns turns(1, 4);
  turns.rotation.skip(ev_at(1), 1);
  std::uint16_t cursor = 0;
  std::set<EvIndex> seen;
  for (unsigned i = 0; i < 6; ++i)
    seen.insert(turns.rotation.peek(0, cursor, false));
  EXPECT_EQ(seen.size(), 3U) << "not the skipped one";
  for (unsigned i = 0; i < 4; ++i)
    seen.insert(turns.rotation.peek(0, cursor, true));
  EXPECT_EQ(seen.size(), 4U);
  EXPECT_TRUE(turns.rotation.is_skipped(ev_at(1)));
}

TEST(Rotation, AnyPlaneWithTheLeastLoadWillDo) {
  Turns turns(4, 2);
  const PortMask all = PortMask::first(4);
  for (unsigned port = 1; port <= 4; ++port)
    EXPECT_TRUE(turns.rotation.is_turn_of_any(PortMask::of(port_at(port)), all));
  turns.next(2);
  EXPECT_FALSE(turns.rotation.is_turn_of_any(PortMask::of(port_at(2)), all));
  EXPECT_TRUE(turns.rotation.is_turn_of_any(PortMask::of(port_at(4)), all));
  EXPECT_FALSE(turns.rotation.is_turn_of_any(all, PortMask{}));
}

// Two queue pairs of an endpoint, with 8 EVs on one port listed in order.
struct InStep {
  EvIndex next(Rotation& rotation, EvIndex avoid = kNoEv) {
    const EvIndex ev = rotation.next(port_at(1), avoid, prng);
    rotation.use(ev);
    return ev;
  }
  std::vector<unsigned> next_of_one(unsigned count) {
    std::vector<unsigned> taken;
    for (unsigned i = 0; i < count; ++i)
      taken.push_back(index_of(next(one)));
    return taken;
  }

  Prng prng{7};
  EvProfile profile = striped_profile(1, 8, EvOrder::kAsListed);
  PortTurns turns;
  Rotation one{profile, 0, &turns, prng};
  Rotation other{profile, 0, &turns, prng};
};

TEST(Rotation, AListIsFollowedByAllQueuePairsTogether) {
  InStep step;
  for (unsigned i = 0; i < 40; ++i)
    EXPECT_EQ(step.next(i % 3 == 0 ? step.one : step.other), ev_at(i % 8)) << i;
}

// Whoever took the next of the list instead walked beside its neighbour from then on.
TEST(Rotation, ATurnThatIsPassedOverGoesToOneThatIsDrawnAndTheListGoesOn) {
  std::set<EvIndex> substitutes;
  InStep step;
  for (unsigned round = 0; round < 32; ++round) {
    step.one.skip(ev_at(3), 1);
    for (unsigned i = 0; i < 8; ++i) {
      const EvIndex ev = step.next(step.one);
      if (i == 3) {
        substitutes.insert(ev);
        EXPECT_FALSE(step.one.is_skipped(ev_at(3))) << "it was passed over";
      } else {
        EXPECT_EQ(ev, ev_at(i)) << "round " << round;
      }
    }
  }
  EXPECT_EQ(substitutes.size(), 7U) << "any but the one that was passed over";
}

TEST(Rotation, WhoIsOutOfUseOrAvoidedHasItsTurnTakenByAnother) {
  InStep step;
  step.one.leave(ev_at(0), kNoEv, step.prng);
  EXPECT_NE(step.next(step.one), ev_at(0));
  EXPECT_NE(step.next(step.one, ev_at(1)), ev_at(1));
  EXPECT_EQ(step.next_of_one(6), (std::vector<unsigned>{2, 3, 4, 5, 6, 7}));
  EXPECT_EQ(step.next(step.other), ev_at(0)) << "the other queue pair has nothing against it";
  step.one.join(ev_at(0), step.prng);
  EXPECT_EQ(step.next_of_one(8), (std::vector<unsigned>{1, 2, 3, 4, 5, 6, 7, 0}));
}

TEST(Rotation, WithNothingGoodInTheListOneSkippedIsRevived) {
  InStep step;
  for (unsigned i = 0; i < 8; ++i)
    step.one.skip(ev_at(i), 2);
  const EvIndex used = step.next(step.one);
  for (unsigned i = 0; i < 8; ++i)
    EXPECT_EQ(step.one.is_skipped(ev_at(i)), ev_at(i) != used);
}

TEST(Rotation, BackupsLeaveTheOrderToBeDrawn) {
  InStep step;
  Rotation few(step.profile, 2, &step.turns, step.prng);
  std::set<EvIndex> used;
  for (unsigned i = 0; i < 16; ++i)
    used.insert(step.next(few));
  EXPECT_EQ(used.size(), 2U);
  EXPECT_EQ(step.turns.turn(port_at(1)), 0U);
}

}  // namespace
}  // namespace mrc::core
