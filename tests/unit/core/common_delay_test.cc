#include "core/cc/common_delay.h"

#include <gtest/gtest.h>

namespace mrc::core {
namespace {

constexpr DurationNs kBaseRtt = 10 * kMicrosecondNs;

TEST(CommonDelay, IsTheLeastOfTheLastTwoRoundTrips) {
  CommonDelay delay;
  delay.observe(0, 4'000, kBaseRtt);
  delay.observe(1'000, 9'000, kBaseRtt);
  delay.observe(kBaseRtt, 6'000, kBaseRtt);
  EXPECT_EQ(delay.value_ns(kBaseRtt), 4'000);
  delay.observe(2 * kBaseRtt, 7'000, kBaseRtt);
  EXPECT_EQ(delay.value_ns(2 * kBaseRtt), 6'000);
}

TEST(CommonDelay, IsNoneBeforeAnythingWasSeen) { EXPECT_EQ(CommonDelay().value_ns(0), 0); }

// After two round trips with that delay nothing more of it is known.
TEST(CommonDelay, DoesNotOutliveWhatWasSeen) {
  CommonDelay delay;
  const DurationNs stood_still = 72 * kMillisecondNs;
  delay.observe(0, stood_still, kBaseRtt);
  delay.observe(kBaseRtt, stood_still, kBaseRtt);
  const TimeNs end = kBaseRtt + 2 * (kBaseRtt + stood_still);
  EXPECT_EQ(delay.value_ns(end), stood_still);
  EXPECT_EQ(delay.value_ns(end + 1), 0);
}

}  // namespace
}  // namespace mrc::core
