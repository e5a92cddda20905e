// The transmit path: answers first, then endpoint requests, then the queue pairs in turn.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <set>

#include "core/rtt.h"
#include "unit/core/endpoint_fixture.h"

namespace mrc::core {
namespace {

using wire::Opcode;

constexpr QpNumber kSecondQp{0x112};

TEST(EndpointTx, AnswersGoBeforeRequestsAndRequestsBeforeData) {
  Engine e;
  e.connect();
  ASSERT_TRUE(e.post(64).ok());
  ASSERT_TRUE(e.endpoint->send_endpoint_probe(e.now, {.peer = kPeer, .request_id = 1}).ok());
  e.take(Engine::write(0));
  std::vector<Opcode> order;
  for (const TxPacket& packet : e.drain())
    order.push_back(packet.packet.bth.opcode);
  EXPECT_EQ(order, (std::vector{Opcode::kSack, Opcode::kAck, Opcode::kEndpointRequest,
                                Opcode::kWriteOnly}));
  EXPECT_FALSE(e.endpoint->wants_to_send());
}

TEST(EndpointTx, FillsInWhereAPacketGoesAndByWhichPath) {
  Engine e;
  e.connect();
  ASSERT_TRUE(e.post(64).ok());
  const std::vector<TxPacket> sent = e.drain();
  ASSERT_EQ(sent.size(), 1U);
  EXPECT_EQ(sent[0].destination, kPeer);
  EXPECT_EQ(sent[0].local_qp, kQp);
  EXPECT_EQ(sent[0].profile, &e.profile);
  EXPECT_EQ(sent[0].port, e.profile.port(sent[0].ev));
  EXPECT_EQ(sent[0].entropy, e.profile.entry(sent[0].ev).entropy);
  const auto& port = e.endpoint->counters().ports[static_cast<std::size_t>(sent[0].port) - 1];
  EXPECT_EQ(port.packets_sent, 1U);
  EXPECT_EQ(port.bytes_sent, wire::nominal_size(sent[0].packet, 64));
}

TEST(EndpointTx, OnlyFreePortsThatAreUpAreUsed) {
  Engine e;
  e.connect();
  ASSERT_TRUE(e.post(4 * kMtu).ok());
  TxPacket out;
  EXPECT_FALSE(e.endpoint->next_packet(e.now, PortMask(), out));
  for (const TxPacket& packet : e.drain(PortMask(0b10), 2))
    EXPECT_EQ(packet.port, PortId{2});
  ASSERT_TRUE(e.endpoint->set_port_up(e.now, PortId{2}, false).ok());
  EXPECT_TRUE(e.drain(PortMask(0b10)).empty());
  EXPECT_TRUE(e.endpoint->wants_to_send()) << "on the other port";
}

TEST(EndpointTx, QueuePairsTakeTurnsOfFourKilobytes) {
  Engine e;
  e.connect(kQp);
  e.connect(kSecondQp);
  ASSERT_TRUE(e.post(65 * kMtu, 1, kQp).ok());
  ASSERT_TRUE(e.post(65 * kMtu, 2, kSecondQp).ok());
  const std::vector<TxPacket> sent = e.drain(kBothPorts, 64);
  std::map<QpNumber, unsigned> packets;
  unsigned longest = 0;
  unsigned row = 0;
  for (std::size_t i = 0; i < sent.size(); ++i) {
    ++packets[sent[i].local_qp];
    row = i > 0 && sent[i].local_qp == sent[i - 1].local_qp ? row + 1 : 1;
    longest = std::max(longest, row);
  }
  EXPECT_EQ(packets[kQp], 32U);
  EXPECT_EQ(packets[kSecondQp], 32U);
  EXPECT_EQ(longest, 4U);
}

// One after the other, whichever port is free: the first ends after half of the time.
TEST(EndpointTx, AShortMessageIsSentInOneTurn) {
  Engine e;
  e.connect(kQp);
  e.connect(kSecondQp);
  for (const QpNumber qp : {kQp, kSecondQp}) {
    ASSERT_TRUE(e.post(64 * kMtu, 1, qp).ok());
    ASSERT_TRUE(e.post(64 * kMtu, 2, qp).ok());
  }
  std::vector<QpNumber> sent;
  TxPacket out;
  for (unsigned i = 0; e.endpoint->next_packet(e.now, PortMask(1U << (i % 2)), out); ++i)
    sent.push_back(out.local_qp);
  ASSERT_EQ(sent.size(), 4 * 64U);
  for (std::size_t i = 0; i < sent.size(); ++i)
    EXPECT_EQ(sent[i], sent[i / 64 * 64]) << i;
}

TEST(EndpointTx, ALargerQuantumKeepsPacketsOnOnePath) {
  Engine e;
  e.connect();
  e.endpoint->set_spray_quantum(4);
  ASSERT_TRUE(e.post(32 * kMtu).ok());
  const std::vector<TxPacket> sent = e.drain();
  ASSERT_EQ(sent.size(), 32U);
  for (std::size_t i = 0; i < sent.size(); ++i)
    EXPECT_EQ(sent[i].ev, sent[i / 4 * 4].ev) << i;
  EXPECT_NE(sent[0].ev, sent[4].ev);
}

// A SACK on its way back takes the plane of the packet it answers. It waits 2 us for that port.
TEST(EndpointTx, AnAnswerWaitsAMomentForThePortOfItsPlane) {
  Engine e;
  e.connect();
  e.take(Engine::write(0), {.port = PortId{2}});
  EXPECT_TRUE(e.drain(PortMask(0b01)).empty());
  e.now += 2 * kMicrosecondNs;
  EXPECT_FALSE(e.drain(PortMask(0b01)).empty());
}

TEST(EndpointTx, ItDoesNotHoldUpTheAnswersBehindIt) {
  Engine e;
  e.connect();
  e.take(Engine::write(1), {.port = PortId{2}});
  e.take(Engine::write(2), {.port = PortId{1}});
  const std::vector<TxPacket> answers = e.drain(PortMask(0b01));
  ASSERT_EQ(answers.size(), 1U);
  EXPECT_EQ(answers[0].port, PortId{1});
}

TEST(EndpointTx, StampsComeBackWithTheTimeSpentHere) {
  for (const bool added : {true, false}) {
    Engine e(EndpointConfig{.add_service_time = added});
    e.connect();
    e.take(Engine::write(0));
    e.now += 20 * kTickNs;
    const std::vector<TxPacket> answers = e.drain();
    const auto& sack = *std::get_if<wire::Sack>(&answers.at(0).packet.body);
    EXPECT_EQ(sack.timestamp_ticks, added ? 1'020 : 1'000);
  }
}

TEST(EndpointTx, AFailedQueuePairSendsNoMoreSacks) {
  Engine e;
  e.connect();
  e.take(Engine::write(0));
  ASSERT_TRUE(e.endpoint->fail_qp(e.now, kQp).ok());
  for (const TxPacket& packet : e.drain())
    EXPECT_NE(packet.packet.bth.opcode, Opcode::kSack);
}

TEST(EndpointTx, GroupedAnswersLeaveOnOnePath) {
  Engine e(EndpointConfig{.group_answers = true});
  e.connect();
  for (unsigned place = 0; place < 8; ++place)
    e.take(Engine::write(place));
  const std::vector<TxPacket> answers = e.drain();
  ASSERT_GE(answers.size(), 9U);
  for (const TxPacket& answer : answers)
    EXPECT_EQ(answer.ev, answers[0].ev);
}

TEST(EndpointTx, AnswersOfTwoQueuePairsInTurnKeepOnePathEach) {
  Engine e(EndpointConfig{.group_answers = true});
  e.connect(kQp);
  e.connect(kSecondQp);
  for (unsigned place = 0; place < 8; ++place) {
    e.take(Engine::write(place, 64, kQp));
    e.take(Engine::write(place, 64, kSecondQp));
  }
  std::map<QpNumber, std::set<EvIndex>> paths;
  for (const TxPacket& answer : e.drain())
    paths[answer.local_qp].insert(answer.ev);
  EXPECT_EQ(paths[kQp].size(), 1U);
  EXPECT_EQ(paths[kSecondQp].size(), 1U);
}

TEST(EndpointTx, CountersOfAnswersGrowWhenTheyLeave) {
  Engine e;
  e.connect();
  e.take(Engine::write(0));
  e.take(Engine::write(1), {.trim = TrimState::kTrimmed});
  EXPECT_EQ(e.status().counters.sacks_sent, 0U);
  e.drain();
  EXPECT_EQ(e.status().counters.sacks_sent, 1U);
  EXPECT_EQ(e.status().counters.acks_sent, 1U);
  EXPECT_EQ(e.status().counters.nacks_sent, 1U);
}

}  // namespace
}  // namespace mrc::core
