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

TEST(Crowding, TheKernelIsAskedSeldom) {
  Poller poller;
  poller.poll_without_pause(10'000);
  EXPECT_LE(poller.asked, 10'000 / Crowding::kTurns + 1);
}

TEST(Crowding, WhoGivesItsProcessorAwayAfterEachPollTakesTurns) {
  Poller poller;
  const auto poll_in_turns = [&] {
    for (unsigned i = 0; i < 2 * Crowding::kTurns; ++i) {
      ++poller.lost;
      EXPECT_FALSE(poller.poll_after(100 * kMicrosecondNs)) << "it need not wait as well";
    }
  };
  EXPECT_FALSE(poller.crowding.takes_turns());
  poll_in_turns();
  EXPECT_TRUE(poller.crowding.takes_turns());
  poller.poll_without_pause(2 * Crowding::kTurns);
  EXPECT_FALSE(poller.crowding.takes_turns()) << "it has a processor to itself again";
}

TEST(Crowding, WhoPollsNowAndThenTakesNoTurns) {
  Poller poller;
  for (unsigned i = 0; i < 4 * Crowding::kTurns; ++i) {
    ++poller.lost;
    poller.poll_after(2 * kMillisecondNs);
  }
  EXPECT_FALSE(poller.crowding.takes_turns());
}

}  // namespace
}  // namespace mrc::nic::test
