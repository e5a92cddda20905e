// Reliability probes: about a tail, about abandoned paths, about the reverse path.
#include <gtest/gtest.h>

#include "core/requester.h"
#include "unit/core/requester_fixture.h"

namespace mrc::core {
namespace {

constexpr std::uint16_t kRevivalBit = 0x8000;

const wire::Probe& probe_of(const TxPacket& packet) {
  return *std::get_if<wire::Probe>(&packet.packet.body);
}

// The peer's answer to a probe, with nothing new about data.
wire::Sack answer_to(const Sender& s, const TxPacket& probe) {
  return {.probe_answer = true,
          .offset_or_probe_id = probe_of(probe).probe_id,
          .entropy = s.entropy(probe.ev),
          .cumulative = kFirstPsn - 1,
          .bitmap_offset = 1,
          .timestamp_ticks = probe_of(probe).timestamp.ticks};
}

// Lets timers run until a probe is wanted; when that is.
TimeNs wait_for_probe(Sender& s) {
  TimeNs now = 0;
  while (!s.requester.probe_wanted() && s.requester.deadline() < kSecondNs) {
    now = s.requester.deadline();
    s.requester.on_timer(now);
  }
  return now;
}

TEST(TailProbe, AsksWhenNothingComesBackForAboutTwoRoundTrips) {
  Sender s;
  s.post(2);
  s.send(0);
  const TimeNs now = wait_for_probe(s);
  EXPECT_GE(now, kRoundTrip);
  EXPECT_LE(now, 3 * kRoundTrip);
  TxPacket probe;
  ASSERT_EQ(s.probe(now, probe), SendOutcome::kSent);
  EXPECT_EQ(probe.packet.bth.opcode, wire::Opcode::kProbe);
  EXPECT_EQ(probe.packet.bth.destination, kRemoteQp);
  EXPECT_EQ(probe.traffic_class, TrafficClass::kNoTrim);
  EXPECT_EQ(probe.payload_length, 0U);
  EXPECT_EQ(probe_of(probe).probe_id & kRevivalBit, 0);
  EXPECT_EQ(probe_of(probe).source_context, static_cast<std::uint16_t>(kLocalQp));
  EXPECT_EQ(probe_of(probe).destination_context, static_cast<std::uint16_t>(kRemoteQp));
  EXPECT_EQ(probe_of(probe).timestamp.ticks, ticks_at(now));
  EXPECT_EQ(s.counters.probes_sent, 1U);
  EXPECT_EQ(s.probe(now, probe), SendOutcome::kIdle) << "one is enough";
}

TEST(TailProbe, TheFirstTakesAnotherPathThanThePacketItAsksAbout) {
  for (unsigned round = 0; round < 8; ++round) {
    Sender s;
    s.post(round + 1);
    const std::vector<TxPacket> packets = s.send(0, round + 1);
    const TimeNs now = wait_for_probe(s);
    TxPacket probe;
    ASSERT_EQ(s.probe(now, probe), SendOutcome::kSent);
    EXPECT_NE(probe.ev, packets[0].ev);
  }
}

TEST(TailProbe, FeedbackPutsItOff) {
  Sender s;
  s.post(3);
  const std::vector<TxPacket> packets = s.send(0);
  ASSERT_EQ(s.sack(kRoundTrip, packets[0], 1), DropReason::kNone);
  EXPECT_FALSE(s.requester.probe_wanted());
  EXPECT_GT(s.requester.deadline(), kRoundTrip);
}

TEST(TailProbe, WaitsForAFreePort) {
  Sender s;
  s.post(1);
  s.send(0);
  const TimeNs now = wait_for_probe(s);
  TxPacket probe;
  EXPECT_EQ(s.probe(now, probe, PortMask::of(PortId{9})), SendOutcome::kNoPath);
  EXPECT_TRUE(s.requester.probe_wanted());
  EXPECT_EQ(s.counters.probes_sent, 0U);
}

TEST(TailProbe, WithoutProbesOnlyTheRetryTimerAsks) {
  Sender s({.probes = false});
  s.post(1);
  s.send(0);
  EXPECT_EQ(s.requester.deadline(), 1'024 << 8);
}

// All has arrived and only the transport ACK is missing: nothing is left to send again.
TEST(TailProbe, WithoutProbesTheRetryTimerFetchesALostAck) {
  Sender s({.probes = false});
  s.post(1);
  const std::vector<TxPacket> sent = s.send(0);
  ASSERT_EQ(s.sack(kRoundTrip, sent.front(), 1), DropReason::kNone);
  EXPECT_FALSE(s.requester.probe_wanted());
  const TimeNs now = wait_for_probe(s);
  EXPECT_EQ(now, kRoundTrip + (1'024 << 8));
  TxPacket probe;
  EXPECT_EQ(s.probe(now, probe), SendOutcome::kSent);
}

TEST(TailProbe, ItsAnswerGivesARoundTripAndIsTakenOnce) {
  Sender s;
  s.post(1);
  s.send(0);
  const TimeNs now = wait_for_probe(s);
  TxPacket probe;
  ASSERT_EQ(s.probe(now, probe), SendOutcome::kSent);
  EXPECT_FALSE(s.requester.probes().empty());
  ASSERT_EQ(s.requester.on_sack(now + 9'000, answer_to(s, probe)), DropReason::kNone);
  EXPECT_TRUE(s.requester.probes().empty());
  EXPECT_TRUE(s.requester.rtt().has_sample());
  EXPECT_NEAR(static_cast<double>(s.requester.rtt().smoothed()), 9'000, kTickNs);
  EXPECT_EQ(s.requester.on_sack(now + 9'100, answer_to(s, probe)), DropReason::kUnknownProbe);
}

TEST(TailProbe, AnAnswerMustBeAboutThePathThatWasAsked) {
  Sender s;
  s.post(1);
  s.send(0);
  const TimeNs now = wait_for_probe(s);
  TxPacket probe;
  ASSERT_EQ(s.probe(now, probe), SendOutcome::kSent);
  wire::Sack forged = answer_to(s, probe);
  forged.entropy ^= 1;
  EXPECT_EQ(s.requester.on_sack(now + 9'000, forged), DropReason::kUnknownProbe);
  EXPECT_FALSE(s.requester.probes().empty());
}

TEST(TailProbe, SilenceSpeaksAgainstThePathThatWasAsked) {
  Sender s;
  s.post(1);
  s.send(0);
  TimeNs now = wait_for_probe(s);
  TxPacket probe;
  ASSERT_EQ(s.probe(now, probe), SendOutcome::kSent);
  while (!s.requester.probes().empty() && now < kMillisecondNs) {
    now = s.requester.deadline();
    s.requester.on_timer(now);
  }
  EXPECT_EQ(s.paths.set.state(probe.ev), EvState::kAssumedBad);
}

TEST(RevivalProbe, AsksOnAnAbandonedPathAndTwoAnswersBringItBack) {
  Sender s;
  const EvIndex bad = ev_at(3);
  s.paths.set.on_lost(bad, 0);
  ASSERT_EQ(s.paths.set.state(bad), EvState::kAssumedBad);
  for (unsigned answers = 0; answers < 2; ++answers) {
    EXPECT_EQ(s.paths.set.state(bad), EvState::kAssumedBad);
    const TimeNs now = s.requester.deadline();
    ASSERT_LT(now, kSecondNs);
    s.requester.on_timer(now);
    TxPacket probe;
    ASSERT_EQ(s.probe(now, probe), SendOutcome::kSent);
    EXPECT_EQ(probe.ev, bad);
    EXPECT_EQ(probe_of(probe).probe_id, kRevivalBit | 3);
    EXPECT_TRUE(s.requester.probes().empty()) << "its silence speaks against nobody";
    ASSERT_EQ(s.requester.on_sack(now + 9'000, answer_to(s, probe)), DropReason::kNone);
  }
  EXPECT_EQ(s.paths.set.state(bad), EvState::kGood);
}

TEST(RevivalProbe, AnswersAboutUnknownPathsAreDropped) {
  Sender s;
  const wire::Sack beyond{
      .probe_answer = true, .offset_or_probe_id = kRevivalBit | 8, .cumulative = kFirstPsn - 1};
  EXPECT_EQ(s.requester.on_sack(100, beyond), DropReason::kUnknownProbe);
  wire::Sack wrong = beyond;
  wrong.offset_or_probe_id = kRevivalBit | 2;
  wrong.entropy = s.entropy(ev_at(3));
  EXPECT_EQ(s.requester.on_sack(100, wrong), DropReason::kUnknownProbe);
}

// What is heard about abandoned paths must not keep the question about the work in hand waiting.
TEST(RevivalProbe, ItsAnswerDoesNotPutOffTheTailProbe) {
  Sender s;
  s.post(1);
  const std::vector<TxPacket> packets = s.send(0);
  const TimeNs due = s.requester.deadline();
  const EvIndex bad = ev_at(index_of(packets[0].ev) == 3 ? 2 : 3);
  s.paths.set.on_lost(bad, 0);
  s.paths.set.on_probe_sent(bad, 10);
  const wire::Sack answer{
      .probe_answer = true,
      .offset_or_probe_id = static_cast<std::uint16_t>(kRevivalBit | index_of(bad)),
      .entropy = s.entropy(bad),
      .cumulative = kFirstPsn - 1};
  ASSERT_EQ(s.requester.on_sack(due - 1, answer), DropReason::kNone);
  s.requester.on_timer(due);
  TxPacket probe;
  ASSERT_EQ(s.probe(due, probe), SendOutcome::kSent);
  EXPECT_EQ(probe_of(probe).probe_id & kRevivalBit, 0);
}

TEST(RevivalProbe, SendingOneDoesNotPutItOffEither) {
  Sender s;
  s.post(1);
  const std::vector<TxPacket> packets = s.send(0);
  const TimeNs due = s.requester.deadline();
  s.paths.set.on_lost(ev_at(index_of(packets[0].ev) == 3 ? 2 : 3), 0);
  const TimeNs earlier = s.requester.deadline();
  ASSERT_LT(earlier, due);
  s.requester.on_timer(earlier);
  TxPacket probe;
  ASSERT_EQ(s.probe(earlier, probe), SendOutcome::kSent);
  ASSERT_EQ(probe_of(probe).probe_id & kRevivalBit, kRevivalBit);
  s.requester.on_timer(due);
  ASSERT_EQ(s.probe(due, probe), SendOutcome::kSent);
  EXPECT_EQ(probe_of(probe).probe_id & kRevivalBit, 0);
}

TEST(ReversePathProbe, IsSentOnlyWhileNothingOfOurOwnIsOnTheWay) {
  Sender s;
  EXPECT_TRUE(s.requester.check_reverse_path());
  TxPacket probe;
  EXPECT_EQ(s.probe(0, probe), SendOutcome::kSent);
  s.post(1);
  s.send(0);
  EXPECT_FALSE(s.requester.check_reverse_path());
}

// A queue pair that only receives has no window yet, and its answers need paths all the same.
TEST(ReversePathProbe, WorksBeforeAnythingMayBeSent) {
  Sender s;
  Requester receiver(4);
  EXPECT_FALSE(receiver.check_reverse_path());
  receiver.start_probing(s.links, kRoundTrip);
  EXPECT_TRUE(receiver.check_reverse_path());
  TxPacket probe;
  ASSERT_EQ(receiver.next_probe(5, kAllPorts, {kLocalQp, kRemoteQp}, probe), SendOutcome::kSent);
  EXPECT_EQ(receiver.on_sack(9'000, answer_to(s, probe)), DropReason::kNone);
  EXPECT_EQ(receiver.on_sack(9'000, {}), DropReason::kQpNotReady) << "about data";
}

}  // namespace
}  // namespace mrc::core
