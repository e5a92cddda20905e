#include "sim/seed_statistics.h"

#include <gtest/gtest.h>

#include <cmath>

namespace mrc::sim {
namespace {

TEST(StudentT, HasTheTabulatedValuesAndGoesOnWithoutAStep) {
  EXPECT_DOUBLE_EQ(student_t95(1), 12.706);
  EXPECT_DOUBLE_EQ(student_t95(19), 2.093);
  EXPECT_NEAR(student_t95(31), 2.040, 0.002);
  EXPECT_NEAR(student_t95(60), 2.000, 0.002);
  EXPECT_NEAR(student_t95(1'000'000), 1.960, 0.001);
}

TEST(SeedStatistic, OfThreeValuesIsWhatTheTextbookSays) {
  const SeedStatistic s = statistic_of("x", false, {{4, 1}, {5, 2}, {9, 6}});
  EXPECT_DOUBLE_EQ(s.mean, 3);
  // The sample's deviation is the root of (4 + 1 + 9) / 2, the mean's that over the root of 3.
  EXPECT_NEAR(s.half_width, 4.303 * std::sqrt(7.0 / 3), 1e-9);
  EXPECT_DOUBLE_EQ(s.worst, 6);
  EXPECT_EQ(s.worst_seed, 9u);
  EXPECT_EQ(s.count, 3u);
}

TEST(SeedStatistic, WorstIsLeastWhereMoreIsBetter) {
  const SeedStatistic s = statistic_of("x", true, {{4, 3}, {5, 2}, {9, 6}});
  EXPECT_DOUBLE_EQ(s.worst, 2);
  EXPECT_EQ(s.worst_seed, 5u);
}

TEST(SeedStatistic, OfOneSeedHasNoInterval) {
  const SeedStatistic s = statistic_of("x", false, {{4, 3}});
  EXPECT_DOUBLE_EQ(s.mean, 3);
  EXPECT_DOUBLE_EQ(s.half_width, 0);
}

TEST(SeedStatistics, LeaveOutWhatNoRunHas) {
  Report one;
  one.config.seed = 1;
  one.ratio_bound = 1.25;
  Report two = one;
  two.config.seed = 2;
  two.ratio_bound = 1.5;
  two.victim = VictimReport{.ratio = 3};
  bool bound_seen = false;
  bool bus_seen = false;
  for (const SeedStatistic& s : statistics_over_seeds({&one, &two})) {
    bus_seen = bus_seen || s.name == "bus_gbps";
    if (s.name == "victim.ratio") {
      EXPECT_EQ(s.count, 1u);
    }
    if (s.name != "ratio_bound") continue;
    bound_seen = true;
    EXPECT_DOUBLE_EQ(s.mean, 1.375);
    EXPECT_EQ(s.worst_seed, 2u);
  }
  EXPECT_TRUE(bound_seen);
  EXPECT_FALSE(bus_seen);
}

}  // namespace
}  // namespace mrc::sim
