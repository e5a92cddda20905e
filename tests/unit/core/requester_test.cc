// Messages into packets, windows, timers and completions.
#include "core/requester.h"

#include <gtest/gtest.h>

#include "unit/core/requester_fixture.h"

namespace mrc::core {
namespace {

using wire::Opcode;

const wire::Write& write_of(const TxPacket& packet) {
  return *std::get_if<wire::Write>(&packet.packet.body);
}

TEST(Requester, CutsAMessageIntoPacketsThatNameTheirPlace) {
  Sender s;
  ASSERT_TRUE(s.requester
                  .post(0, {.local_address = 0x100,
                            .length = 2'050,
                            .remote_address = 0x9000,
                            .remote_key = Rkey{77}})
                  .ok());
  const std::vector<TxPacket> packets = s.send(500);
  ASSERT_EQ(packets.size(), 3U);
  EXPECT_EQ(packets[0].packet.bth.opcode, Opcode::kWriteFirst);
  EXPECT_EQ(packets[1].packet.bth.opcode, Opcode::kWriteMiddle);
  EXPECT_EQ(packets[2].packet.bth.opcode, Opcode::kWriteLast);
  for (unsigned i = 0; i < 3; ++i) {
    EXPECT_EQ(packets[i].packet.bth.psn, Sender::psn(i));
    EXPECT_EQ(packets[i].packet.bth.destination, kRemoteQp);
    EXPECT_EQ(packets[i].local_address, 0x100 + i * kPathMtu);
    EXPECT_EQ(write_of(packets[i]).address, 0x9000 + i * kPathMtu);
    EXPECT_EQ(write_of(packets[i]).key, Rkey{77});
    EXPECT_EQ(write_of(packets[i]).message_length, 2'050U);
    EXPECT_EQ(write_of(packets[i]).timestamp.ticks, ticks_at(500));
    EXPECT_FALSE(packets[i].packet.bth.retransmission);
  }
  EXPECT_EQ(packets[2].payload_length, 2U);
  EXPECT_EQ(packets[2].packet.bth.pad, 2);
  EXPECT_EQ(s.counters.bytes_sent, 2'050U);
}

TEST(Requester, ImmediatesStandInTheLastPacketAndAreNumbered) {
  Sender s;
  const SendRequest plain{.length = 10};
  const SendRequest immediate{.length = kPathMtu + 1, .with_immediate = true, .immediate = 9};
  for (const SendRequest& request : {plain, immediate, immediate})
    ASSERT_TRUE(s.requester.post(0, request).ok());
  const std::vector<TxPacket> packets = s.send(0);
  ASSERT_EQ(packets.size(), 5U);
  EXPECT_EQ(packets[0].packet.bth.opcode, Opcode::kWriteOnly);
  EXPECT_EQ(packets[2].packet.bth.opcode, Opcode::kWriteLastImm);
  EXPECT_EQ(write_of(packets[2]).immediate, 9U);
  EXPECT_EQ(write_of(packets[2]).receive_msn, 0);
  EXPECT_EQ(write_of(packets[4]).receive_msn, 1);
  EXPECT_EQ(write_of(packets[4]).msn, 2);
}

TEST(Requester, ASendTravelsAsAWriteWithAKeyOfItsOwnAndOffsets) {
  Sender s;
  ASSERT_TRUE(s.requester
                  .post(0, {.length = kPathMtu + 4,
                            .remote_address = 0x9000,
                            .remote_key = Rkey{77},
                            .into_receive = true})
                  .ok());
  const std::vector<TxPacket> packets = s.send(0);
  ASSERT_EQ(packets.size(), 2U);
  EXPECT_EQ(write_of(packets[1]).key, kSendKey);
  EXPECT_EQ(write_of(packets[1]).address, kPathMtu);
  EXPECT_EQ(packets[1].packet.bth.opcode, Opcode::kWriteLastImm);
}

TEST(Requester, RefusesWorkThatCannotBeDone) {
  Sender s({.rts = {.first_psn = kFirstPsn, .max_wimm = 0}, .max_sends = 2});
  EXPECT_EQ(s.requester.post(0, {.length = kMaxMessageBytes + 1}).code(), ErrorCode::kTooLong);
  EXPECT_EQ(s.requester.post(0, {.length = 16, .remote_address = ~std::uint64_t{0} - 8}).code(),
            ErrorCode::kInvalidArgument);
  EXPECT_EQ(s.requester.post(0, {.with_immediate = true}).code(), ErrorCode::kUnsupported);
  s.post(1);
  s.post(1);
  EXPECT_EQ(s.requester.post(0, {}).code(), ErrorCode::kNoSpace);
  Requester before_rts(4);
  EXPECT_EQ(before_rts.post(0, {}).code(), ErrorCode::kWrongState);
}

TEST(Requester, TheWindowOfPsnsEndsWhatIsSent) {
  Sender s({.rts = {.first_psn = kFirstPsn, .mpr = 1}});
  s.post(200);
  const std::vector<TxPacket> packets = s.send(0);
  ASSERT_EQ(packets.size(), kWindowUnitPsns);
  EXPECT_TRUE(packets.back().packet.bth.ack_request) << "nothing else would open the window";
  EXPECT_FALSE(packets.front().packet.bth.ack_request);
  EXPECT_FALSE(s.requester.wants_to_send());
  ASSERT_EQ(s.sack(kRoundTrip, packets[1], 2), DropReason::kNone);
  EXPECT_EQ(s.send(kRoundTrip).size(), 2U);
}

TEST(Requester, SoDoesTheCongestionWindow) {
  Sender s;
  s.cc.window = 3 * 1'112;  // of a full packet with its headers
  s.post(10);
  EXPECT_EQ(s.send(0).size(), 3U);
  TxPacket out;
  EXPECT_EQ(s.next(0, out), SendOutcome::kWindowClosed);
  EXPECT_TRUE(s.requester.wants_to_send());
  EXPECT_EQ(s.cc.in_flight_bytes(), s.requester.window().in_flight_bytes());
}

TEST(Requester, TheFirstPacketIntoAnIdleNetworkAsksUntilItsRoundTripIsKnown) {
  Sender s({.jitter_ns = kMillisecondNs});
  s.post(8);
  const std::vector<TxPacket> first = s.send(0);
  EXPECT_TRUE(first[0].packet.bth.ack_request) << "its round trip has no queue in it";
  EXPECT_FALSE(first[1].packet.bth.ack_request);
  ASSERT_EQ(s.sack(kRoundTrip, first.back(), 8), DropReason::kNone);
  s.post(8);
  EXPECT_FALSE(s.send(kRoundTrip)[0].packet.bth.ack_request);
}

TEST(Requester, APacedWindowIsADeadline) {
  Sender s;
  s.cc.pace(5'000);
  s.post(1);
  TxPacket out;
  EXPECT_EQ(s.next(1'000, out), SendOutcome::kWindowClosed);
  EXPECT_EQ(s.requester.deadline(), 5'000);
  s.requester.on_timer(5'000);
  EXPECT_EQ(s.next(5'000, out), SendOutcome::kSent);
}

TEST(Requester, WithoutAFreePortNothingLeavesAndNothingIsCounted) {
  Sender s;
  s.post(1);
  TxPacket out;
  EXPECT_EQ(s.next(0, out, PortMask::of(PortId{9})), SendOutcome::kNoPath);
  EXPECT_EQ(s.counters.data_sent, 0U);
  EXPECT_EQ(s.cc.in_flight_bytes(), 0);
}

TEST(Requester, TheLastPacketOfTheBacklogAsksForAnAnswer) {
  Sender s;
  s.post(2);
  s.post(2, 2);
  const std::vector<TxPacket> packets = s.send(0);
  ASSERT_EQ(packets.size(), 4U);
  EXPECT_FALSE(packets[1].packet.bth.ack_request) << "more is posted";
  EXPECT_TRUE(packets[3].packet.bth.ack_request);
}

TEST(Requester, ClassesTellWhetherSwitchesMayTrim) {
  Sender trims;
  trims.post(1);
  EXPECT_EQ(trims.send(0).at(0).traffic_class, TrafficClass::kTrimmable);
  Sender drops({.network_trims = false});
  drops.post(1);
  EXPECT_EQ(drops.send(0).at(0).traffic_class, TrafficClass::kNoTrim);
}

TEST(Requester, MoreImmediatesThanThePeerCanStashWait) {
  Sender s({.rts = {.first_psn = kFirstPsn, .max_wimm = 2}});
  for (unsigned i = 0; i < 3; ++i)
    ASSERT_TRUE(s.requester.post(0, {.id = i, .length = 8, .with_immediate = true}).ok());
  const std::vector<TxPacket> packets = s.send(0);
  ASSERT_EQ(packets.size(), 2U);
  ASSERT_EQ(s.ack(kRoundTrip, 1, 1).drop, DropReason::kNone);
  EXPECT_EQ(s.send(kRoundTrip).size(), 1U);
}

TEST(Requester, CompletesInPostingOrderOnTheTransportAck) {
  Sender s;
  s.post(2, 7);
  s.post(1, 8);
  s.send(0);
  EXPECT_TRUE(s.completions().empty());
  ASSERT_EQ(s.ack(kRoundTrip, 3, 2).drop, DropReason::kNone);
  const std::vector<Completion> done = s.completions();
  ASSERT_EQ(done.size(), 2U);
  EXPECT_EQ(done[0].id, 7U);
  EXPECT_EQ(done[0].length, 2 * kPathMtu);
  EXPECT_EQ(done[1].id, 8U);
  EXPECT_EQ(s.requester.deadline(), kNever) << "nothing is left to wait for";
}

TEST(Requester, StoppingBlamesTheOldestMessageAndFlushesTheOthers) {
  Sender s;
  for (std::uint64_t id : {1, 2, 3})
    s.post(1, id);
  const std::vector<TxPacket> packets = s.send(0);
  s.requester.stop(CompletionStatus::kRemoteAccess);
  const std::vector<Completion> done = s.completions();
  ASSERT_EQ(done.size(), 3U);
  EXPECT_EQ(done[0].status, CompletionStatus::kRemoteAccess);
  EXPECT_EQ(done[1].status, CompletionStatus::kFlushed);
  EXPECT_EQ(done[2].status, CompletionStatus::kFlushed);
  EXPECT_EQ(s.cc.in_flight_bytes(), 0) << "others send to that peer too";
}

TEST(Requester, AResetForgetsWhatWasPosted) {
  Sender s;
  s.post(3);
  s.send(0, 1);
  s.requester.reset();
  EXPECT_EQ(s.requester.messages().outstanding(), 0U);
  EXPECT_TRUE(s.completions().empty());
  EXPECT_FALSE(s.requester.started());
  EXPECT_EQ(s.requester.deadline(), kNever);
  EXPECT_EQ(s.cc.in_flight_bytes(), 0);
}

// 2^4 * 1.024 us without an answer: the retry timer sends again what is that old.
TEST(Requester, TheRetryTimerSendsAgainWhatGotNoAnswer) {
  Sender s({.rts = {.first_psn = kFirstPsn, .timeout = 8}, .probes = false});
  s.post(3);
  const std::vector<TxPacket> first = s.send(0);
  const TimeNs expiry = 1'024 << 8;
  EXPECT_EQ(s.requester.deadline(), expiry);
  EXPECT_FALSE(s.requester.on_timer(expiry).fatal);
  EXPECT_EQ(s.counters.timeouts, 1U);
  const std::vector<TxPacket> again = s.send(expiry);
  ASSERT_EQ(again.size(), 3U);
  for (unsigned i = 0; i < 3; ++i) {
    EXPECT_EQ(again[i].packet.bth.psn, first[i].packet.bth.psn) << "oldest first";
    EXPECT_TRUE(again[i].packet.bth.retransmission);
    EXPECT_TRUE(again[i].packet.bth.ack_request);
    EXPECT_EQ(again[i].traffic_class, TrafficClass::kTrimmableRetransmission);
    EXPECT_NE(again[i].ev, first[i].ev);
  }
}

TEST(Requester, AfterAllTriesItGivesUp) {
  Sender s({.rts = {.first_psn = kFirstPsn, .linear_retries = 1, .exponential_retries = 1},
            .probes = false});
  s.post(1);
  s.send(0);
  Requester::Outcome outcome;
  for (unsigned timers = 0; timers < 10 && !outcome.fatal; ++timers) {
    const TimeNs now = s.requester.deadline();
    outcome = s.requester.on_timer(now);
    s.send(now);
    EXPECT_EQ(outcome.fatal, s.counters.timeouts == 3) << timers;
  }
  EXPECT_EQ(outcome.status, CompletionStatus::kRetryExceeded);
}

TEST(Requester, WhoBacksOffGivesItsRoomToOthersAndIsSilent) {
  Sender s({.rts = {.first_psn = kFirstPsn, .linear_retries = 1, .exponential_retries = 2},
            .probes = false});
  s.post(2);
  s.send(0);
  const TimeNs first_try = s.requester.deadline();
  EXPECT_TRUE(s.requester.on_timer(first_try).opened_window);
  ASSERT_EQ(s.send(first_try).size(), 2U);
  EXPECT_GT(s.cc.in_flight_bytes(), 0);
  const TimeNs room_ends = s.requester.deadline();
  EXPECT_TRUE(s.requester.on_timer(room_ends).opened_window);
  EXPECT_EQ(s.cc.in_flight_bytes(), 0);
  EXPECT_EQ(s.requester.window().in_flight(), 2U) << "an answer may still come";
  s.post(1);
  EXPECT_TRUE(s.send(room_ends).empty());
  const TimeNs second_try = s.requester.deadline();
  EXPECT_EQ(second_try - first_try, 2 * (room_ends - first_try));
  s.requester.on_timer(second_try);
  EXPECT_EQ(s.send(second_try).size(), 3U);
  EXPECT_EQ(s.cc.in_flight_bytes(), s.requester.window().in_flight_bytes());
}

// Where an end may be late by itself, one packet asks for all.
TEST(Requester, APeerThatMayBeAwayIsAskedByOnePacket) {
  Sender s({.rts = {.first_psn = kFirstPsn, .timeout = 4},
            .probes = false,
            .jitter_ns = kMillisecondNs});
  s.post(5);
  s.send(0);
  const TimeNs now = s.requester.deadline();
  s.requester.on_timer(now);
  EXPECT_EQ(s.send(now).size(), 1U);
  EXPECT_EQ(s.paths.set.bad_count(), 0U) << "silence everywhere is held against no path";
}

TEST(Requester, APayloadThatCannotBeReadFailsItsMessageWhenItsTurnComes) {
  Sender s;
  s.post(1, 1);
  s.post(2);
  s.send(0);
  EXPECT_FALSE(s.requester.refuse(10, Sender::psn(1)).fatal) << "the one before is not complete";
  EXPECT_EQ(s.requester.refuse(10, Sender::psn(40)).drop, DropReason::kStaleFeedback);
  const Requester::Outcome outcome = s.ack(kRoundTrip, 1, 1);
  EXPECT_TRUE(outcome.fatal);
  EXPECT_EQ(outcome.status, CompletionStatus::kLocalProtection);
}

}  // namespace
}  // namespace mrc::core
