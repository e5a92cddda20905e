#include "core/loss_credit.h"

#include <gtest/gtest.h>

#include <utility>
#include <vector>

#include "unit/core/path_set_fixture.h"

namespace mrc::core {
namespace {

// Packets go round the paths; of those of path i every `one_in[i]`-th is lost, 0: none.
struct Traffic {
  explicit Traffic(std::vector<unsigned> one_in_of_each)
      : one_in(std::move(one_in_of_each)),
        credit(static_cast<unsigned>(one_in.size())),
        counted(one_in.size()),
        lost(one_in.size()) {}

  void send(unsigned rounds) {
    for (unsigned round = 0; round < rounds; ++round, ++rounds_sent) {
      for (unsigned i = 0; i < one_in.size(); ++i) {
        // Not all paths at once.
        if (one_in[i] == 0 || (rounds_sent + i) % one_in[i] != 0) {
          credit.on_arrival(ev_at(i));
          continue;
        }
        ++lost[i];
        if (!credit.on_loss(ev_at(i))) ++counted[i];
      }
    }
  }

  std::vector<unsigned> one_in;
  LossCredit credit;
  std::vector<unsigned> counted;
  std::vector<unsigned> lost;
  unsigned rounds_sent = 0;
};

TEST(LossCredit, TheFirstLossCountsWhereNothingIsLost) {
  Traffic traffic({0, 0, 0, 0});
  traffic.send(1'000);
  EXPECT_FALSE(traffic.credit.on_loss(ev_at(2)));
}

TEST(LossCredit, WhatAllPathsLoseIsExcused) {
  for (const unsigned one_in : {10U, 20U, 100U}) {
    Traffic traffic(std::vector<unsigned>(8, one_in));
    traffic.send(10 * one_in);  // the rate is known by then
    traffic.counted.assign(8, 0);
    traffic.send(10 * one_in);
    EXPECT_EQ(traffic.counted, std::vector<unsigned>(8, 0)) << "one in " << one_in;
  }
}

TEST(LossCredit, APathThatLosesFarMoreThanTheMeanIsNotExcused) {
  Traffic traffic({5, 0, 0, 0, 0, 0, 0, 0});
  traffic.send(1'000);
  EXPECT_GE(traffic.counted[0], traffic.lost[0] * 3 / 4);
}

TEST(LossCredit, APlaneOfFourThatLosesAFifthIsNotExcusedEither) {
  Traffic traffic({5, 5, 0, 0, 0, 0, 0, 0});
  traffic.send(1'000);
  EXPECT_GE(traffic.counted[0], traffic.lost[0] / 2);
}

TEST(LossCredit, TwoLossesInARowAlwaysCount) {
  Traffic traffic(std::vector<unsigned>(4, 10));
  traffic.send(205);
  EXPECT_TRUE(traffic.credit.on_loss(ev_at(1)));
  EXPECT_FALSE(traffic.credit.on_loss(ev_at(1))) << "nothing has arrived on it in between";
}

TEST(LossCredit, WhoLeavesTakesNoCreditAlong) {
  Traffic traffic(std::vector<unsigned>(4, 10));
  traffic.send(205);
  traffic.credit.forget(ev_at(1));
  EXPECT_FALSE(traffic.credit.on_loss(ev_at(1)));
}

TEST(LossCredit, OfTheFirstFewPacketsOneLossProvesLittle) {
  LossCredit credit(2);
  credit.on_loss(ev_at(0));
  for (unsigned i = 0; i < 30; ++i)
    credit.on_arrival(ev_at(1));
  EXPECT_FALSE(credit.on_loss(ev_at(1)));
}

TEST(LossCredit, OldLossesAreForgotten) {
  Traffic traffic(std::vector<unsigned>(4, 10));
  traffic.send(200);
  traffic.one_in.assign(4, 0);
  traffic.send(4'000);
  for (const bool excused : {true, true, false}) {
    EXPECT_EQ(traffic.credit.on_loss(ev_at(0)), excused)
        << "two losses may have been earned before";
    traffic.send(100);
  }
}

}  // namespace
}  // namespace mrc::core
