#include "fabric/queue_policy.h"

#include <gtest/gtest.h>

#include "base/prng.h"

namespace mrc::fabric {
namespace {

constexpr std::uint64_t kBdpBytes = 400'000;

TEST(QueuePolicy, SizesQueuesInShareOfTheBandwidthDelayProduct) {
  const QueueShares shares;
  const QueuePolicy inner = make_queue_policy(shares, kBdpBytes, true, false);
  EXPECT_EQ(inner.data_capacity_bytes, 400'000u);
  EXPECT_EQ(inner.control_capacity_bytes, 800'000u);
  EXPECT_EQ(inner.ecn_min_bytes, 80'000u);
  EXPECT_EQ(inner.ecn_max_bytes, 320'000u);
  EXPECT_TRUE(inner.trims);
  EXPECT_TRUE(inner.marks);
  EXPECT_FALSE(inner.faces_host);
}

TEST(QueuePolicy, GivesTheLastHopMoreRoomAndNoMarks) {
  const QueuePolicy last = make_queue_policy({}, kBdpBytes, true, true);
  EXPECT_EQ(last.data_capacity_bytes, 600'000u);
  EXPECT_FALSE(last.marks);
  EXPECT_TRUE(last.faces_host);
  EXPECT_FALSE(marks_ecn(last, 600'000, 0));
}

TEST(QueuePolicy, HasDeepQueuesWhereNothingIsTrimmed) {
  EXPECT_EQ(make_queue_policy({}, kBdpBytes, false, false).data_capacity_bytes, 2'000'000u);
  EXPECT_EQ(make_queue_policy({}, kBdpBytes, false, true).data_capacity_bytes, 2'000'000u);
  EXPECT_FALSE(make_queue_policy({}, kBdpBytes, false, false).trims);
}

TEST(QueuePolicy, HoldsEightFullPacketsHoweverShortTheFabric) {
  const QueuePolicy policy = make_queue_policy({}, 10, true, false);
  EXPECT_EQ(policy.data_capacity_bytes, 8u * 4'300);
  EXPECT_EQ(policy.control_capacity_bytes, 8u * 4'300);
}

TEST(QueuePolicy, StaysWithinItsNumbersHoweverLongTheFabric) {
  const QueuePolicy policy = make_queue_policy({}, std::uint64_t{1} << 40, true, true);
  EXPECT_EQ(policy.data_capacity_bytes, 4'000'000'000u);
  EXPECT_EQ(admit_data(policy, policy.data_capacity_bytes, 9'000, true), Admission::kTrim);
}

TEST(QueuePolicy, TakesWhatFitsAndTrimsOrDropsTheRest) {
  QueuePolicy policy = make_queue_policy({}, kBdpBytes, true, false);
  EXPECT_EQ(admit_data(policy, 396'000, 4'000, true), Admission::kEnqueue);
  EXPECT_EQ(admit_data(policy, 396'000, 4'001, true), Admission::kTrim);
  EXPECT_EQ(admit_data(policy, 396'000, 4'001, false), Admission::kDrop);
  policy.trims = false;
  EXPECT_EQ(admit_data(policy, 396'000, 4'001, true), Admission::kDrop);
  EXPECT_EQ(admit_control(policy, 799'936, 64), Admission::kEnqueue);
  EXPECT_EQ(admit_control(policy, 799'937, 64), Admission::kDrop);
}

TEST(QueuePolicy, MarksNeverBelowTheRampAlwaysAboveItAndInProportionOnIt) {
  const QueuePolicy policy = make_queue_policy({}, kBdpBytes, true, false);
  EXPECT_FALSE(marks_ecn(policy, 80'000, 0));
  EXPECT_TRUE(marks_ecn(policy, 80'001, 0));
  EXPECT_FALSE(marks_ecn(policy, 319'999, 0xFFFF'FFFF));
  EXPECT_TRUE(marks_ecn(policy, 320'000, 0xFFFF'FFFF));
  Prng random(7);
  unsigned marked = 0;
  for (unsigned i = 0; i < 100'000; ++i)
    marked += marks_ecn(policy, 140'000, random.next32()) ? 1 : 0;
  // A quarter up the ramp; five standard deviations are 685.
  EXPECT_NEAR(marked, 25'000, 700);
}

}  // namespace
}  // namespace mrc::fabric
