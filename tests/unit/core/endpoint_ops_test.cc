// Operations between endpoints: port status, EV probes; and what ports do to queue pairs.
#include <gtest/gtest.h>

#include "core/endpoint_request.h"
#include "core/rtt.h"
#include "unit/core/endpoint_fixture.h"

namespace mrc::core {
namespace {

using wire::EndpointOp;

const wire::EndpointRequest& request_of(const TxPacket& packet) {
  return *std::get_if<wire::EndpointRequest>(&packet.packet.body);
}

std::uint16_t id_of(const TxPacket& packet) {
  return static_cast<std::uint16_t>(packet.packet.bth.psn.value());
}

TEST(EndpointRequestPacket, CarriesIdOperationAndStamp) {
  wire::Packet packet;
  build_endpoint_request(
      128'000,
      {.op = EndpointOp::kPortStatusUpdate, .id = 9, .ports = PortMask(0b101), .vendor_info = 4},
      packet);
  EXPECT_EQ(packet.bth.opcode, wire::Opcode::kEndpointRequest);
  EXPECT_EQ(packet.bth.destination, kEndpointQp);
  EXPECT_EQ(packet.bth.psn, Psn(9));
  const auto& body = *std::get_if<wire::EndpointRequest>(&packet.body);
  EXPECT_EQ(body.op, EndpointOp::kPortStatusUpdate);
  EXPECT_EQ(body.port_status, 0b101U);
  EXPECT_EQ(body.vendor_info, 4);
  EXPECT_EQ(body.timestamp.ticks, 1'000);
}

TEST(EndpointPorts, OnlyThoseThatExistCanBeSet) {
  Engine e;
  EXPECT_EQ(e.endpoint->set_port_up(e.now, PortId{0}, false).code(), ErrorCode::kInvalidArgument);
  EXPECT_EQ(e.endpoint->set_port_up(e.now, PortId{3}, false).code(), ErrorCode::kInvalidArgument);
  EXPECT_EQ(e.endpoint->ports_up(), kBothPorts);
}

TEST(EndpointPorts, AChangeIsAnEventAndNoChangeIsNone) {
  Engine e;
  ASSERT_TRUE(e.endpoint->set_port_up(e.now, PortId{2}, false).ok());
  ASSERT_TRUE(e.endpoint->set_port_up(e.now, PortId{2}, false).ok());
  const std::vector<Event> events = e.events();
  ASSERT_EQ(events.size(), 1U);
  EXPECT_EQ(events[0].kind, EventKind::kLocalPort);
  EXPECT_EQ(events[0].port, PortId{2});
  EXPECT_FALSE(events[0].ok);
  EXPECT_EQ(events[0].time, e.now);
  EXPECT_EQ(e.endpoint->ports_up(), PortMask(0b01));
}

TEST(EndpointPorts, PeersAreToldUntilTheyAnswer) {
  Engine e;
  e.connect();
  ASSERT_TRUE(e.endpoint->set_port_up(e.now, PortId{2}, false).ok());
  std::vector<TxPacket> told = e.drain();
  ASSERT_EQ(told.size(), 1U);
  EXPECT_EQ(told[0].port, PortId{1}) << "the other one is down";
  EXPECT_EQ(told[0].destination, kPeer);
  EXPECT_EQ(request_of(told[0]).op, EndpointOp::kPortStatusUpdate);
  EXPECT_EQ(request_of(told[0]).port_status, 0b01U);
  const std::uint16_t id = id_of(told[0]);
  e.now = e.endpoint->next_deadline();
  e.endpoint->on_timer(e.now);
  told = e.drain();
  ASSERT_EQ(told.size(), 1U) << "again";
  EXPECT_EQ(id_of(told[0]), id);
  EXPECT_EQ(e.take(Engine::response(EndpointOp::kPortStatusUpdate, id)).drop, DropReason::kNone);
  e.endpoint->on_timer(e.now + kSecondNs);
  EXPECT_TRUE(e.drain().empty());
  EXPECT_EQ(e.take(Engine::response(EndpointOp::kPortStatusUpdate, id)).drop,
            DropReason::kUnknownProbe);
}

TEST(EndpointPorts, DataLeavesThePlaneThatThePeerCallsDown) {
  Engine e;
  e.connect();
  const RxResult heard = e.take(Engine::request(EndpointOp::kPortStatusUpdate, 7, PortMask(0b10)),
                                {.port = PortId{2}});
  EXPECT_EQ(heard.drop, DropReason::kNone);
  const std::vector<Event> events = e.events();
  ASSERT_FALSE(events.empty());
  EXPECT_EQ(events[0].kind, EventKind::kRemotePorts);
  EXPECT_EQ(events[0].ports, PortMask(0b10));
  EXPECT_EQ(events[0].peer, kPeer);
  e.drain();
  ASSERT_TRUE(e.post(8 * kMtu).ok());
  const std::vector<TxPacket> data = e.drain();
  ASSERT_EQ(data.size(), 8U);
  for (const TxPacket& packet : data)
    EXPECT_EQ(packet.port, PortId{2});
}

TEST(EndpointPorts, ARequestIsAnsweredWithItsIdAndStamp) {
  Engine e;
  e.connect();
  ASSERT_EQ(e.take(Engine::request(EndpointOp::kPortStatusUpdate, 7)).drop, DropReason::kNone);
  e.now += 10 * kTickNs;
  const std::vector<TxPacket> answers = e.drain();
  ASSERT_EQ(answers.size(), 1U);
  EXPECT_EQ(answers[0].packet.bth.opcode, wire::Opcode::kEndpointResponse);
  EXPECT_EQ(id_of(answers[0]), 7);
  const auto& body = *std::get_if<wire::EndpointResponse>(&answers[0].packet.body);
  EXPECT_EQ(body.op, EndpointOp::kPortStatusUpdate);
  EXPECT_EQ(body.timestamp_ticks, 3'010) << "with the time it spent here";
}

TEST(EndpointPorts, NewsFromStrangersIsDropped) {
  Engine e;
  e.connect();
  EXPECT_EQ(
      e.take(Engine::request(EndpointOp::kPortStatusUpdate, 7, PortMask(0)), {.source = kOtherPeer})
          .drop,
      DropReason::kWrongSource);
  EXPECT_TRUE(e.drain().empty());
}

TEST(EvProbe, IsAnsweredToAnybodyOnThePathItTook) {
  Engine e;
  ASSERT_EQ(e.take(Engine::request(EndpointOp::kEvProbe, 8),
                   {.source = kOtherPeer, .port = PortId{2}, .entropy = 0xABCD})
                .drop,
            DropReason::kNone);
  EXPECT_TRUE(e.drain(PortMask(0b01)).empty()) << "its port is busy";
  const std::vector<TxPacket> answers = e.drain();
  ASSERT_EQ(answers.size(), 1U);
  EXPECT_EQ(answers[0].destination, kOtherPeer);
  EXPECT_EQ(answers[0].port, PortId{2});
  EXPECT_EQ(answers[0].entropy, 0xABCDU);
  EXPECT_EQ(answers[0].local_qp, kEndpointQp);
}

TEST(EvProbe, OfAPortThatIsDownHereIsAnsweredOnTheLowestThatIsUp) {
  Engine e;
  ASSERT_TRUE(e.endpoint->set_port_up(e.now, PortId{2}, false).ok());
  ASSERT_EQ(e.take(Engine::request(EndpointOp::kEvProbe, 8), {.port = PortId{2}}).drop,
            DropReason::kNone);
  const std::vector<TxPacket> answers = e.drain();
  ASSERT_EQ(answers.size(), 1U);
  EXPECT_EQ(answers[0].port, PortId{1});
}

class ControllerProbe : public testing::Test {
 protected:
  Status ask(std::uint16_t id) {
    return engine_.endpoint->send_endpoint_probe(engine_.now, {.peer = kPeer,
                                                               .port = PortId{2},
                                                               .entropy = 0xBEEF,
                                                               .request_id = id,
                                                               .timeout_ns = 50'000});
  }
  Engine engine_{EndpointConfig{.endpoint_request_capacity = 2}};
};

TEST_F(ControllerProbe, LeavesOnItsPathAndItsAnswerGivesARoundTrip) {
  ASSERT_TRUE(ask(5).ok());
  EXPECT_TRUE(engine_.endpoint->wants_to_send());
  EXPECT_TRUE(engine_.drain(PortMask(0b01)).empty());
  const std::vector<TxPacket> sent = engine_.drain();
  ASSERT_EQ(sent.size(), 1U);
  EXPECT_EQ(sent[0].port, PortId{2});
  EXPECT_EQ(sent[0].entropy, 0xBEEFU);
  EXPECT_EQ(sent[0].traffic_class, TrafficClass::kNoTrim);
  EXPECT_EQ(request_of(sent[0]).op, EndpointOp::kEvProbe);
  const std::uint16_t stamp = request_of(sent[0]).timestamp.ticks;
  engine_.now += 9'000;
  EXPECT_EQ(
      engine_.take(Engine::response(EndpointOp::kEvProbe, 5, stamp), {.source = kOtherPeer}).drop,
      DropReason::kWrongSource);
  EXPECT_EQ(engine_.take(Engine::response(EndpointOp::kEvProbe, 5, stamp)).drop, DropReason::kNone);
  const std::vector<Event> events = engine_.events();
  ASSERT_EQ(events.size(), 1U);
  EXPECT_EQ(events[0].kind, EventKind::kEndpointAnswer);
  EXPECT_EQ(events[0].request_id, 5);
  EXPECT_TRUE(events[0].ok);
  EXPECT_NEAR(static_cast<double>(events[0].rtt_ns), 9'000, kTickNs);
}

TEST_F(ControllerProbe, WithoutAnAnswerIsReportedWhenItsTimeIsOver) {
  ASSERT_TRUE(ask(5).ok());
  engine_.drain();
  EXPECT_EQ(engine_.endpoint->next_deadline(), engine_.now + 50'000);
  engine_.now += 50'000;
  engine_.endpoint->on_timer(engine_.now);
  const std::vector<Event> events = engine_.events();
  ASSERT_EQ(events.size(), 1U);
  EXPECT_FALSE(events[0].ok);
  EXPECT_EQ(events[0].peer, kPeer);
  EXPECT_EQ(engine_.endpoint->next_deadline(), kNever);
  EXPECT_TRUE(ask(5).ok()) << "the id is free again";
}

TEST_F(ControllerProbe, IsRefusedWhereItCannotBe) {
  Endpoint& endpoint = *engine_.endpoint;
  EXPECT_EQ(endpoint.send_endpoint_probe(0, {.port = PortId{3}}).code(),
            ErrorCode::kInvalidArgument);
  EXPECT_EQ(endpoint.send_endpoint_probe(0, {.timeout_ns = 0}).code(), ErrorCode::kInvalidArgument);
  ASSERT_TRUE(ask(1).ok());
  EXPECT_EQ(ask(1).code(), ErrorCode::kBusy);
  ASSERT_TRUE(ask(2).ok());
  EXPECT_EQ(ask(3).code(), ErrorCode::kNoSpace);
}

}  // namespace
}  // namespace mrc::core
