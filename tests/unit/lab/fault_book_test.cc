// Faults of a running lab.
#include "lab/fault_book.h"

#include <gtest/gtest.h>

#include "fabric/input_error.h"
#include "fabric/link_condition.h"
#include "lab_frames.h"

namespace mrc::lab::test {
namespace {

using fabric::FaultAction;
using fabric::FaultKind;

class Book : public ::testing::Test {
 protected:
  void add(const char* text, fabric::Picoseconds now = 0) {
    book.add(fabric::parse_fault(text, topology), now);
  }
  std::vector<FaultAction> due(fabric::Picoseconds now) {
    std::vector<FaultAction> actions;
    FaultAction action;
    while (book.next(now, action))
      actions.push_back(action);
    return actions;
  }

  fabric::Topology topology{small_fabric()};
  FaultBook book;
};

TEST_F(Book, BeginsAndEndsFaultsAtTheirTime) {
  add("t0:0>t1:1/plane:0 down @10us for 5us", 1'000'000);
  EXPECT_EQ(book.next_time(), 11'000'000);
  EXPECT_TRUE(due(10'999'999).empty());
  auto actions = due(11'000'000);
  ASSERT_EQ(actions.size(), 1U);
  EXPECT_EQ(actions[0].kind, FaultKind::kDown);
  EXPECT_TRUE(actions[0].begins);
  EXPECT_EQ(actions[0].link, topology.t0_up(0, 0, 1));
  EXPECT_TRUE(book.entries().at(0).active);
  actions = due(16'000'000);
  ASSERT_EQ(actions.size(), 1U);
  EXPECT_EQ(actions[0].kind, FaultKind::kDown);
  EXPECT_FALSE(actions[0].begins);
  EXPECT_TRUE(book.entries().empty());
  EXPECT_EQ(book.next_time(), fabric::kForever);
}

TEST_F(Book, FlapsForEver) {
  add("t0:0>t1:1/plane:0 flap 1ms/3ms @0");
  unsigned downs = 0;
  for (const FaultAction& action : due(10'000'000'000'000))
    if (action.kind == FaultKind::kDown && action.begins) ++downs;
  EXPECT_EQ(downs, 2'501U);
  EXPECT_NE(book.next_time(), fabric::kForever);
}

TEST_F(Book, RefusesFlapsThatLeaveNoTimeToForward) {
  EXPECT_THROW(add("t0:0/t1:1/plane:0 flap 1ns/1ns @0"), fabric::InputError);
  EXPECT_THROW(add("t0:0/t1:1/plane:0 flap 9us/9us @0"), fabric::InputError);
  EXPECT_TRUE(book.entries().empty());
  add("t0:0/t1:1/plane:0 flap 10us/10us @0");
  add("t0:0/t1:1/plane:0 flap 1us/1us @0 for 1ms");  // soon over
  add("t0:*/t1:*/plane:* flap 50ms/60ms @0");
  EXPECT_EQ(book.entries().size(), 3U);
}

TEST_F(Book, HealingEndsWhatIsAndWhatWouldCome) {
  add("t0:0/t1:*/plane:0 down @0");
  add("t0:0>t1:1/plane:0 loss 1% @0");
  add("t0:0>t1:1/plane:0 down @1s");
  due(0);
  std::vector<FaultAction> actions;
  const std::vector<fabric::LinkId> links = {topology.t0_up(0, 0, 1), topology.t1_down(0, 1, 0, 0)};
  EXPECT_EQ(book.heal(links, 5, actions), 3U);
  unsigned ups = 0;
  unsigned losses = 0;
  for (const FaultAction& action : actions) {
    EXPECT_FALSE(action.begins);
    EXPECT_EQ(action.time_ps, 5);
    if (action.kind == FaultKind::kDown) ++ups;
    if (action.kind == FaultKind::kLoss) ++losses;
  }
  EXPECT_EQ(ups, 2U);
  EXPECT_EQ(losses, 1U);
  EXPECT_EQ(book.next_time(), fabric::kForever);
  ASSERT_EQ(book.entries().size(), 1U);  // the other cables of that T0 are still down
  EXPECT_TRUE(book.entries()[0].active);
}

TEST_F(Book, HealedLinksAreHealthyAndTheOthersAsTheyWere) {
  add("t0:0/t1:*/plane:0 down @0");
  add("t0:0>t1:1/plane:0 rate 50% @0");
  add("t0:0>t1:1/plane:0 rate 10% @0");
  add("t0:0>t1:2/plane:0 flap 1ms/3ms @0");
  fabric::FabricFaults faults;
  for (const FaultAction& action : due(0))
    faults.apply(action);
  std::vector<FaultAction> actions;
  book.heal(std::vector{topology.t0_up(0, 0, 1)}, 5, actions);
  for (const FaultAction& action : actions)
    faults.apply(action);
  EXPECT_EQ(faults.of(topology.t0_up(0, 0, 1)).condition(), fabric::LinkCondition{});
  EXPECT_TRUE(faults.is_down(topology.t1_down(0, 1, 0, 0)));
  EXPECT_TRUE(faults.is_down(topology.t0_up(0, 0, 2)));
  for (const FaultAction& action : due(2'000'000'000))
    faults.apply(action);
  EXPECT_TRUE(faults.is_down(topology.t0_up(0, 0, 2)));  // by the first fault
}

TEST_F(Book, TheFaultThatIsLeftHoldsWhenTheOtherEnds) {
  add("t0:0>t1:1/plane:0 rate 50% @0");
  add("t0:0>t1:1/plane:0 rate 10% @1us for 1us");
  fabric::FabricFaults faults;
  for (const auto& [now, share] : {std::pair(0, 0.5), {1'000'000, 0.1}, {2'000'000, 0.5}}) {
    for (const FaultAction& action : due(now))
      faults.apply(action);
    EXPECT_EQ(faults.of(topology.t0_up(0, 0, 1)).condition().rate_share, share) << now;
  }
}

}  // namespace
}  // namespace mrc::lab::test
