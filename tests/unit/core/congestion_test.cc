#include "core/cc/congestion.h"

#include <gtest/gtest.h>

#include "core/cc/none.h"
#include "core/cc/nscc_parameters.h"

namespace mrc::core {
namespace {

constexpr CcEnvironment kNetwork{.bits_per_second = 100'000'000'000, .mtu_bytes = 4'160};

// The books and the gate of the base class, with a window and pacing that the test sets.
class FixedWindow final : public CongestionController {
 public:
  explicit FixedWindow(std::int64_t window_bytes) : window_bytes_(window_bytes) {}
  void pace(TimeNs next_send) { next_send_ = next_send; }

  void on_packet_sent(TimeNs, std::int64_t) override {}
  void on_ack(const AckSample&) override {}
  void on_trim(TimeNs, std::int64_t, bool) override {}
  void on_loss(TimeNs, std::int64_t) override {}
  void set_bandwidth(std::uint64_t) override {}
  std::int64_t window_bytes() const override { return window_bytes_; }
  DurationNs base_rtt_ns() const override { return 10'000; }

 private:
  std::int64_t window_bytes_;
};

TEST(MakeController, ChoosesTheAlgorithmOfTheProfile) {
  const auto none = make_controller({.algorithm = CcAlgorithm::kNone}, kNetwork);
  EXPECT_EQ(none->window_bytes(), kUnlimitedWindowBytes);
  const auto nscc = make_controller({.algorithm = CcAlgorithm::kNscc}, kNetwork);
  EXPECT_LT(nscc->window_bytes(), kMaxWindowBytes);
}

TEST(MakeController, HandsOnTheBaseRttOfTheProfile) {
  for (const CcAlgorithm algorithm : {CcAlgorithm::kNone, CcAlgorithm::kNscc}) {
    CcProfile profile{.algorithm = algorithm};
    profile.nscc.base_rtt_ns = 7'000;
    EXPECT_EQ(make_controller(profile, kNetwork)->base_rtt_ns(), 7'000);
  }
}

TEST(CongestionController, APacketGoesThatFitsTheWindow) {
  FixedWindow cc(10'000);
  cc.on_sent(6'000);
  EXPECT_TRUE(cc.may_send(0, 4'000));
  EXPECT_FALSE(cc.may_send(0, 4'001));
  cc.on_left_network(1);
  EXPECT_TRUE(cc.may_send(0, 4'001));
}

// Otherwise a window below the size of a packet would stop a queue pair for ever.
TEST(CongestionController, WithNothingInFlightAnyPacketGoes) {
  FixedWindow cc(1'000);
  EXPECT_TRUE(cc.may_send(0, 9'000));
  cc.on_sent(9'000);
  EXPECT_FALSE(cc.may_send(0, 64));
  cc.on_left_network(9'000);
  EXPECT_EQ(cc.in_flight_bytes(), 0);
  EXPECT_TRUE(cc.may_send(0, 9'000));
}

TEST(CongestionController, PacingHoldsBackWhatWouldFit) {
  FixedWindow cc(10'000);
  cc.pace(500);
  EXPECT_FALSE(cc.may_send(499, 64));
  EXPECT_TRUE(cc.may_send(500, 64));
}

TEST(CongestionControllerDeathTest, MoreCannotLeaveTheNetworkThanWasSent) {
  FixedWindow cc(10'000);
  cc.on_sent(100);
  EXPECT_DEATH(cc.on_left_network(101), "");
}

}  // namespace
}  // namespace mrc::core
