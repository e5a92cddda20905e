// The receive path: which packets reach a queue pair, and the answers they cause.
#include <gtest/gtest.h>

#include "unit/core/endpoint_fixture.h"

namespace mrc::core {
namespace {

using wire::Opcode;

template <typename Body>
const Body& body_of(const TxPacket& packet) {
  return *std::get_if<Body>(&packet.packet.body);
}

std::vector<Opcode> opcodes(const std::vector<TxPacket>& packets) {
  std::vector<Opcode> all;
  for (const TxPacket& packet : packets)
    all.push_back(packet.packet.bth.opcode);
  return all;
}

TEST(EndpointRx, PacketsForNobodyAreCountedByTheirReason) {
  Engine e;
  ASSERT_TRUE(e.create().ok());
  ASSERT_TRUE(e.init().ok());
  EXPECT_EQ(e.take(Engine::write(0)).drop, DropReason::kQpNotReady) << "INIT";
  ASSERT_TRUE(e.to_rtr().ok());
  EXPECT_EQ(e.take(Engine::write(0, 64, QpNumber{99})).drop, DropReason::kUnknownQp);
  EXPECT_EQ(e.take(Engine::write(0), {.source = kOtherPeer}).drop, DropReason::kWrongSource);
  EXPECT_EQ(e.take(Engine::write(0), {.port = PortId{3}}).drop, DropReason::kBadPort);
  EXPECT_EQ(e.take(Engine::write(0), {.port = PortId{0}}).drop, DropReason::kBadPort);
  EXPECT_EQ(e.take(Engine::write(0, 64, kEndpointQp)).drop, DropReason::kUnknownQp);
  EXPECT_EQ(e.take(Engine::probe(1), {.trim = TrimState::kTrimmed}).drop, DropReason::kTrimmed);
  EXPECT_EQ(e.take(Engine::write(0)).drop, DropReason::kNone);
  const auto& drops = e.endpoint->counters().drops;
  EXPECT_EQ(drops[static_cast<std::size_t>(DropReason::kBadPort)], 2U);
  EXPECT_EQ(drops[static_cast<std::size_t>(DropReason::kUnknownQp)], 2U);
  EXPECT_EQ(drops[static_cast<std::size_t>(DropReason::kWrongSource)], 1U);
  EXPECT_EQ(drops[static_cast<std::size_t>(DropReason::kNone)], 1U);
}

TEST(EndpointRx, TrafficIsCountedByPort) {
  Engine e;
  e.connect();
  e.take(Engine::write(0), {.port = PortId{2}});
  EXPECT_EQ(e.endpoint->counters().ports[0].packets_received, 0U);
  EXPECT_EQ(e.endpoint->counters().ports[1].packets_received, 1U);
  EXPECT_EQ(e.endpoint->counters().ports[1].bytes_received,
            wire::nominal_size(Engine::write(0), 64));
}

TEST(EndpointRx, AWriteIsPlacedAndAnsweredWithASackAndAnAck) {
  Engine e;
  e.connect();
  const RxResult result = e.take(Engine::write(0, 100), {.entropy = 0x5555});
  EXPECT_EQ(result.placement.address, kMemoryBase);
  EXPECT_EQ(result.placement.length, 100U);
  const std::vector<TxPacket> answers = e.drain();
  ASSERT_EQ(opcodes(answers), (std::vector{Opcode::kSack, Opcode::kAck}));
  const auto& sack = body_of<wire::Sack>(answers[0]);
  EXPECT_EQ(sack.entropy, 0x5555U) << "of the packet it answers";
  EXPECT_EQ(sack.cumulative, kReceivePsn);
  EXPECT_EQ(sack.source_context, static_cast<std::uint16_t>(kQp));
  EXPECT_EQ(sack.destination_context, static_cast<std::uint16_t>(kPeerQp));
  EXPECT_EQ(answers[0].packet.bth.destination, kPeerQp);
  const auto& ack = body_of<wire::Ack>(answers[1]);
  EXPECT_EQ(ack.syndrome, wire::kSyndromeAck);
  EXPECT_EQ(ack.msn, 1U);
  EXPECT_EQ(answers[1].packet.bth.psn, kReceivePsn);
}

TEST(EndpointRx, OneTransportAckTellsOfAllMessagesThatWaitForIt) {
  Engine e;
  e.connect();
  for (unsigned place = 0; place < 5; ++place)
    e.take(Engine::write(place));
  unsigned acks = 0;
  for (const TxPacket& answer : e.drain()) {
    if (answer.packet.bth.opcode != Opcode::kAck) continue;
    ++acks;
    EXPECT_EQ(body_of<wire::Ack>(answer).msn, 5U);
  }
  EXPECT_EQ(acks, 1U);
}

TEST(EndpointRx, ARefusedWriteIsAnsweredAndReported) {
  Engine e;
  e.connect();
  wire::Packet write = Engine::write(0);
  std::get_if<wire::Write>(&write.body)->key = Rkey{1};
  EXPECT_EQ(e.take(write).drop, DropReason::kAccessDenied);
  const std::vector<TxPacket> answers = e.drain();
  ASSERT_EQ(opcodes(answers), std::vector{Opcode::kAck});
  EXPECT_EQ(body_of<wire::Ack>(answers[0]).syndrome, wire::kSyndromeNakRemoteAccess);
  EXPECT_EQ(answers[0].packet.bth.psn, kReceivePsn);
  const std::vector<Event> events = e.events();
  ASSERT_EQ(events.size(), 1U);
  EXPECT_EQ(events[0].kind, EventKind::kAccessRefused);
  EXPECT_EQ(e.status().state, QpState::kReadyToSend) << "the peer's fault";
}

TEST(EndpointRx, AFatalWriteFailsTheQueuePair) {
  Engine e;
  e.connect();
  wire::Packet write = Engine::write(0);
  write.bth.opcode = Opcode::kWriteOnlyImm;
  EXPECT_EQ(e.take(write).drop, DropReason::kReceiveQueueEmpty);
  EXPECT_EQ(e.status().state, QpState::kError);
  const std::vector<TxPacket> answers = e.drain();
  ASSERT_FALSE(answers.empty());
  EXPECT_EQ(body_of<wire::Ack>(answers[0]).syndrome, wire::kSyndromeNakReceiveQueueEmpty);
}

TEST(EndpointRx, APeerThatTalksToAFailedQueuePairHearsSo) {
  Engine e;
  e.connect();
  ASSERT_TRUE(e.endpoint->fail_qp(e.now, kQp).ok());
  EXPECT_EQ(e.take(Engine::write(4)).drop, DropReason::kQpNotReady);
  EXPECT_EQ(e.take(Engine::probe(1)).drop, DropReason::kQpNotReady);
  const std::vector<TxPacket> answers = e.drain();
  ASSERT_EQ(opcodes(answers), (std::vector{Opcode::kNack, Opcode::kNack}));
  EXPECT_EQ(body_of<wire::Nack>(answers[0]).reason, wire::NackReason::kUnexpectedEvent);
  EXPECT_EQ(body_of<wire::Nack>(answers[0]).psn, kReceivePsn + 4);
  EXPECT_EQ(body_of<wire::Nack>(answers[1]).psn, kReceivePsn - 1) << "a probe has none of its own";
}

TEST(EndpointRx, AProbeFetchesASackWithItsIdAndTheLastAck) {
  Engine e;
  e.connect();
  e.take(Engine::write(0));
  e.drain();
  EXPECT_EQ(e.take(Engine::probe(0x1234), {.congestion_experienced = true}).drop,
            DropReason::kNone);
  const std::vector<TxPacket> answers = e.drain();
  ASSERT_EQ(opcodes(answers), (std::vector{Opcode::kSack, Opcode::kAck}));
  const auto& sack = body_of<wire::Sack>(answers[0]);
  EXPECT_TRUE(sack.probe_answer);
  EXPECT_EQ(sack.offset_or_probe_id, 0x1234);
  EXPECT_EQ(sack.mark, wire::PathMark::kSkipOnce);
  EXPECT_EQ(sack.cumulative, kReceivePsn);
}

TEST(EndpointRx, FeedbackReachesTheSender) {
  Engine e;
  e.connect();
  ASSERT_TRUE(e.post(64, 3).ok());
  e.drain();
  const wire::Packet ack{.bth = {.opcode = Opcode::kAck, .destination = kQp, .psn = kSendPsn},
                         .body = wire::Ack{.syndrome = wire::kSyndromeAck, .msn = 1}};
  EXPECT_EQ(e.take(ack).drop, DropReason::kNone);
  const std::vector<Completion> done = e.completions();
  ASSERT_EQ(done.size(), 1U);
  EXPECT_EQ(done[0].id, 3U);
  EXPECT_EQ(done[0].qp, kQp);
  EXPECT_EQ(e.take(ack).drop, DropReason::kStaleFeedback);
}

TEST(EndpointRx, BeforeRtsOnlySacksAreListenedTo) {
  Engine e;
  ASSERT_TRUE(e.create().ok());
  ASSERT_TRUE(e.init().ok());
  ASSERT_TRUE(e.to_rtr().ok());
  const wire::Packet nack{
      .bth = {.opcode = Opcode::kNack, .destination = kQp},
      .body = wire::Nack{.source_context = static_cast<std::uint16_t>(kPeerQp),
                         .destination_context = static_cast<std::uint16_t>(kQp)}};
  EXPECT_EQ(e.take(nack).drop, DropReason::kQpNotReady);
  const wire::Packet answer{
      .bth = {.opcode = Opcode::kSack, .destination = kQp},
      .body = wire::Sack{.probe_answer = true,
                         .offset_or_probe_id = 9,
                         .source_context = static_cast<std::uint16_t>(kPeerQp),
                         .destination_context = static_cast<std::uint16_t>(kQp)}};
  EXPECT_EQ(e.take(answer).drop, DropReason::kUnknownProbe);
}

TEST(EndpointRx, APathThatDamagesThreePacketsIsReportedToItsSender) {
  Engine e;
  e.connect();
  const Arrival arrival{.source = kPeer, .entropy = 0x77, .payload_length = 64};
  for (unsigned i = 0; i < 3; ++i) {
    EXPECT_TRUE(e.drain().empty());
    e.endpoint->on_corrupt_packet(e.now, arrival, Engine::write(i));
  }
  const std::vector<TxPacket> answers = e.drain();
  ASSERT_EQ(opcodes(answers), std::vector{Opcode::kSack});
  EXPECT_EQ(body_of<wire::Sack>(answers[0]).mark, wire::PathMark::kAlwaysSkip);
  EXPECT_EQ(body_of<wire::Sack>(answers[0]).entropy, 0x77U);
  EXPECT_EQ(body_of<wire::Sack>(answers[0]).timestamp_ticks, 0) << "its stamp is not trusted";
  EXPECT_EQ(e.endpoint->counters().drops[static_cast<std::size_t>(DropReason::kBadIcrc)], 3U);
  EXPECT_EQ(e.status().expected_psn, kReceivePsn) << "nothing of them has arrived";
}

TEST(EndpointRx, AFullControlQueueDropsAnswersAndCountsThem) {
  Engine e(EndpointConfig{.control_capacity = 4});
  e.connect();
  for (unsigned place = 0; place < 100; ++place)
    e.take(Engine::write(place));
  EXPECT_GT(e.endpoint->counters().control_dropped, 0U);
  EXPECT_EQ(e.status().expected_psn, kReceivePsn + 100) << "the data is taken all the same";
}

}  // namespace
}  // namespace mrc::core
