#include "os/processors.h"

#include <gtest/gtest.h>
#include <sched.h>

#include <cstdlib>

namespace mrc::os {
namespace {

TEST(Processors, AQuotaCountsWholeProcessors) {
  EXPECT_EQ(quota_of("200000 100000"), 2U);
  EXPECT_EQ(quota_of("250000 100000"), 2U);
  EXPECT_EQ(quota_of("50000 100000"), 1U) << "half of one is one that is busy half of the time";
  EXPECT_EQ(quota_of("max 100000"), 0U);
  EXPECT_EQ(quota_of(""), 0U);
  EXPECT_EQ(quota_of("200000"), 0U);
  EXPECT_EQ(quota_of("200000 0"), 0U);
  EXPECT_EQ(quota_of("99999999999999999999999 100000"), 0U);
}

TEST(Processors, AffinityLimitsThem) {
  cpu_set_t before;
  ASSERT_EQ(sched_getaffinity(0, sizeof(before), &before), 0);
  EXPECT_GE(usable_processors(), 1U);
  EXPECT_LE(usable_processors(), static_cast<unsigned>(CPU_COUNT(&before)));
  cpu_set_t one;
  CPU_ZERO(&one);
  for (int i = 0; i < CPU_SETSIZE; ++i) {
    if (!CPU_ISSET(i, &before)) continue;
    CPU_SET(i, &one);
    break;
  }
  ASSERT_EQ(sched_setaffinity(0, sizeof(one), &one), 0);
  EXPECT_EQ(usable_processors(), 1U);
  ASSERT_EQ(sched_setaffinity(0, sizeof(before), &before), 0);
}

TEST(Processors, LaunchersSayHowManyRanksThereAre) {
  EXPECT_EQ(ranks_in("8"), 8U);
  EXPECT_EQ(ranks_in("8(x2)"), 8U);
  EXPECT_EQ(ranks_in(""), 0U);
  EXPECT_EQ(ranks_in("eight"), 0U);
  EXPECT_EQ(ranks_in("8 "), 0U);
  EXPECT_EQ(ranks_in("-1"), 0U);
  EXPECT_EQ(ranks_in("99999999"), 0U);
  ASSERT_EQ(setenv("OMPI_COMM_WORLD_LOCAL_SIZE", "3", 1), 0);
  ASSERT_EQ(unsetenv("LOCAL_WORLD_SIZE"), 0);
  EXPECT_EQ(ranks_on_host(), 3U);
  ASSERT_EQ(setenv("LOCAL_WORLD_SIZE", "5", 1), 0);
  EXPECT_EQ(ranks_on_host(), 5U);
  unsetenv("LOCAL_WORLD_SIZE");
  unsetenv("OMPI_COMM_WORLD_LOCAL_SIZE");
}

}  // namespace
}  // namespace mrc::os
