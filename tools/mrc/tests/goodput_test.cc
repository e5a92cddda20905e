#include "commands/demo/goodput.h"

#include <gtest/gtest.h>

namespace mrc::tool::demo {
namespace {

// Two ranks that receive `rate` bytes a second each, as a function of time, told every 0.1 s.
template <typename Rate>
Goodput told(double seconds, Rate rate) {
  Goodput goodput(2);
  double bytes = 0;
  for (int tick = 0; tick <= static_cast<int>(seconds * 10); ++tick) {
    const double at_s = tick / 10.0;
    for (const unsigned rank : {0U, 1U})
      goodput.add(rank, at_s, static_cast<std::uint64_t>(bytes));
    bytes += rate(at_s + 0.05) / 10;
  }
  return goodput;
}

TEST(Goodput, IsTheSumOfAllRanks) {
  const Goodput goodput = told(4, [](double) { return 1000.0; });
  EXPECT_NEAR(goodput.rate(1, 3), 2000, 1);
  EXPECT_EQ(goodput.bytes(), 8000U);
}

TEST(Goodput, IsNothingBeforeTheFirstWordAndBetweenEqualTimes) {
  const Goodput silent(3);
  EXPECT_EQ(silent.rate(0, 1), 0);
  EXPECT_EQ(silent.rate(1, 1), 0);
  EXPECT_EQ(silent.bytes(), 0U);
}

TEST(FaultEffect, IsNoneWhereNothingChanges) {
  const Goodput goodput = told(6, [](double) { return 1000.0; });
  const FaultEffect effect = effect_of(goodput, {.start_s = 2, .end_s = 6});
  EXPECT_NEAR(effect.before, 2000, 1);
  EXPECT_NEAR(effect.worst, 1, 0.01);
  EXPECT_TRUE(effect.recovered);
  EXPECT_EQ(effect.recovery_s, 0);
  EXPECT_EQ(effect.stall_s, 0);
}

TEST(FaultEffect, TellsHowLongEverythingStood) {
  const Goodput goodput = told(8, [](double at_s) { return at_s > 2 && at_s < 4 ? 0.0 : 1000.0; });
  const FaultEffect effect = effect_of(goodput, {.start_s = 2, .end_s = 8});
  EXPECT_NEAR(effect.worst, 0, 0.01);
  EXPECT_NEAR(effect.stall_s, 2, 0.31);
  EXPECT_TRUE(effect.recovered);
  EXPECT_NEAR(effect.recovery_s, 2, 0.31);
}

TEST(FaultEffect, IsNotOverBeforeTheLastStall) {
  const auto rate = [](double at_s) {
    const bool stands = (at_s > 2 && at_s < 2.5) || (at_s > 3.5 && at_s < 5);
    return stands ? 0.0 : 1000.0;
  };
  const FaultEffect effect = effect_of(told(8, rate), {.start_s = 2, .end_s = 8});
  EXPECT_TRUE(effect.recovered);
  EXPECT_NEAR(effect.recovery_s, 3, 0.31);
  EXPECT_NEAR(effect.stall_s, 1.5, 0.31);
}

TEST(FaultEffect, MeasuresAgainstWhatTheFaultLeaves) {
  const Goodput goodput = told(8, [](double at_s) { return at_s > 2 ? 600.0 : 1000.0; });
  EXPECT_TRUE(effect_of(goodput, {.start_s = 2, .end_s = 8, .share_left = 0.75}).recovered);
  const FaultEffect whole = effect_of(goodput, {.start_s = 2, .end_s = 8, .share_left = 1});
  EXPECT_FALSE(whole.recovered);
  EXPECT_NEAR(whole.recovery_s, 6, 1e-9);
}

}  // namespace
}  // namespace mrc::tool::demo
