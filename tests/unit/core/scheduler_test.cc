// The round and the lines, without queue pairs.
#include "core/scheduler.h"

#include <gtest/gtest.h>

#include <vector>

namespace mrc::core {
namespace {

std::vector<std::uint32_t> round_of(const Scheduler& scheduler) {
  std::vector<std::uint32_t> slots;
  for (std::size_t i = 0; i < scheduler.size(); ++i)
    slots.push_back(scheduler.at(i));
  return slots;
}

using Slots = std::vector<std::uint32_t>;

TEST(Scheduler, TheRoundKeepsTheOrderAndHoldsEachOnce) {
  Scheduler scheduler(4);
  for (const std::uint32_t slot : {2U, 0U, 2U, 3U})
    scheduler.activate(slot);
  EXPECT_EQ(round_of(scheduler), (Slots{2, 0, 3}));
  scheduler.end_turn(/*waits_on=*/true);
  EXPECT_FALSE(scheduler.is_active(2));
  scheduler.activate(2);
  EXPECT_EQ(round_of(scheduler), (Slots{0, 3, 2}));
}

TEST(Scheduler, WhoIsPassedOverKeepsItsPlace) {
  Scheduler scheduler(4);
  for (std::uint32_t slot = 0; slot < 4; ++slot)
    scheduler.activate(slot);
  scheduler.prefer(2);
  EXPECT_EQ(round_of(scheduler), (Slots{2, 0, 1, 3}));
  scheduler.prefer(0);
  EXPECT_EQ(round_of(scheduler), (Slots{2, 0, 1, 3}));
}

TEST(Scheduler, ATurnIsUsedUpAndStartsAnew) {
  Scheduler scheduler(2);
  scheduler.activate(1);
  EXPECT_EQ(scheduler.charge(100), 100U);
  EXPECT_EQ(scheduler.charge(50), 150U);
  scheduler.end_turn(/*waits_on=*/true);
  EXPECT_EQ(scheduler.used_bytes(1), 0U);
}

TEST(Scheduler, ALineGivesBackInTheOrderItTook) {
  Scheduler scheduler(4);
  Scheduler::Line line;
  for (std::uint32_t slot = 0; slot < 3; ++slot)
    scheduler.park(slot, line);
  EXPECT_TRUE(scheduler.is_parked(1));
  for (unsigned i = 0; i < 4; ++i)
    scheduler.wake_first(line);
  EXPECT_EQ(round_of(scheduler), (Slots{0, 1, 2})) << "and an empty line gives nothing";
}

TEST(Scheduler, AnyoneMayLeaveALine) {
  for (std::uint32_t leaver = 0; leaver < 3; ++leaver) {
    Scheduler scheduler(3);
    Scheduler::Line line;
    Slots expected{leaver};
    for (std::uint32_t slot = 0; slot < 3; ++slot) {
      scheduler.park(slot, line);
      if (slot != leaver) expected.push_back(slot);
    }
    scheduler.unpark(leaver, line);
    scheduler.unpark(leaver, line);
    scheduler.wake_first(line);
    scheduler.wake_first(line);
    EXPECT_EQ(round_of(scheduler), expected);
    EXPECT_EQ(line.head, kNoSlot);
    EXPECT_EQ(line.tail, kNoSlot);
  }
}

TEST(Scheduler, WhoWasWokenInVainKeepsItsPlace) {
  Scheduler scheduler(4);
  Scheduler::Line line;
  for (std::uint32_t slot = 0; slot < 3; ++slot)
    scheduler.park(slot, line);
  scheduler.wake_first(line);
  EXPECT_FALSE(scheduler.jumps(0, line));
  scheduler.end_turn(/*waits_on=*/true);
  scheduler.park(0, line);
  EXPECT_EQ(line.head, 0U);
  // With something sent it has had its turn.
  scheduler.wake_first(line);
  scheduler.charge(10);
  EXPECT_FALSE(scheduler.jumps(0, line)) << "in mid-turn";
  scheduler.end_turn(/*waits_on=*/true);
  scheduler.park(0, line);
  EXPECT_EQ(line.head, 1U);
  EXPECT_EQ(line.tail, 0U);
  // Others are not to go first.
  scheduler.activate(3);
  EXPECT_TRUE(scheduler.jumps(3, line));
  const Scheduler::Line empty;
  EXPECT_FALSE(scheduler.jumps(3, empty));
  // Who leaves the middle of a line does not go before those in front.
  scheduler.unpark(2, line);
  EXPECT_TRUE(scheduler.jumps(2, line));
}

TEST(Scheduler, SeveralThatAreWokenInVainKeepTheirOrder) {
  Scheduler scheduler(4);
  Scheduler::Line line;
  for (std::uint32_t slot = 0; slot < 4; ++slot)
    scheduler.park(slot, line);
  for (unsigned i = 0; i < 3; ++i)
    scheduler.wake_first(line);
  scheduler.end_turn(/*waits_on=*/true);  // 0: too large for the room there is
  scheduler.park(0, line);
  for (const std::uint32_t slot : {1U, 2U}) {
    EXPECT_TRUE(scheduler.jumps(slot, line)) << "it would fit, and came later";
    scheduler.end_turn(/*waits_on=*/true);
    scheduler.park(slot, line);
  }
  for (unsigned i = 0; i < 4; ++i)
    scheduler.wake_first(line);
  EXPECT_EQ(round_of(scheduler), (Slots{0, 1, 2, 3}));
}

TEST(Scheduler, AQuestionCostsNoPlace) {
  Scheduler scheduler(3);
  Scheduler::Line line;
  for (std::uint32_t slot = 0; slot < 3; ++slot)
    scheduler.park(slot, line);
  scheduler.activate(1);
  EXPECT_TRUE(scheduler.is_parked(1));
  scheduler.end_turn(/*waits_on=*/false);
  for (unsigned i = 0; i < 3; ++i)
    scheduler.wake_first(line);
  EXPECT_EQ(round_of(scheduler), (Slots{0, 1, 2}));
}

TEST(Scheduler, WhoHasNothingLeftToSendWaitsAnew) {
  Scheduler scheduler(2);
  Scheduler::Line line;
  scheduler.park(0, line);
  scheduler.wake_first(line);
  scheduler.end_turn(/*waits_on=*/false);
  scheduler.park(1, line);
  scheduler.activate(0);
  EXPECT_TRUE(scheduler.jumps(0, line));
}

TEST(Scheduler, LinesAreApart) {
  Scheduler scheduler(4);
  Scheduler::Line a;
  Scheduler::Line b;
  scheduler.park(0, a);
  scheduler.park(1, b);
  scheduler.park(2, a);
  scheduler.wake_first(b);
  EXPECT_EQ(round_of(scheduler), (Slots{1}));
  scheduler.wake_first(a);
  scheduler.wake_first(a);
  EXPECT_EQ(round_of(scheduler), (Slots{1, 0, 2}));
}

TEST(Scheduler, WhoEndsLeavesNoTrace) {
  Scheduler scheduler(3);
  for (std::uint32_t slot = 0; slot < 3; ++slot)
    scheduler.activate(slot);
  scheduler.charge(10);
  scheduler.remove(0);
  EXPECT_EQ(round_of(scheduler), (Slots{1, 2}));
  scheduler.activate(0);
  EXPECT_EQ(scheduler.used_bytes(0), 0U);
}

}  // namespace
}  // namespace mrc::core
