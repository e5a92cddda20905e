#include "nic/endpoint_requests.h"

#include <gtest/gtest.h>

#include <memory>
#include <optional>
#include <vector>

#include "core/rtt.h"
#include "device_loop.h"
#include "nic/device.h"

namespace mrc::nic {
namespace {

constexpr TimeNs kSentAt = 1'000'000;
constexpr TimeNs kNow = kSentAt + 50'000;

// One request to a peer, and who waits for its answer.
class RequestTest : public testing::Test {
 protected:
  explicit RequestTest(EndpointRequests::Pending request) {
    answers_.reserve(4);
    batch_.answers = &answers_;
    batch_.missing = 1;
    request.user_id = 7;
    request.route.peer.gid = peer_;
    request.batch = &batch_;
    EXPECT_TRUE(requests_.add(request, id_));
  }

  const wire::IpAddress peer_ = wire::parse_address("10.0.0.2").value();
  std::vector<EndpointAnswer> answers_;
  RequestBatch batch_;
  EndpointRequests requests_;
  std::uint16_t id_ = 0;
};

class EndpointRequestsTest : public RequestTest {
 protected:
  EndpointRequestsTest() : RequestTest({.op = wire::EndpointOp::kEvProbe, .sent_at = kSentAt}) {}
  // The answer as it comes in through `port` after the peer held it for `service_ns`.
  bool answer(unsigned port, DurationNs service_ns, const wire::IpAddress& from) {
    wire::Packet packet;
    packet.bth = {.opcode = wire::Opcode::kEndpointResponse, .psn = Psn(id_)};
    packet.body = wire::EndpointResponse{.op = wire::EndpointOp::kEvProbe,
                                         .timestamp_ticks = core::ticks_at(kSentAt + service_ns)};
    return requests_.settle(kNow, {.gid = from, .port = static_cast<PortId>(port)}, packet);
  }
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

// --- Port status that the peer takes for old ---

class PortStatusRequestTest : public RequestTest {
 protected:
  PortStatusRequestTest()
      : RequestTest({.op = wire::EndpointOp::kPortStatusUpdate,
                     .ports = PortMask(0b1011),
                     .route = {.port = PortId{2}}}) {}
  static wire::Packet answer(std::uint16_t id) {
    wire::Packet packet;
    packet.bth = {.opcode = wire::Opcode::kEndpointResponse, .psn = Psn(id)};
    packet.body = wire::EndpointResponse{.op = wire::EndpointOp::kPortStatusUpdate};
    return packet;
  }
  std::optional<std::uint16_t> id_behind(std::uint16_t believed) {
    return requests_.id_behind({.gid = peer_}, answer(believed));
  }
};

TEST_F(PortStatusRequestTest, GoesOnBehindTheIdThatIsBelieved) {
  const auto behind = id_behind(30'000);
  ASSERT_TRUE(behind.has_value());
  // With room for what the engine says next, which must not look like the same once more.
  EXPECT_GT(*behind, 30'001);
  EXPECT_FALSE(requests_.settle(kNow, {.gid = peer_}, answer(id_)));
  EXPECT_TRUE(requests_.settle(kNow, {.gid = peer_}, answer(*behind)));
  ASSERT_EQ(answers_.size(), 1U);
  EXPECT_EQ(answers_[0].id, 7);
}

TEST_F(PortStatusRequestTest, IsSentAgainAsItWas) {
  const auto net = std::make_shared<test::LoopNet>();
  test::LoopBackend backend(net, wire::parse_address("10.0.0.1").value(), 2);
  const test::LoopBackend peer(net, peer_, 2);
  std::vector<wire::Packet> sent;
  const test::LoopNet::FilterScope watch(
      *net, [&](const wire::Packet& packet, PortId port, std::uint32_t) {
        EXPECT_EQ(port, PortId{2});
        sent.push_back(packet);
        return true;
      });
  requests_.send(id_, kSentAt, 3, backend);
  const auto behind = id_behind(5);
  ASSERT_TRUE(behind.has_value());
  requests_.send(*behind, kNow, 3, backend);
  ASSERT_EQ(sent.size(), 2U);
  EXPECT_EQ(sent[0].bth.psn, Psn(id_));
  EXPECT_EQ(sent[1].bth.psn, Psn(*behind));
  for (const wire::Packet& packet : sent) {
    const auto& request = std::get<wire::EndpointRequest>(packet.body);
    EXPECT_EQ(request.op, wire::EndpointOp::kPortStatusUpdate);
    EXPECT_EQ(request.port_status, 0b1011U);
    EXPECT_EQ(request.vendor_info, 3);
  }
}

// Old news, another host, another kind of answer.
TEST_F(PortStatusRequestTest, IsNotMovedByWhatDoesNotRefuseIt) {
  EXPECT_FALSE(id_behind(static_cast<std::uint16_t>(id_ - 1)).has_value());
  const auto other = wire::parse_address("10.0.0.3").value();
  EXPECT_FALSE(requests_.id_behind({.gid = other}, answer(5)).has_value());
  wire::Packet probe = answer(5);
  probe.body = wire::EndpointResponse{.op = wire::EndpointOp::kEvProbe};
  EXPECT_FALSE(requests_.id_behind({.gid = peer_}, probe).has_value());
  EXPECT_TRUE(requests_.settle(kNow, {.gid = peer_}, answer(id_)));
}

// A claim that a port is down is confirmed by the id right behind the challenge.
TEST_F(PortStatusRequestTest, MeetsAChallengeExactly) {
  const auto behind = id_behind(30'000);
  ASSERT_TRUE(behind.has_value());
  EXPECT_EQ(id_behind(static_cast<std::uint16_t>(*behind + 9)), *behind + 10);
}

TEST_F(PortStatusRequestTest, IsNotLedOnForEver) {
  std::uint16_t believed = 5;
  unsigned moves = 0;
  while (const auto behind = id_behind(believed)) {
    believed = static_cast<std::uint16_t>(*behind + 1);
    ASSERT_LT(++moves, 10U);
  }
  EXPECT_EQ(moves, 6U);
}

}  // namespace
}  // namespace mrc::nic
