// Stories about two engines and a network between them.
#include "core/endpoint.h"

#include <gtest/gtest.h>

#include <cstring>
#include <set>

#include "support/pair.h"

namespace mrc::test {
namespace {

using core::CompletionStatus;

bool same_bytes(Pair& pair, std::size_t length, std::size_t offset = 0) {
  return std::memcmp(pair.side(0).memory.data(), pair.side(1).memory.data() + offset, length) == 0;
}

TEST(Endpoint, MovesAMessageAcrossThePsnWrap) {
  Pair pair;
  pair.write(1, 100'000);
  ASSERT_TRUE(pair.run_until_completions(1, kSecondNs));
  EXPECT_EQ(pair.side(0).completions[0].status, CompletionStatus::kSuccess);
  EXPECT_TRUE(same_bytes(pair, 100'000));
  EXPECT_EQ(pair.status(0).counters.retransmitted, 0U);
}

TEST(Endpoint, CompletesAMessageOfLengthZero) {
  Pair pair;
  pair.write(1, 0);
  ASSERT_TRUE(pair.run_until_completions(1, kSecondNs));
  EXPECT_EQ(pair.status(1).counters.data_received, 1U);
}

TEST(Endpoint, DeliversImmediatesInOrderOfSending) {
  Pair pair;
  for (std::uint64_t i = 0; i < 20; ++i) {
    ASSERT_TRUE(pair.endpoint(1).post_receive(Pair::kQp, {.id = i}).ok());
  }
  for (std::uint64_t i = 0; i < 20; ++i)
    pair.write(i, 3000, i * 3000, true);
  ASSERT_TRUE(pair.run_until_completions(20, kSecondNs));
  ASSERT_EQ(pair.side(1).completions.size(), 20U);
  for (std::uint64_t i = 0; i < 20; ++i) {
    EXPECT_EQ(pair.side(1).completions[i].id, i);
    EXPECT_EQ(pair.side(1).completions[i].immediate, i);
    EXPECT_EQ(pair.side(0).completions[i].id, i);
  }
}

TEST(Endpoint, SurvivesHeavyLossInBothDirections) {
  Pair pair;
  Prng dice(5);
  pair.deliver = [&dice](int, const core::TxPacket&) { return dice.below(100) >= 30; };
  pair.write(1, 1'000'000);
  ASSERT_TRUE(pair.run_until_completions(1, 10 * kSecondNs));
  EXPECT_TRUE(same_bytes(pair, 1'000'000));
}

TEST(Endpoint, LeavesADeadPathWithinAFewRoundTripsAndDoesNotWaitForTheTimeout) {
  Pair pair({.timeout = 16});
  const std::uint32_t dead = 0x1005;
  TimeNs last_on_dead = 0;
  pair.deliver = [&](int from, const core::TxPacket& packet) {
    if (from == 0 && packet.entropy == dead && packet.payload_length > 0) {
      last_on_dead = pair.now();
      return false;
    }
    return packet.entropy != dead;
  };
  pair.write(1, 2'000'000);
  ASSERT_TRUE(pair.run_until_completions(1, kSecondNs));
  EXPECT_TRUE(same_bytes(pair, 2'000'000));
  EXPECT_EQ(pair.status(0).counters.timeouts, 0U);
  EXPECT_LT(last_on_dead, 100 * kMicrosecondNs);
  EXPECT_EQ(pair.endpoint(0).query_ev(Pair::kQp, EvIndex{5}).value(), core::EvState::kAssumedBad);
}

TEST(Endpoint, FindsATailLossByProbeLongBeforeTheRetryTimer) {
  Pair pair({.timeout = 16});
  bool lost = false;
  pair.deliver = [&lost](int, const core::TxPacket& packet) {
    if (wire::ends_message(packet.packet.bth.opcode) && !lost) {
      lost = true;
      return false;
    }
    return true;
  };
  pair.write(1, 10'000);
  ASSERT_TRUE(pair.run_until_completions(1, kSecondNs));
  EXPECT_LT(pair.now(), 200 * kMicrosecondNs);
  EXPECT_EQ(pair.status(0).counters.timeouts, 0U);
}

TEST(Endpoint, ReportsRetryExceededWhenThePeerIsSilent) {
  Pair pair({.exponential_retries = 2});
  pair.deliver = [](int, const core::TxPacket&) { return false; };
  pair.write(1, 10'000);
  pair.write(2, 10'000);
  ASSERT_TRUE(pair.run_until_completions(2, 10 * kSecondNs));
  EXPECT_EQ(pair.side(0).completions[0].status, CompletionStatus::kRetryExceeded);
  EXPECT_EQ(pair.side(0).completions[1].status, CompletionStatus::kFlushed);
  EXPECT_EQ(pair.status(0).state, core::QpState::kError);
}

TEST(Endpoint, SpreadsDataEquallyOverAllPlanes) {
  Pair pair;
  pair.write(1, 1'024'000);
  ASSERT_TRUE(pair.run_until_completions(1, kSecondNs));
  const auto& ports = pair.endpoint(0).counters().ports;
  for (unsigned p = 1; p < 4; ++p) {
    EXPECT_NEAR(static_cast<double>(ports[p].packets_sent),
                static_cast<double>(ports[0].packets_sent), 5);
  }
}

// Four ports that become free in turn and four queue pairs that take turns: the two must not lock.
TEST(Endpoint, EachQueuePairUsesAllPlanesEvenIfPortsBecomeFreeInStepWithItsTurns) {
  constexpr unsigned kPlanes = 4;
  constexpr unsigned kQps = 4;
  auto endpoint = core::Endpoint::create({.address = {1, 1}, .port_count = kPlanes}).value();
  for (std::uint32_t i = 0; i < kQps; ++i) {
    const QpNumber qp{10 + i};
    ASSERT_TRUE(endpoint->create_qp({.number = qp}).ok());
    core::QpInit init;
    init.cc.algorithm = core::CcAlgorithm::kNone;
    ASSERT_TRUE(endpoint->init_qp(qp, init).ok());
    ASSERT_TRUE(endpoint->ready_to_receive(qp, {.remote = {2, i}, .remote_qp = QpNumber{5}}).ok());
    ASSERT_TRUE(endpoint->ready_to_send(0, qp, {}).ok());
    ASSERT_TRUE(endpoint->post_send(0, qp, {.length = 4'000'000}).ok());
  }
  unsigned sent[kQps][kPlanes] = {};
  for (unsigned i = 0; i < 400; ++i) {
    const PortId port{static_cast<std::uint8_t>(1 + i % kPlanes)};
    core::TxPacket packet;
    ASSERT_TRUE(endpoint->next_packet(i * 100, PortMask::of(port), packet));
    ++sent[static_cast<std::uint32_t>(packet.local_qp) - 10][i % kPlanes];
  }
  for (const auto& by_plane : sent)
    for (const unsigned count : by_plane)
      EXPECT_NEAR(count, 25, 3);
}

TEST(Endpoint, MovesEverythingToTheOtherPlanesWhenAPortGoesDown) {
  Pair pair;
  pair.deliver = [](int, const core::TxPacket& packet) { return packet.port != PortId{2}; };
  pair.write(1, 1'000'000);
  ASSERT_TRUE(pair.endpoint(0).set_port_up(pair.now(), PortId{2}, false).ok());
  ASSERT_TRUE(pair.run_until_completions(1, kSecondNs));
  EXPECT_TRUE(same_bytes(pair, 1'000'000));
  bool told = false;
  for (const core::Event& event : pair.side(1).events) {
    told =
        told || (event.kind == core::EventKind::kRemotePorts && !event.ports.contains(PortId{2}));
  }
  EXPECT_TRUE(told);
}

TEST(Endpoint, RefusesAWriteOutsideTheRegionAndNamesTheReason) {
  Pair pair;
  pair.write(1, 100);
  pair.write(2, 100, Pair::kMemoryBytes - 50);
  pair.write(3, 100);
  ASSERT_TRUE(pair.run_until_completions(3, kSecondNs));
  EXPECT_EQ(pair.side(0).completions[1].status, CompletionStatus::kRemoteAccess);
  EXPECT_EQ(pair.side(0).completions[2].status, CompletionStatus::kFlushed);
  EXPECT_EQ(pair.status(1).state, core::QpState::kReadyToSend);
}

// Before the refusal arrives, the sender has heard nothing of the writes before: each end of the
// wire must see them done, and the first error must be that of the culprit.
TEST(Endpoint, CompletesWhatWasPostedBeforeARefusedWrite) {
  Pair pair;
  bool lost_once = false;
  pair.deliver = [&](int from, const core::TxPacket& packet) {
    const bool first = from == 0 && !lost_once && wire::is_write(packet.packet.bth.opcode);
    lost_once = lost_once || first;
    return !first;
  };
  pair.write(1, 100);
  pair.write(2, 100);
  pair.write(3, 100, Pair::kMemoryBytes - 50);
  pair.write(4, 100, Pair::kMemoryBytes - 50);
  pair.write(5, 100);
  ASSERT_TRUE(pair.run_until_completions(5, kSecondNs));
  const auto& done = pair.side(0).completions;
  EXPECT_EQ(done[0].status, CompletionStatus::kSuccess);
  EXPECT_EQ(done[1].status, CompletionStatus::kSuccess);
  EXPECT_EQ(done[2].status, CompletionStatus::kRemoteAccess);
  EXPECT_EQ(done[3].status, CompletionStatus::kFlushed);
  EXPECT_EQ(done[4].status, CompletionStatus::kFlushed);
  EXPECT_TRUE(same_bytes(pair, 100));
  EXPECT_EQ(pair.status(0).state, core::QpState::kError);
}

TEST(Endpoint, AQueuePairThatOnlyReceivesHasNoWindowAndMayGoWithoutEvCounters) {
  auto endpoint = core::Endpoint::create({.address = {1, 1}}).value();
  constexpr QpNumber kNumber{7};
  ASSERT_TRUE(endpoint->create_qp({.number = kNumber}).ok());
  core::QpInit init;
  init.ev_counters = false;
  ASSERT_TRUE(endpoint->init_qp(kNumber, init).ok());
  ASSERT_TRUE(
      endpoint->ready_to_receive(kNumber, {.remote = {1, 2}, .remote_qp = QpNumber{8}}).ok());
  EXPECT_EQ(endpoint->query_qp(kNumber).value().window_bytes, 0);
  EXPECT_EQ(endpoint->query_ev_counters(kNumber, EvIndex{0}).status().code(),
            ErrorCode::kUnsupported);
  EXPECT_EQ(endpoint->next_deadline(), kNever);
  ASSERT_TRUE(endpoint->ready_to_send(0, kNumber, {}).ok());
  EXPECT_GT(endpoint->query_qp(kNumber).value().window_bytes, 0);
}

}  // namespace
}  // namespace mrc::test
