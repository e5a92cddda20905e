#include "os/interrupt.h"

#include <gtest/gtest.h>

#include <csignal>

namespace mrc::os {
namespace {

TEST(Interrupt, SignalsRaiseAFlagAndNothingElse) {
  for (const int number : {SIGINT, SIGTERM}) {
    const Interrupt interrupt;
    EXPECT_FALSE(Interrupt::raised());
    std::raise(number);
    EXPECT_TRUE(Interrupt::raised());
    Interrupt::clear();
    EXPECT_FALSE(Interrupt::raised());
  }
}

TEST(Interrupt, ANewOneStartsWithTheFlagDown) {
  {
    const Interrupt interrupt;
    std::raise(SIGINT);
  }
  const Interrupt again;
  EXPECT_FALSE(Interrupt::raised());
}

TEST(InterruptDeathTest, TheSecondSignalEndsTheProgram) {
  EXPECT_EXIT(
      {
        const Interrupt interrupt;
        std::raise(SIGTERM);
        std::raise(SIGTERM);
      },
      testing::KilledBySignal(SIGTERM), "");
}

TEST(InterruptDeathTest, WithoutOneASignalEndsTheProgram) {
  EXPECT_EXIT(
      {
        { const Interrupt interrupt; }
        std::raise(SIGINT);
      },
      testing::KilledBySignal(SIGINT), "");
}

}  // namespace
}  // namespace mrc::os
