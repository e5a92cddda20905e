#include "nic/engine/receive_pressure.h"

#include <gtest/gtest.h>

#include "device_fixture.h"

namespace mrc::nic::test {
namespace {

constexpr DurationNs kStep = ReceivePressure::kStepNs;
constexpr DurationNs kQuiet = ReceivePressure::kQuietNs;

TEST(ReceivePressure, NothingIsAskedForWhileNothingIsDropped) {
  ReceivePressure pressure;
  for (TimeNs now = kSecondNs; now < 2 * kSecondNs; now += kStep)
    EXPECT_FALSE(pressure.update(now, 0));
  EXPECT_EQ(pressure.window_units(8), 8);
  EXPECT_EQ(pressure.penalty(), core::ReceiverPenalty{});
}

TEST(ReceivePressure, WindowsAreHalvedOnceInAWhile) {
  ReceivePressure pressure;
  TimeNs now = kSecondNs;
  EXPECT_TRUE(pressure.update(now, 1));
  EXPECT_EQ(pressure.window_units(8), 4);
  EXPECT_EQ(pressure.penalty().value, ReceivePressure::kPenalty);
  EXPECT_FALSE(pressure.update(now + 1, 2)) << "of the same burst";
  std::uint64_t dropped = 2;
  for (unsigned i = 0; i < 20; ++i)
    pressure.update(now += kStep, ++dropped);
  EXPECT_EQ(pressure.window_units(255), 255 >> ReceivePressure::kMostHalvings);
  EXPECT_EQ(pressure.window_units(8), 1) << "never nothing";
}

TEST(ReceivePressure, QuietBringsTheWindowsBackStepByStep) {
  ReceivePressure pressure;
  TimeNs now = kSecondNs;
  pressure.update(now, 1);
  pressure.update(now += kStep, 2);
  EXPECT_EQ(pressure.window_units(8), 2);
  EXPECT_FALSE(pressure.update(now + kQuiet - 1, 2));
  EXPECT_TRUE(pressure.update(now += kQuiet, 2));
  EXPECT_EQ(pressure.window_units(8), 4);
  EXPECT_EQ(pressure.penalty(), core::ReceiverPenalty{.restore = true});
  EXPECT_TRUE(pressure.update(now += kQuiet, 2));
  EXPECT_EQ(pressure.window_units(8), 8);
  EXPECT_TRUE(pressure.penalty().restore) << "the last ones have to hear of it, too";
  EXPECT_TRUE(pressure.update(now += kQuiet, 2));
  EXPECT_EQ(pressure.penalty(), core::ReceiverPenalty{});
  EXPECT_FALSE(pressure.update(now += kQuiet, 2));
}

TEST(ReceivePressure, AfterALongPauseAllIsBackAtOnce) {
  ReceivePressure pressure;
  TimeNs now = kSecondNs;
  std::uint64_t dropped = 0;
  for (unsigned i = 0; i < ReceivePressure::kMostHalvings; ++i)
    pressure.update(now += kStep, ++dropped);
  EXPECT_TRUE(pressure.update(now += 3600 * kSecondNs, dropped));
  EXPECT_EQ(pressure.window_units(255), 255);
}

// A device whose sockets hold 64 packets, and a peer that may have 512 on their way.
class DeviceUnderPressure : public LoopTest {
 protected:
  void send(bool dynamic) {
    a.make_qp();
    b.make_qp();
    connect(a, b, {.mpr = 4}, {.mpr_dest = 4, .dynamic_mpr = dynamic});
    Arena from(*a.device, a.domain, 4 << 20);
    Arena to(*b.device, b.domain, 4 << 20);
    from.fill(1);
    net->set_room(b.device->gid(), 64);
    for (unsigned i = 0; i < 64 && !(is_told = told(dynamic)); ++i) {
      ASSERT_EQ(a.post(write(from, to, 4 << 20)), 0);
      EXPECT_EQ(a.next_completion().status, core::CompletionStatus::kSuccess);
      EXPECT_EQ(to.first_wrong(0, to.size(), 1), to.size());
    }
    EXPECT_GT(b.device->report().backend.receive_overflow, 0U);
  }
  bool told(bool dynamic) { return dynamic && a.qp->report().status.window_psns < 4 * 128; }

  bool is_told = false;
};

TEST_F(DeviceUnderPressure, AsksForLessWhereThatWasAgreed) {
  send(/*dynamic=*/true);
  EXPECT_TRUE(is_told);
}

TEST_F(DeviceUnderPressure, KeepsTheWindowThatWasAgreedForGood) {
  send(/*dynamic=*/false);
  EXPECT_EQ(a.qp->report().status.window_psns, 4U * 128);
}

}  // namespace
}  // namespace mrc::nic::test
