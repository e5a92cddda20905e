// What it means that a packet is to be sent again: for the counters, the controller and the path.
#include <gtest/gtest.h>

#include "core/requester.h"
#include "unit/core/requester_fixture.h"

namespace mrc::core {
namespace {

constexpr std::int64_t kFullPacket = 1'112;  // nominal bytes

// Packets on ports and paths of the test's choice.
TxPacket send_on(Sender& s, TimeNs now, unsigned port) {
  TxPacket out;
  EXPECT_EQ(s.next(now, out, PortMask::of(port_at(port))), SendOutcome::kSent);
  return out;
}

// Eight EVs of which the test wants two packets on one.
std::vector<TxPacket> send_until_path_repeats(Sender& s, TimeNs now, TxPacket& later) {
  std::vector<TxPacket> packets;
  for (;;) {
    TxPacket out;
    EXPECT_EQ(s.next(now += 10, out), SendOutcome::kSent);
    if (!packets.empty() && out.ev == packets[0].ev) {
      later = out;
      return packets;
    }
    packets.push_back(out);
  }
}

// The first packet is overtaken on its path: all others, up to one that took the same, arrive.
TxPacket overtake_first(Sender& s) {
  TxPacket later;
  const std::vector<TxPacket> packets = send_until_path_repeats(s, 0, later);
  const unsigned behind = Sender::place(later);
  const std::uint64_t others = ((std::uint64_t{1} << (behind + 1)) - 1) & ~std::uint64_t{1};
  EXPECT_EQ(s.sack(kRoundTrip, later, 0, others), DropReason::kNone);
  return packets[0];
}

TEST(Resend, OvertakenOnItsPathCountsAsLostAndLeavesThePath) {
  Sender s;
  s.post(100);
  const TxPacket first = overtake_first(s);
  EXPECT_EQ(s.counters.lost_by_path_order, 1U);
  EXPECT_EQ(s.cc.lost_bytes, kFullPacket);
  EXPECT_EQ(s.paths.set.state(first.ev), EvState::kAssumedBad);
  EXPECT_EQ(s.cc.in_flight_bytes(), 0);
  TxPacket again;
  ASSERT_EQ(s.next(kRoundTrip, again), SendOutcome::kSent);
  EXPECT_EQ(Sender::place(again), 0U) << "before anything new";
  EXPECT_NE(again.ev, first.ev);
  EXPECT_EQ(s.counters.retransmitted, 1U);
}

// Where switches do not trim, a loss may well be a full queue.
TEST(Resend, WhatAllPathsLoseIsNoSignOfCongestionWhereSwitchesTrim) {
  for (const bool trims : {true, false}) {
    Sender s({.network_trims = trims});
    s.paths.lose_here_and_there();
    s.post(100);
    const TxPacket first = overtake_first(s);
    EXPECT_EQ(s.counters.lost_by_path_order, 1U);
    EXPECT_EQ(s.paths.set.state(first.ev), EvState::kGood);
    EXPECT_EQ(s.cc.lost_bytes, trims ? 0 : kFullPacket);
    TxPacket again;
    ASSERT_EQ(s.next(kRoundTrip, again), SendOutcome::kSent);
    EXPECT_EQ(Sender::place(again), 0U);
    EXPECT_NE(again.ev, first.ev);
  }
}

TEST(Resend, ATrimIsNoLossForTheControllerAndNoBlameForThePath) {
  Sender s;
  s.post(2);
  const std::vector<TxPacket> packets = s.send(0);
  ASSERT_EQ(s.nack(kRoundTrip, packets[0], wire::NackReason::kTrimmed).drop, DropReason::kNone);
  EXPECT_EQ(s.counters.trimmed, 1U);
  EXPECT_EQ(s.cc.lost_bytes, 0);
  EXPECT_EQ(s.cc.trims, std::vector<bool>{false});
  EXPECT_EQ(s.paths.set.bad_count(), 0U);
  EXPECT_EQ(s.cc.in_flight_bytes(), kFullPacket) << "the other one";
}

TEST(Resend, APacketThatWasNotTakenIsALossWithoutBlame) {
  Sender s;
  s.post(1);
  const std::vector<TxPacket> packets = s.send(0);
  ASSERT_EQ(s.nack(kRoundTrip, packets[0], wire::NackReason::kNoPacketBuffer).drop,
            DropReason::kNone);
  EXPECT_EQ(s.counters.refused, 1U);
  EXPECT_EQ(s.cc.lost_bytes, kFullPacket);
  EXPECT_EQ(s.paths.set.bad_count(), 0U);
}

TEST(Resend, ARefusedOperationIsNoLossAtAll) {
  Sender s;
  s.post(1);
  s.post(1, 2);
  s.send(0);
  ASSERT_FALSE(s.nak(kRoundTrip, 1, wire::kSyndromeNakRemoteAccess).fatal);
  EXPECT_EQ(s.send(kRoundTrip).size(), 1U) << "once more";
  ASSERT_FALSE(s.nak(2 * kRoundTrip, 1, wire::kSyndromeNakRemoteAccess).fatal);
  EXPECT_EQ(s.send(2 * kRoundTrip).size(), 1U) << "and again";
  ASSERT_FALSE(s.nak(4 * kRoundTrip, 1, wire::kSyndromeNakRemoteAccess).fatal);
  EXPECT_EQ(s.counters.refused, 3U);
  EXPECT_EQ(s.cc.lost_bytes, 0);
  EXPECT_EQ(s.send(5 * kRoundTrip).size(), 0U) << "never to be sent again";
}

TEST(Resend, ATimeoutBlamesThePathsOfAllItGivesUp) {
  Sender s({.probes = false});
  s.post(2);
  const TxPacket one = send_on(s, 0, 1);
  const TxPacket other = send_on(s, 0, 2);
  s.requester.on_timer(s.requester.deadline());
  EXPECT_EQ(s.counters.lost_by_timeout, 2U);
  EXPECT_EQ(s.cc.lost_bytes, 2 * kFullPacket);
  EXPECT_EQ(s.paths.set.state(one.ev), EvState::kAssumedBad);
  EXPECT_EQ(s.paths.set.state(other.ev), EvState::kAssumedBad);
}

// Lets the timers run until a packet is sent again on speculation; when that was.
TimeNs run_until_speculation(Sender& s) {
  TimeNs now = kRoundTrip;
  while (s.counters.hedged == 0 && now < 100 * kMicrosecondNs) {
    now = s.requester.deadline();
    s.requester.on_timer(now);
  }
  return now;
}

// The tail of a transfer: after a round trip and the spread of the paths one packet goes again, and
// no other before the next word.
TEST(Resend, AtTheEndOfTheWorkOnePacketIsSentAgainOnSpeculation) {
  Sender s;
  s.post(4);
  const std::vector<TxPacket> packets = s.send(0);
  ASSERT_EQ(s.sack(kRoundTrip, packets[0], 1), DropReason::kNone);
  const TimeNs now = run_until_speculation(s);
  EXPECT_EQ(s.counters.hedged, 1U);
  EXPECT_GE(now, 2 * kRoundTrip);
  EXPECT_EQ(s.cc.lost_bytes, 0) << "late is not lost";
  EXPECT_EQ(s.paths.set.bad_count(), 0U);
  const std::vector<TxPacket> again = s.send(now);
  ASSERT_EQ(again.size(), 1U);
  EXPECT_EQ(Sender::place(again[0]), 1U) << "the earliest";
  s.requester.on_timer(now + 10 * kRoundTrip);
  EXPECT_EQ(s.counters.hedged, 1U);
}

TEST(Resend, WhatWasGivenUpAndHadArrivedIsTakenBack) {
  Sender s;
  s.post(100);
  TxPacket later;
  const std::vector<TxPacket> packets = send_until_path_repeats(s, 0, later);
  const unsigned behind = Sender::place(later);
  const std::uint64_t all = (std::uint64_t{1} << (behind + 1)) - 1;
  ASSERT_EQ(s.sack(kRoundTrip, later, 0, all & ~std::uint64_t{1}), DropReason::kNone);
  ASSERT_EQ(s.paths.set.state(packets[0].ev), EvState::kAssumedBad);
  ASSERT_EQ(s.sack(kRoundTrip + 100, packets[0], behind + 1), DropReason::kNone);
  EXPECT_EQ(s.counters.spurious, 1U);
  EXPECT_EQ(s.paths.set.state(packets[0].ev), EvState::kGood);
  TxPacket next;
  ASSERT_EQ(s.next(kRoundTrip + 100, next), SendOutcome::kSent);
  EXPECT_EQ(Sender::place(next), behind + 1) << "nothing is left to send again";
}

TEST(Resend, ASpeculationThatWasNotNeededIsNoFalseAlarm) {
  Sender s;
  s.post(2);
  const std::vector<TxPacket> packets = s.send(0);
  ASSERT_EQ(s.sack(kRoundTrip, packets[0], 1), DropReason::kNone);
  const TimeNs now = run_until_speculation(s);
  ASSERT_EQ(s.counters.hedged, 1U);
  ASSERT_EQ(s.sack(now + 10, packets[1], 2), DropReason::kNone);
  EXPECT_EQ(s.counters.spurious, 0U);
  EXPECT_TRUE(s.send(now + 10).empty());
}

}  // namespace
}  // namespace mrc::core
