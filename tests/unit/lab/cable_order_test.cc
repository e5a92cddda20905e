#include "lab/cable_order.h"

#include <gtest/gtest.h>

namespace mrc::lab::test {
namespace {

using fabric::LinkCondition;

TEST(CableOrder, AHealthyCableIsLeftAlone) { EXPECT_EQ(order_for({}, {}), CableOrder{}); }

TEST(CableOrder, ACableThatIsDownBothWaysHasItsInterfaceDownAndNoFilters) {
  EXPECT_EQ(order_for({.down = true}, {.down = true}), (CableOrder{.down = true}));
}

TEST(CableOrder, OneDirectionThatIsDownIsFilteredAway) {
  EXPECT_EQ(order_for({.down = true}, {}), (CableOrder{.home = {.filtered = 1}}));
  EXPECT_EQ(order_for({}, {.down = true}), (CableOrder{.back = {.filtered = 1}}));
}

TEST(CableOrder, LossAndRateAreThoseOfTheirDirection) {
  EXPECT_EQ(
      order_for({.rate_share = 0.25, .loss = 0.01}, {.loss = 0.02}),
      (CableOrder{.home = {.filtered = 0.01, .rate_share = 0.25}, .back = {.filtered = 0.02}}));
}

TEST(CableOrder, ABlackHoleIsSilentAndComplete) {
  EXPECT_EQ(order_for({.loss = 0.01, .black_hole = true}, {}),
            (CableOrder{.home = {.filtered = 1}}));
}

TEST(CableOrder, ALossIsReadyWhenTheCableComesBack) {
  const LinkCondition lossy_and_down{.loss = 0.01, .down = true};
  EXPECT_EQ(order_for(lossy_and_down, {.down = true}),
            (CableOrder{.down = true, .home = {.filtered = 0.01}}));
}

}  // namespace
}  // namespace mrc::lab::test
