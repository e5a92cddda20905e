#include "nic/engine/crowding.h"

#include <gtest/gtest.h>

namespace mrc::nic::test {
namespace {

struct Poller {
  bool poll_after(DurationNs pause) {
    now += pause;
    return crowding.notice(now, [this] {
      ++asked;
      return lost;
    });
  }
  bool poll_without_pause(unsigned times) {
    bool crowded = false;
    for (unsigned i = 0; i < times; ++i)
      crowded = poll_after(kMicrosecondNs);
    return crowded;
  }

  Crowding crowding;
  TimeNs now = kSecondNs;
  long lost = 5;
  unsigned asked = 0;
};

TEST(Crowding, ATimeSliceLostWhilePollingIsNoticed) {
  Poller poller;
  EXPECT_FALSE(poller.poll_without_pause(1'000));
  ++poller.lost;
  EXPECT_TRUE(poller.poll_after(3 * kMillisecondNs));
  EXPECT_TRUE(poller.poll_after(Crowding::kLastsNs - 1));
  EXPECT_FALSE(poller.poll_after(1)) << "not for ever";
}

TEST(Crowding, AProgramThatWentAwayByItselfIsAlone) {
  Poller poller;
  poller.poll_without_pause(1'000);
  EXPECT_FALSE(poller.poll_after(3 * kMillisecondNs)) << "it slept, or computed";
  ++poller.lost;
  EXPECT_FALSE(poller.poll_after(3 * kMillisecondNs)) << "it polls now and then only";
}

TEST(Crowding, LosingTheProcessorForAMomentIsNothing) {
  Poller poller;
  poller.poll_without_pause(1'000);
  ++poller.lost;
  EXPECT_FALSE(poller.poll_after(50 * kMicrosecondNs));
}

TEST(Crowding, TheKernelIsAskedOnceInAStreak) {
  Poller poller;
  poller.poll_without_pause(10'000);
  EXPECT_EQ(poller.asked, 1U);
}

}  // namespace
}  // namespace mrc::nic::test
