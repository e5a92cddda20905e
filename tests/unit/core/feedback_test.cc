// What SACKs, NACKs and transport acknowledgements do to the requester's records.
#include <gtest/gtest.h>

#include "core/requester.h"
#include "unit/core/requester_fixture.h"

namespace mrc::core {
namespace {

constexpr std::int64_t kFullPacket = 1'112;  // nominal bytes

TEST(Sack, SettlesWhatItNames) {
  Sender s;
  s.post(8);
  const std::vector<TxPacket> packets = s.send(0);
  ASSERT_EQ(s.sack(kRoundTrip, packets[5], 2, 0b1010), DropReason::kNone);  // 0, 1, 3, 5
  const SendWindow& window = s.requester.window();
  EXPECT_EQ(psn_of(window.oldest()), Sender::psn(2));
  for (unsigned place : {3U, 5U}) {
    EXPECT_EQ(window.record(first_sequence(kFirstPsn) + place).state, PacketState::kAcknowledged);
  }
  EXPECT_EQ(window.in_flight(), 4U);
  ASSERT_EQ(s.cc.acks.size(), 1U);
  EXPECT_EQ(s.cc.acks[0].acked_bytes, 4 * kFullPacket);
  EXPECT_EQ(s.cc.in_flight_bytes(), 4 * kFullPacket);
  EXPECT_EQ(s.counters.sacks_received, 1U);
}

TEST(Sack, TwiceTheSameSettlesNothingMore) {
  Sender s;
  s.post(4);
  const std::vector<TxPacket> packets = s.send(0);
  s.sack(kRoundTrip, packets[1], 2);
  s.sack(kRoundTrip + 1, packets[1], 2);
  ASSERT_EQ(s.cc.acks.size(), 2U);
  EXPECT_EQ(s.cc.acks[1].acked_bytes, 0);
  EXPECT_EQ(s.cc.in_flight_bytes(), 2 * kFullPacket);
}

TEST(Sack, MeasuresTheRoundTripOfTheAnsweredPacketWithoutTheServiceTime) {
  Sender s;
  s.post(2);
  const std::vector<TxPacket> packets = s.send(0);
  wire::Sack sack = s.sack_for(packets[0], 1);
  sack.timestamp_ticks = static_cast<std::uint16_t>(sack.timestamp_ticks + 10);
  ASSERT_EQ(s.requester.on_sack(10'000, sack), DropReason::kNone);
  EXPECT_EQ(s.requester.rtt().smoothed(), 10'000 - 10 * kTickNs);
  EXPECT_EQ(s.cc.acks[0].rtt_ns, 10'000 - 10 * kTickNs);
}

TEST(Sack, APeerThatTellsNoServiceTimeReflectsStampsAsTheyWereSent) {
  Sender s({.peer_tells_service_time = false});
  s.post(2);
  const std::vector<TxPacket> packets = s.send(0);
  wire::Sack sack = s.sack_for(packets[0], 1);
  sack.timestamp_ticks = static_cast<std::uint16_t>(sack.timestamp_ticks + 10);
  ASSERT_EQ(s.requester.on_sack(10'000, sack), DropReason::kNone);
  EXPECT_FALSE(s.requester.rtt().has_sample()) << "of another transmission";
  ASSERT_EQ(s.sack(10'000, packets[1], 2), DropReason::kNone);
  EXPECT_EQ(s.requester.rtt().smoothed(), 10'000) << "whatever the peer spent of it";
}

// A short packet is faster by its serialisation at every hop.
TEST(Sack, AShortPacketDoesNotLowerTheBaseRoundTrip) {
  Sender s;
  ASSERT_TRUE(s.requester.post(0, {.length = 8}).ok());
  const std::vector<TxPacket> packets = s.send(0);
  ASSERT_EQ(s.sack(5'000, packets[0], 1), DropReason::kNone);
  EXPECT_EQ(s.cc.acks[0].rtt_ns, kRoundTrip) << "that of the controller, not 5 us";
}

TEST(Sack, AStampThatCannotBeOursGivesNoSample) {
  Sender s;
  s.post(2);
  const std::vector<TxPacket> packets = s.send(0);
  wire::Sack sack = s.sack_for(packets[0], 1);
  sack.timestamp_ticks = static_cast<std::uint16_t>(sack.timestamp_ticks + 5'000);
  ASSERT_EQ(s.requester.on_sack(10'000, sack), DropReason::kNone);
  EXPECT_FALSE(s.requester.rtt().has_sample());
  EXPECT_FALSE(s.cc.acks[0].rtt_ns.has_value());
}

TEST(Sack, MarksSkipThePathOnceOrForGood) {
  Sender s;
  s.post(4);
  const std::vector<TxPacket> packets = s.send(0);
  wire::Sack sack = s.sack_for(packets[0], 1);
  sack.mark = wire::PathMark::kSkipOnce;
  ASSERT_EQ(s.requester.on_sack(kRoundTrip, sack), DropReason::kNone);
  EXPECT_EQ(s.paths.set.state(packets[0].ev), EvState::kSkip);
  EXPECT_TRUE(s.cc.acks[0].marked);
  EXPECT_EQ(s.counters.marked, 1U);
  sack = s.sack_for(packets[1], 2);
  sack.mark = wire::PathMark::kAlwaysSkip;
  ASSERT_EQ(s.requester.on_sack(kRoundTrip, sack), DropReason::kNone);
  EXPECT_EQ(s.paths.set.state(packets[1].ev), EvState::kAssumedBad);
  EXPECT_FALSE(s.cc.acks[1].marked);
}

TEST(Sack, AboutPacketsNeverSentIsDropped) {
  Sender s;
  s.post(2);
  const std::vector<TxPacket> packets = s.send(0);
  EXPECT_EQ(s.sack(kRoundTrip, packets[0], 3), DropReason::kStaleFeedback);
  EXPECT_EQ(s.requester.window().in_flight(), 2U);
  EXPECT_TRUE(s.cc.acks.empty());
  // Bits beyond what was sent are nobody's.
  ASSERT_EQ(s.sack(kRoundTrip, packets[0], 1, ~std::uint64_t{0}), DropReason::kNone);
  EXPECT_EQ(s.requester.window().in_flight(), 0U);
  EXPECT_EQ(s.cc.in_flight_bytes(), 0);
}

TEST(Sack, NarrowsTheWindowWhereBothAgreed) {
  Sender::Options options{.rts = {.first_psn = kFirstPsn, .mpr = 4}};
  for (const bool agreed : {false, true}) {
    options.dynamic_mpr = agreed;
    Sender s(options);
    s.post(2);
    const std::vector<TxPacket> packets = s.send(0);
    wire::Sack sack = s.sack_for(packets[0], 1);
    sack.window_units = 2;
    ASSERT_EQ(s.requester.on_sack(kRoundTrip, sack), DropReason::kNone);
    EXPECT_EQ(s.requester.window_psns(), (agreed ? 2 : 4) * kWindowUnitPsns);
    sack = s.sack_for(packets[1], 2);
    sack.window_units = 200;
    ASSERT_EQ(s.requester.on_sack(kRoundTrip, sack), DropReason::kNone);
    EXPECT_EQ(s.requester.window_psns(), 4 * kWindowUnitPsns) << "at most what was agreed";
  }
}

TEST(Sack, HandsOnWhatTheReceiverWantsOfTheWindow) {
  Sender s;
  s.post(1);
  const std::vector<TxPacket> packets = s.send(0);
  wire::Sack sack = s.sack_for(packets[0], 1);
  sack.window_penalty = 64;
  sack.restore_window = true;
  ASSERT_EQ(s.requester.on_sack(kRoundTrip, sack), DropReason::kNone);
  EXPECT_EQ(s.cc.acks[0].window_penalty, 64);
  EXPECT_TRUE(s.cc.acks[0].restore_window);
}

TEST(Sack, CompletesNoMessage) {
  Sender s;
  s.post(1);
  const std::vector<TxPacket> packets = s.send(0);
  ASSERT_EQ(s.sack(kRoundTrip, packets[0], 1), DropReason::kNone);
  EXPECT_TRUE(s.completions().empty());
  EXPECT_NE(s.requester.deadline(), kNever) << "the transport ACK is still to come";
}

TEST(Nack, OfATrimmedPacketSendsItAgain) {
  Sender s;
  s.post(2);
  const std::vector<TxPacket> packets = s.send(0);
  ASSERT_EQ(s.nack(kRoundTrip, packets[0], wire::NackReason::kTrimmedLastHop).drop,
            DropReason::kNone);
  EXPECT_EQ(s.cc.trims, std::vector<bool>{true});
  const std::vector<TxPacket> again = s.send(kRoundTrip);
  ASSERT_EQ(again.size(), 1U);
  EXPECT_EQ(Sender::place(again[0]), 0U);
}

TEST(Nack, AboutAnEarlierTransmissionIsDropped) {
  Sender s;
  s.post(2);
  const std::vector<TxPacket> packets = s.send(0);
  ASSERT_EQ(s.nack(kRoundTrip, packets[0], wire::NackReason::kTrimmed).drop, DropReason::kNone);
  const std::vector<TxPacket> again = s.send(kRoundTrip);
  ASSERT_EQ(again.size(), 1U);
  ASSERT_NE(again[0].ev, packets[0].ev);
  EXPECT_EQ(s.nack(kRoundTrip + 1, packets[0], wire::NackReason::kTrimmed).drop,
            DropReason::kStaleFeedback);
  EXPECT_EQ(s.counters.trimmed, 1U);
}

TEST(Nack, AboutWhatIsAcknowledgedIsDropped) {
  Sender s;
  s.post(2);
  const std::vector<TxPacket> packets = s.send(0);
  ASSERT_EQ(s.sack(kRoundTrip, packets[0], 1), DropReason::kNone);
  EXPECT_EQ(s.nack(kRoundTrip, packets[0], wire::NackReason::kTrimmed).drop,
            DropReason::kStaleFeedback);
}

TEST(Nack, OfAFailedPeerIsFatal) {
  Sender s;
  s.post(2);
  const std::vector<TxPacket> packets = s.send(0);
  const Requester::Outcome outcome =
      s.nack(kRoundTrip, packets[1], wire::NackReason::kUnexpectedEvent);
  EXPECT_TRUE(outcome.fatal);
  EXPECT_EQ(outcome.status, CompletionStatus::kRemoteOperation);
  // A probe is refused with the PSN before the window; one further away is old. Of this one nothing
  // is known: the second time it is believed, when it answers what left after the first.
  TimeNs now = kRoundTrip;
  std::uint32_t path = 0;
  const auto refused_at = [&](Psn psn) {
    now += kRoundTrip;
    return s.requester.on_nack(now, {.reason = wire::NackReason::kUnexpectedEvent,
                                     .entropy = path,
                                     .psn = psn,
                                     .timestamp_ticks = ticks_at(now - kRoundTrip / 2)});
  };
  for (int i = 0; i < 3; ++i)
    EXPECT_EQ(refused_at(kFirstPsn - 1).drop, DropReason::kStaleFeedback) << "no path of ours";
  path = s.entropy(packets[0].ev);
  EXPECT_EQ(refused_at(kFirstPsn - 1).drop, DropReason::kStaleFeedback);
  EXPECT_TRUE(refused_at(kFirstPsn - 1).fatal);
  EXPECT_EQ(refused_at(kFirstPsn - 2).drop, DropReason::kStaleFeedback);
  EXPECT_EQ(refused_at(kFirstPsn + 2).drop, DropReason::kStaleFeedback);
}

// As verbs' RNR retry count 7 has it: a peer that says it is not ready is there.
TEST(Nack, APeerThatIsNotReadyIsWaitedForWhereAskedTo) {
  for (const bool waits : {false, true}) {
    Sender s({.rts = {.first_psn = kFirstPsn,
                      .timeout = 8,
                      .linear_retries = 1,
                      .exponential_retries = 0,
                      .waits_for_resources = waits},
              .probes = false});
    s.post(1);
    bool given_up = false;
    for (TimeNs now = 0; now < 20 * kMillisecondNs && !given_up; now += 2 * kRoundTrip) {
      const std::vector<TxPacket> packets = s.send(now);
      given_up = s.requester.on_timer(now).fatal;
      if (!given_up && !packets.empty())
        s.nack(now + kRoundTrip, packets.front(), wire::NackReason::kNoResource);
    }
    EXPECT_EQ(given_up, !waits);
  }
}

// The copy that a NACK asked for left in mid-interval and is not late when that ends. Without
// probes nothing else would ask.
TEST(Nack, ACopyThatGetsNoAnswerIsGivenUpInTime) {
  Sender s(
      {.rts = {.first_psn = kFirstPsn, .timeout = 8, .linear_retries = 1, .exponential_retries = 0},
       .probes = false});
  s.post(1);
  s.nack(kRoundTrip, s.send(0).front(), wire::NackReason::kNoResource);
  bool given_up = false;
  for (TimeNs now = 2 * kRoundTrip; now < 2 * kMillisecondNs && !given_up; now += kRoundTrip) {
    s.send(now);
    given_up = s.requester.on_timer(now).fatal;
  }
  EXPECT_TRUE(given_up);
}

TEST(TransportAck, CompletesMessagesAndSettlesTheirPackets) {
  Sender s;
  s.post(2, 1);
  s.post(2, 2);
  s.send(0);
  ASSERT_EQ(s.ack(kRoundTrip, 3, 1).drop, DropReason::kNone);
  EXPECT_EQ(s.requester.window().in_flight(), 1U);
  EXPECT_EQ(s.cc.acks.at(0).acked_bytes, 3 * kFullPacket);
  EXPECT_EQ(s.completions().size(), 1U);
  EXPECT_EQ(s.counters.messages_completed, 1U);
  EXPECT_EQ(s.ack(kRoundTrip, 3, 1).drop, DropReason::kStaleFeedback) << "no news";
}

TEST(TransportAck, ThatClaimsMoreThanWasSentIsDropped) {
  Sender s;
  s.post(2);
  s.send(0);
  EXPECT_EQ(s.ack(kRoundTrip, 3, 1).drop, DropReason::kStaleFeedback) << "a PSN never sent";
  EXPECT_EQ(s.ack(kRoundTrip, 2, 2).drop, DropReason::kStaleFeedback) << "a message never sent";
  EXPECT_EQ(s.ack(kRoundTrip, 1, 1).drop, DropReason::kStaleFeedback) << "with a packet missing";
  EXPECT_TRUE(s.completions().empty());
}

TEST(TransportNak, ARefusedMessageFailsWhenAllBeforeItAreComplete) {
  Sender s;
  for (std::uint64_t id : {1, 2, 3})
    s.post(1, id);
  s.send(0);
  const Requester::Outcome first = s.nak(kRoundTrip, 1, wire::kSyndromeNakRemoteAccess);
  EXPECT_EQ(first.drop, DropReason::kUnproven);
  EXPECT_EQ(s.send(kRoundTrip).size(), 1U) << "is it so?";
  EXPECT_EQ(s.nak(2 * kRoundTrip, 1, wire::kSyndromeNakRemoteAccess).drop, DropReason::kUnproven);
  EXPECT_EQ(s.send(2 * kRoundTrip).size(), 1U) << "an acknowledgement may be on its way";
  const Requester::Outcome early = s.nak(4 * kRoundTrip, 1, wire::kSyndromeNakRemoteAccess);
  EXPECT_EQ(early.drop, DropReason::kNone);
  EXPECT_FALSE(early.fatal);
  const Requester::Outcome outcome = s.ack(5 * kRoundTrip + 1, 1, 1);
  EXPECT_TRUE(outcome.fatal);
  EXPECT_EQ(outcome.status, CompletionStatus::kRemoteAccess);
}

TEST(TransportNak, OthersAreFatalAtOnce) {
  const std::pair<std::uint8_t, CompletionStatus> naks[] = {
      {wire::kSyndromeNakRemoteOperation, CompletionStatus::kRemoteOperation},
      {wire::kSyndromeNakImmediateLimit, CompletionStatus::kImmediateLimit},
      {wire::kSyndromeNakReceiveQueueEmpty, CompletionStatus::kReceiveMissing}};
  for (const auto& [syndrome, status] : naks) {
    Sender s;
    s.post(2);
    s.send(0);
    const Requester::Outcome outcome = s.nak(kRoundTrip, 1, syndrome);
    EXPECT_TRUE(outcome.fatal);
    EXPECT_EQ(outcome.status, status);
    EXPECT_EQ(s.nak(kRoundTrip, 7, syndrome).drop, DropReason::kStaleFeedback);
  }
}

TEST(TransportNak, AnUnknownSyndromeIsDropped) {
  Sender s;
  s.post(1);
  s.send(0);
  EXPECT_EQ(s.nak(kRoundTrip, 0, 0x7F).drop, DropReason::kBadHeaderField);
  EXPECT_EQ(s.requester.window().in_flight(), 1U);
}

TEST(Feedback, BeforeRtsNobodyWaitsForIt) {
  Requester requester(4);
  EXPECT_EQ(requester.on_sack(1, {}), DropReason::kQpNotReady);
  EXPECT_EQ(requester.on_nack(1, {}).drop, DropReason::kQpNotReady);
  EXPECT_EQ(requester.on_ack(1, Psn(0), {}).drop, DropReason::kQpNotReady);
}

}  // namespace
}  // namespace mrc::core
