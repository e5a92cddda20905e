#include "core/cc/none.h"

#include <gtest/gtest.h>

#include <memory>

namespace mrc::core {
namespace {

std::unique_ptr<CongestionController> make_none(std::uint32_t base_rtt_ns = 0) {
  CcProfile profile;
  profile.algorithm = CcAlgorithm::kNone;
  profile.nscc.base_rtt_ns = base_rtt_ns;
  return make_controller(profile, {.bits_per_second = 100'000'000'000, .mtu_bytes = 4'160});
}

TEST(NoCongestionControl, SendsWhateverIsInFlight) {
  const auto cc = make_none();
  cc->on_sent(1'000'000'000'000);
  EXPECT_TRUE(cc->may_send(0, 4'160));
  EXPECT_EQ(cc->in_flight_bytes(), 1'000'000'000'000);
}

TEST(NoCongestionControl, NoSignalClosesTheWindowOrPaces) {
  const auto cc = make_none();
  const std::int64_t before = cc->window_bytes();
  for (TimeNs now = 0; now < 1'000; ++now) {
    cc->on_packet_sent(now, 4'160);
    cc->on_trim(now, 4'160, true);
    cc->on_loss(now, 4'160);
    cc->on_ack({.now = now, .acked_bytes = 4'160, .marked = true, .window_penalty = 127});
    cc->set_bandwidth(0);
  }
  EXPECT_EQ(cc->window_bytes(), before);
  EXPECT_EQ(cc->next_send(), 0);
}

TEST(NoCongestionControl, StillLearnsTheBaseRtt) {
  const auto cc = make_none(10'000);
  EXPECT_EQ(cc->base_rtt_ns(), 10'000);
  cc->on_ack({.now = 1, .acked_bytes = 1, .rtt_ns = 6'000});
  cc->on_ack({.now = 2, .acked_bytes = 1, .rtt_ns = 7'000});
  cc->on_ack({.now = 3, .acked_bytes = 1, .rtt_ns = 0});
  cc->on_ack({.now = 4, .acked_bytes = 1, .rtt_ns = -5});
  EXPECT_EQ(cc->base_rtt_ns(), 6'000);
}

TEST(NoCongestionControl, UnknownBaseRttStartsAtTheReference) {
  EXPECT_EQ(make_none()->base_rtt_ns(), kDefaultBaseRttNs);
}

}  // namespace
}  // namespace mrc::core
