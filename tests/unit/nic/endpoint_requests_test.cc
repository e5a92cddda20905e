#include "nic/endpoint_requests.h"

#include <gtest/gtest.h>

#include <vector>

#include "core/rtt.h"
#include "nic/device.h"

namespace mrc::nic {
namespace {

constexpr TimeNs kSentAt = 1'000'000;
constexpr TimeNs kNow = kSentAt + 50'000;

class EndpointRequestsTest : public testing::Test {
 protected:
  EndpointRequestsTest() {
    answers_.reserve(4);
    batch_.answers = &answers_;
    batch_.missing = 1;
    EXPECT_TRUE(requests_.add({.peer = {.gid = peer_},
                               .op = wire::EndpointOp::kEvProbe,
                               .user_id = 7,
                               .sent_at = kSentAt,
                               .batch = &batch_},
                              id_));
  }
  // The answer as it comes in through `port` after the peer held it for `service_ns`.
  bool answer(unsigned port, DurationNs service_ns, const wire::IpAddress& from) {
    wire::Packet packet;
    packet.bth = {.opcode = wire::Opcode::kEndpointResponse, .psn = Psn(id_)};
    packet.body = wire::EndpointResponse{.op = wire::EndpointOp::kEvProbe,
                                         .timestamp_ticks = core::ticks_at(kSentAt + service_ns)};
    return requests_.settle(kNow, {.gid = from, .port = static_cast<PortId>(port)}, packet);
  }

  const wire::IpAddress peer_ = wire::parse_address("10.0.0.2").value();
  std::vector<EndpointAnswer> answers_;
  RequestBatch batch_;
  EndpointRequests requests_;
  std::uint16_t id_ = 0;
};

TEST_F(EndpointRequestsTest, AnAnswerNamesThePortItArrivedOn) {
  ASSERT_TRUE(answer(3, 0, peer_));
  ASSERT_EQ(answers_.size(), 1U);
  EXPECT_EQ(answers_[0].id, 7);
  EXPECT_EQ(answers_[0].port, PortId{3});
  EXPECT_EQ(batch_.missing, 0U);
}

TEST_F(EndpointRequestsTest, ServiceTimeCountsAsTakenOutOnlyWhereThePeerToldIt) {
  ASSERT_TRUE(answer(1, 0, peer_));
  EXPECT_FALSE(answers_[0].service_time_subtracted);
  EXPECT_EQ(answers_[0].rtt_ns, kNow - kSentAt);
}

TEST_F(EndpointRequestsTest, AToldServiceTimeIsTakenOut) {
  ASSERT_TRUE(answer(1, 20'480, peer_));
  EXPECT_TRUE(answers_[0].service_time_subtracted);
  EXPECT_LT(answers_[0].rtt_ns, kNow - kSentAt - 20'000);
}

TEST_F(EndpointRequestsTest, MoreServiceTimeThanThereWasIsNotBelieved) {
  ASSERT_TRUE(answer(1, kNow - kSentAt + 10'000, peer_));
  EXPECT_FALSE(answers_[0].service_time_subtracted);
  EXPECT_EQ(answers_[0].rtt_ns, kNow - kSentAt);
}

TEST_F(EndpointRequestsTest, AnswersOfOthersAndSecondOnesAreNoneOfOurs) {
  EXPECT_FALSE(answer(1, 0, wire::parse_address("10.0.0.3").value()));
  EXPECT_TRUE(answer(1, 0, peer_));
  EXPECT_FALSE(answer(1, 0, peer_));
  EXPECT_EQ(answers_.size(), 1U);
}

}  // namespace
}  // namespace mrc::nic
