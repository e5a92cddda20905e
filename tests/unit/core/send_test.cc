// Sends that land in receives, and packets that leave in bursts on one path.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <set>
#include <vector>

#include "support/pair.h"

namespace mrc::core {
namespace {

using test::Pair;

bool starts_like(const std::vector<std::byte>& receive, const Pair::Side& sender, std::size_t n) {
  return std::equal(receive.begin(), receive.begin() + static_cast<std::ptrdiff_t>(n),
                    sender.memory.begin());
}

TEST(Send, LandsInTheReceivesInOrderOfPosting) {
  Pair pair({.allow_sends = true});
  pair.post_receive(1, 5000);
  pair.post_receive(2, 100);
  pair.post_receive(3, 0);
  pair.send(11, 4999);
  pair.send(12, 100, true);
  pair.send(13, 0);
  ASSERT_TRUE(pair.run_until_completions(3, kMillisecondNs));
  const Pair::Side& peer = pair.side(1);
  ASSERT_EQ(peer.completions.size(), 3U);
  EXPECT_EQ(peer.completions[0].id, 1U);
  EXPECT_EQ(peer.completions[0].length, 4999U);
  EXPECT_TRUE(peer.completions[0].into_receive);
  EXPECT_FALSE(peer.completions[0].has_immediate);
  EXPECT_TRUE(peer.completions[1].has_immediate);
  EXPECT_EQ(peer.completions[1].immediate, 12U);
  EXPECT_EQ(peer.completions[2].length, 0U);
  EXPECT_TRUE(starts_like(peer.receives.at(1), pair.side(0), 4999));
  EXPECT_TRUE(starts_like(peer.receives.at(2), pair.side(0), 100));
}

TEST(Send, SharesTheReceivesWithImmediatesOfWrites) {
  Pair pair({.allow_sends = true});
  for (std::uint64_t id = 1; id <= 3; ++id)
    pair.post_receive(id, 2000);
  pair.write(21, 3000, 0, true);
  pair.send(22, 1500);
  pair.write(23, 10, 8192, true);
  ASSERT_TRUE(pair.run_until_completions(3, kMillisecondNs));
  const std::vector<Completion>& done = pair.side(1).completions;
  ASSERT_EQ(done.size(), 3U);
  EXPECT_FALSE(done[0].into_receive);
  EXPECT_TRUE(done[0].has_immediate);
  EXPECT_TRUE(done[1].into_receive);
  EXPECT_EQ(done[1].id, 2U);
  EXPECT_FALSE(done[2].into_receive);
  EXPECT_TRUE(starts_like(pair.side(1).receives.at(2), pair.side(0), 1500));
  EXPECT_EQ(pair.side(1).receives.at(1)[0], std::byte{0}) << "a write does not land in a receive";
}

TEST(Send, WaitsForAReceiveThatIsPostedLater) {
  Pair pair({.allow_sends = true});
  pair.send(31, 3000);
  pair.run_until(200 * kMicrosecondNs);
  EXPECT_TRUE(pair.side(0).completions.empty());
  pair.post_receive(1, 3000);
  ASSERT_TRUE(pair.run_until_completions(1, 10 * kMillisecondNs));
  EXPECT_EQ(pair.side(0).completions[0].status, CompletionStatus::kSuccess);
  EXPECT_TRUE(starts_like(pair.side(1).receives.at(1), pair.side(0), 3000));
}

TEST(Send, SurvivesLossesWithEveryByteInPlace) {
  Pair pair({.allow_sends = true});
  Prng prng(5);
  pair.deliver = [&](int, const TxPacket&) { return prng.below(10) != 0; };
  for (std::uint64_t id = 0; id < 20; ++id) {
    pair.post_receive(id, 20'000);
    pair.send(id, 20'000 - static_cast<std::uint32_t>(id));
  }
  ASSERT_TRUE(pair.run_until_completions(20, 100 * kMillisecondNs));
  for (std::uint64_t id = 0; id < 20; ++id)
    EXPECT_TRUE(starts_like(pair.side(1).receives.at(id), pair.side(0), 20'000 - id)) << id;
}

TEST(Send, LongerThanItsReceiveFailsTheSender) {
  Pair pair({.allow_sends = true});
  pair.post_receive(1, 2999);
  pair.send(41, 3000);
  ASSERT_TRUE(pair.run_until_completions(1, kMillisecondNs));
  EXPECT_EQ(pair.side(0).completions[0].status, CompletionStatus::kRemoteInvalidRequest);
  EXPECT_TRUE(pair.side(1).completions.empty());
}

TEST(Send, IsRefusedAtPostWhereNotAllowed) {
  Pair pair;
  const Status refused =
      pair.endpoint(0).post_send(pair.now(), Pair::kQp, {.length = 10, .into_receive = true});
  EXPECT_EQ(refused.code(), ErrorCode::kUnsupported);
}

TEST(Send, ThatAPeerDoesNotAllowIsAnAccessError) {
  Pair pair;
  ASSERT_TRUE(pair.endpoint(1).post_receive(Pair::kQp, {.id = 1, .capacity = 4096}).ok());
  ASSERT_TRUE(pair.endpoint(0)
                  .post_send(pair.now(), Pair::kQp,
                             {.id = 1,
                              .length = 10,
                              .remote_address = 0,
                              .remote_key = kSendKey,
                              .with_immediate = true})
                  .ok());
  pair.write(2, 1);  // gets the sender going
  ASSERT_TRUE(pair.run_until_completions(1, kMillisecondNs));
  EXPECT_EQ(pair.side(0).completions[0].status, CompletionStatus::kRemoteAccess);
}

TEST(SprayQuantum, KeepsThatManyPacketsInARowOnOnePath) {
  Pair pair({.spray_quantum = 8});
  std::vector<std::uint32_t> sent;
  pair.deliver = [&](int from, const TxPacket& packet) {
    if (from == 0 && wire::is_write(packet.packet.bth.opcode)) sent.push_back(packet.entropy);
    return true;
  };
  pair.write(1, 64 * 1024);
  ASSERT_TRUE(pair.run_until_completions(1, 10 * kMillisecondNs));
  ASSERT_GE(sent.size(), 64U);
  std::map<std::size_t, unsigned> runs;
  for (std::size_t i = 0; i < sent.size();) {
    std::size_t end = i;
    while (end < sent.size() && sent[end] == sent[i])
      ++end;
    ++runs[end - i];
    i = end;
  }
  EXPECT_EQ(runs.rbegin()->first, 8U) << "no run is longer";
  EXPECT_GE(runs[8], 7U);
  EXPECT_GE(std::set<std::uint32_t>(sent.begin(), sent.end()).size(), 8U);
}

TEST(SprayQuantum, LeavesAPathThatGoesBadInMidBurst) {
  Pair pair({.spray_quantum = 64});
  std::uint32_t dead = 0;
  std::uint64_t into_dead = 0;
  pair.deliver = [&](int from, const TxPacket& packet) {
    if (from != 0) return true;
    if (dead == 0) dead = packet.entropy;
    if (packet.entropy != dead) return true;
    ++into_dead;
    return false;
  };
  for (std::uint64_t id = 0; id < 8; ++id)
    pair.write(id, 256 * 1024);
  ASSERT_TRUE(pair.run_until_completions(8, 100 * kMillisecondNs));
  EXPECT_LT(into_dead, 200U) << "of 2,048 packets";
}

TEST(Outstanding, IsBoundedWhateverTheWindow) {
  Pair pair({.max_outstanding = 5});
  std::uint32_t most = 0;
  pair.deliver = [&](int from, const TxPacket&) {
    if (from == 0) {
      const QpStatus status = pair.status(0);
      most = std::max(most, status.packets_in_flight + status.packets_lost);
    }
    return true;
  };
  pair.write(1, 200 * 1024);
  ASSERT_TRUE(pair.run_until_completions(1, 100 * kMillisecondNs));
  EXPECT_EQ(most, 5U);
  EXPECT_EQ(pair.status(0).counters.retransmitted, 0U);
  EXPECT_EQ(pair.status(0).counters.timeouts, 0U);
}

// One end stops for longer than any round trip, as a process does that loses its processor.
class Stall : public ::testing::Test {
 protected:
  void run(DurationNs jitter_ns, DurationNs pause_ns, bool knows_round_trip = false) {
    Pair pair({.jitter_ns = jitter_ns});
    if (knows_round_trip) {
      pair.write(100, 256 * 1024);
      ASSERT_TRUE(pair.run_until_completions(1, 100 * kMillisecondNs));
    }
    // Answers of the first packets all arrive late, in order.
    for (std::uint64_t id = 0; id < 4; ++id)
      pair.write(id, 64 * 1024);
    pair.stop(1, pause_ns);
    ASSERT_TRUE(pair.run_until_completions(knows_round_trip ? 5 : 4, 200 * kMillisecondNs));
    counters = pair.status(0).counters;
    for (const Event& event : pair.side(0).events) {
      if (event.kind == EventKind::kEvState && event.ev_state == EvState::kAssumedBad) ++bad_paths;
    }
  }
  QpCounters counters;
  unsigned bad_paths = 0;
};

TEST_F(Stall, ShorterThanTheJitterIsNotHeldAgainstTheNetwork) {
  run(kMillisecondNs, 300 * kMicrosecondNs);
  EXPECT_EQ(counters.retransmitted, 0U);
  EXPECT_EQ(counters.probes_sent, 0U);
  EXPECT_EQ(counters.timeouts, 0U);
}

TEST_F(Stall, WithoutJitterBringsProbes) {
  run(0, 300 * kMicrosecondNs);
  EXPECT_GT(counters.probes_sent, 0U);
}

TEST_F(Stall, LongerThanTheRetryTimerIsOnlyAskedAbout) {
  run(kMillisecondNs, 10 * kMillisecondNs);
  EXPECT_EQ(counters.timeouts, 2U);
  EXPECT_EQ(counters.retransmitted, 2U) << "one packet for each";
  EXPECT_EQ(bad_paths, 0U) << "all paths are silent, so none is worse than the others";
}

TEST_F(Stall, OfAPeerWithAKnownRoundTripIsOnlyAskedAboutToo) {
  run(kMillisecondNs, 10 * kMillisecondNs, true);
  EXPECT_LE(counters.retransmitted, counters.timeouts + 1) << "one for each, one by the clock";
  EXPECT_EQ(bad_paths, 0U);
}

TEST_F(Stall, ForVeryLongIsHeldAgainstThePaths) {
  run(kMillisecondNs, 50 * kMillisecondNs);
  EXPECT_GT(bad_paths, 0U);
}

// What a stall taught about the ends must not make the sender patient with paths.
TEST(DeadPath, IsLeftSoonAfterAStall) {
  Pair pair({.max_sends = 1024, .jitter_ns = kMillisecondNs});
  std::uint32_t dead = 0;
  TimeNs last_into_dead = 0;
  pair.deliver = [&](int, const TxPacket& packet) {
    if (dead == 0 || packet.entropy != dead) return true;
    if (packet.payload_length > 0) last_into_dead = pair.now();
    return false;
  };
  for (std::uint64_t id = 0; id < 400; ++id)
    pair.write(id, 256 * 1024);
  pair.stop(1, 10 * kMillisecondNs);
  ASSERT_TRUE(pair.run_until_completions(100, 200 * kMillisecondNs));
  EXPECT_GT(pair.status(0).counters.spurious, 0U);
  const TimeNs broke = pair.now();
  dead = 0x1005;  // one of the 32 paths
  pair.run_until(broke + 20 * kMillisecondNs);
  ASSERT_GT(last_into_dead, broke);
  EXPECT_LT(last_into_dead - broke, 2 * kMillisecondNs);
}

TEST(GroupedAnswers, OfOneQueuePairLeaveOnOnePath) {
  for (const bool grouped : {false, true}) {
    Pair pair({.group_answers = grouped});
    std::uint64_t pairs = 0;
    std::uint64_t together = 0;
    std::uint32_t last = 0;
    TimeNs last_at = -1;
    pair.deliver = [&](int from, const TxPacket& packet) {
      if (from == 0) return true;
      if (pair.now() == last_at) {
        ++pairs;
        together += packet.entropy == last ? 1 : 0;
      }
      last = packet.entropy;
      last_at = pair.now();
      return true;
    };
    for (std::uint64_t id = 0; id < 40; ++id)
      pair.write(id, 1024);
    ASSERT_TRUE(pair.run_until_completions(40, 10 * kMillisecondNs));
    ASSERT_GE(pairs, 10U);
    if (grouped) {
      EXPECT_EQ(together, pairs);
    } else {
      EXPECT_LT(together, pairs);
    }
  }
}

TEST(ExpectedPsn, FollowsTheLeftEdge) {
  Pair pair;
  const Psn first = pair.endpoint(1).expected_psn(Pair::kQp).value();
  pair.write(1, 10 * 1024);
  ASSERT_TRUE(pair.run_until_completions(1, kMillisecondNs));
  EXPECT_EQ(pair.endpoint(1).expected_psn(Pair::kQp).value(), first + 10);
  EXPECT_FALSE(pair.endpoint(1).expected_psn(QpNumber{0x999}).ok());
}

}  // namespace
}  // namespace mrc::core
