#include "core/responder.h"

#include <gtest/gtest.h>

#include <optional>

#include "core/endpoint.h"

namespace mrc::core {
namespace {

using wire::Opcode;

constexpr std::uint32_t kMtu = 1024;
constexpr Psn kFirst{0xFF'FFFE};
constexpr std::uint64_t kBase = 0x10000;
constexpr std::uint64_t kLength = 1 << 20;
constexpr Rkey kKey{0x1234};
constexpr ProtectionDomain kDomain{3};

// A responder and the peer that the test plays. Packets are called by their place in the stream.
struct Receiver {
  explicit Receiver(const QpReadyToReceive& rtr = {}, bool allow_sends = false)
      : setup(rtr), responder(8, allow_sends) {
    setup.first_psn = kFirst;
    setup.path_mtu = kMtu;
    EXPECT_TRUE(
        memory
            .add({.address = kBase, .length = kLength, .domain = kDomain, .remote_write = true},
                 kKey)
            .ok());
    responder.start(setup, true, counters);
  }

  static wire::Packet packet(unsigned place, Opcode opcode, std::uint32_t message_length) {
    return {.bth = {.opcode = opcode, .psn = kFirst + place},
            .body = wire::Write{.msn = static_cast<std::uint16_t>(place),
                                .address = kBase,
                                .key = kKey,
                                .message_length = message_length}};
  }
  // A message of one packet.
  static wire::Packet only(unsigned place, std::uint32_t length = 64) {
    return packet(place, Opcode::kWriteOnly, length);
  }
  static wire::Packet immediate(unsigned place, std::uint16_t number, std::uint32_t value) {
    wire::Packet p = packet(place, Opcode::kWriteOnlyImm, 64);
    auto& write = *std::get_if<wire::Write>(&p.body);
    write.receive_msn = number;
    write.immediate = value;
    return p;
  }

  DropReason take(const wire::Packet& packet, Arrival arrival = {}, TimeNs now = 0) {
    if (arrival.payload_length == 0)
      arrival.payload_length = std::get_if<wire::Write>(&packet.body)->message_length;
    placement = {};
    answer = {};
    return responder.on_write(now, arrival, packet, memory, kDomain, placement, answer);
  }
  wire::Sack sack(unsigned trigger) {
    wire::Sack sack;
    responder.fill_sack(kFirst + trigger, sack);
    return sack;
  }
  std::optional<Completion> completion() {
    Completion one;
    if (!responder.pop_completion(one)) return std::nullopt;
    return one;
  }

  QpReadyToReceive setup;
  QpCounters counters;
  MemoryTable memory{4};
  Responder responder;
  Placement placement;
  Answer answer;
};

TEST(Responder, PlacesEachPacketWhereItSays) {
  Receiver r;
  wire::Packet p = Receiver::only(0, 100);
  std::get_if<wire::Write>(&p.body)->address = kBase + 5'000;
  EXPECT_EQ(r.take(p), DropReason::kNone);
  EXPECT_EQ(r.placement.address, kBase + 5'000);
  EXPECT_EQ(r.placement.length, 100U);
  EXPECT_FALSE(r.placement.into_receive);
  EXPECT_EQ(r.counters.data_received, 1U);
  EXPECT_EQ(r.counters.bytes_received, 100U);
}

TEST(Responder, PlacesADuplicateNowhereAndAcknowledgesItAgain) {
  Receiver r;
  r.take(Receiver::only(0));
  EXPECT_TRUE(r.answer.acknowledge);
  EXPECT_EQ(r.take(Receiver::only(0)), DropReason::kDuplicate);
  EXPECT_EQ(r.placement.length, 0U);
  EXPECT_EQ(r.answer.kind, AnswerKind::kSack);
  EXPECT_TRUE(r.answer.acknowledge);
  EXPECT_EQ(r.take(Receiver::only(2)), DropReason::kNone);
  EXPECT_EQ(r.take(Receiver::only(2)), DropReason::kDuplicate) << "beyond the edge";
  EXPECT_EQ(r.counters.duplicates, 2U);
}

TEST(Responder, TheLeftEdgeMovesOverAllThatHasArrived) {
  Receiver r;
  for (unsigned place : {3U, 1U, 2U}) {
    r.take(Receiver::only(place));
    EXPECT_EQ(r.responder.expected(), kFirst);
    EXPECT_FALSE(r.answer.acknowledge) << "a message is complete only in order";
  }
  r.take(Receiver::only(0));
  EXPECT_EQ(r.responder.expected(), kFirst + 4);
  EXPECT_EQ(r.responder.cumulative(), kFirst + 3);
  EXPECT_EQ(r.responder.messages_closed(), 4U);
  EXPECT_TRUE(r.answer.acknowledge);
}

TEST(Responder, OverALongRunToo) {
  Receiver r;
  for (unsigned place = 1; place < 200; ++place)
    ASSERT_EQ(r.take(Receiver::only(place)), DropReason::kNone);
  r.take(Receiver::only(0));
  EXPECT_EQ(r.responder.expected(), kFirst + 200);
  EXPECT_EQ(r.responder.messages_closed(), 200U);
}

TEST(Responder, BeyondTheWindowItSaysSoAndFarBeyondNothing) {
  Receiver r({.mpr_dest = 1});
  EXPECT_EQ(r.take(Receiver::only(127)), DropReason::kNone);
  EXPECT_EQ(r.take(Receiver::only(128)), DropReason::kOutOfWindow);
  EXPECT_EQ(r.answer.kind, AnswerKind::kNack);
  EXPECT_EQ(r.answer.reason, wire::NackReason::kPsnOutOfWindow);
  EXPECT_EQ(r.take(Receiver::only(129)), DropReason::kOutOfWindow);
  EXPECT_EQ(r.answer.kind, AnswerKind::kNothing) << "not once per packet";
  EXPECT_EQ(r.take(Receiver::only(129), {}, 2 * kMicrosecondNs), DropReason::kOutOfWindow);
  EXPECT_EQ(r.answer.kind, AnswerKind::kNack);
  EXPECT_EQ(r.take(Receiver::only(256), {}, kSecondNs), DropReason::kFarOutOfWindow);
  EXPECT_EQ(r.answer.kind, AnswerKind::kNothing);
}

TEST(Responder, MemoryIsCheckedForTheWholePacket) {
  Receiver r;
  wire::Packet p = Receiver::only(0, 100);
  auto& write = *std::get_if<wire::Write>(&p.body);
  write.address = kBase + kLength - 99;
  EXPECT_EQ(r.take(p), DropReason::kAccessDenied);
  EXPECT_EQ(r.answer.syndrome, wire::kSyndromeNakRemoteAccess);
  EXPECT_FALSE(r.answer.fatal) << "the peer's fault, not ours";
  EXPECT_EQ(r.placement.length, 0U);
  EXPECT_EQ(r.responder.expected(), kFirst) << "a refused packet changes nothing";
  write.address = kBase + kLength - 100;
  EXPECT_EQ(r.take(p), DropReason::kNone);
  wire::Packet wrong_key = Receiver::only(1);
  std::get_if<wire::Write>(&wrong_key.body)->key = Rkey{1};
  EXPECT_EQ(r.take(wrong_key), DropReason::kAccessDenied);
  EXPECT_EQ(r.take(Receiver::only(1), {.refusal = CallerRefusal::kNoMemory}),
            DropReason::kAccessDenied)
      << "registered, but gone";
}

TEST(Responder, HeadersThatContradictEachOtherAreRefused) {
  const struct {
    Opcode opcode;
    std::uint32_t message, payload;
  } bad[] = {
      {Opcode::kWriteOnly, 64, 60},       {Opcode::kWriteFirst, 3'000, 1'000},
      {Opcode::kWriteFirst, kMtu, kMtu},  {Opcode::kWriteMiddle, 3'000, 8},
      {Opcode::kWriteLast, 3'000, 100},   {Opcode::kWriteLast, 64, 64},
      {Opcode::kWriteOnly, 2'000, 2'000}, {Opcode::kWriteFirst, kMaxMessageBytes + 1, kMtu},
  };
  for (const auto& [opcode, message, payload] : bad) {
    Receiver r;
    EXPECT_EQ(r.take(Receiver::packet(0, opcode, message), {.payload_length = payload}),
              DropReason::kWrongMessage)
        << message << " " << payload;
    EXPECT_EQ(r.answer.syndrome, wire::kSyndromeNakInvalidRequest);
  }
  Receiver r;
  EXPECT_EQ(r.take(Receiver::packet(0, Opcode::kWriteLast, 3'000), {.payload_length = 952}),
            DropReason::kNone);
}

TEST(Responder, TrimmedPacketsAreAskedForAgain) {
  Receiver r;
  EXPECT_EQ(r.take(Receiver::only(0), {.trim = TrimState::kTrimmed}), DropReason::kTrimmed);
  EXPECT_EQ(r.answer.reason, wire::NackReason::kTrimmed);
  EXPECT_EQ(r.take(Receiver::only(0), {.trim = TrimState::kTrimmedLastHop}), DropReason::kTrimmed);
  EXPECT_EQ(r.answer.reason, wire::NackReason::kTrimmedLastHop);
  r.take(Receiver::only(0));
  EXPECT_EQ(r.take(Receiver::only(0), {.trim = TrimState::kTrimmed}), DropReason::kDuplicate);
  EXPECT_EQ(r.answer.psn, r.responder.no_packet()) << "it overtook the data on its path";
  Receiver silent({.trim_nack = false});
  EXPECT_EQ(silent.take(Receiver::only(0), {.trim = TrimState::kTrimmed}), DropReason::kTrimmed);
  EXPECT_EQ(silent.answer.kind, AnswerKind::kNothing);
}

TEST(Responder, WhatTheCallerCannotTakeIsAskedForAgain) {
  Receiver r;
  EXPECT_EQ(r.take(Receiver::only(0), {.refusal = CallerRefusal::kNoPacketBuffer}),
            DropReason::kNoBuffer);
  EXPECT_EQ(r.answer.reason, wire::NackReason::kNoPacketBuffer);
  EXPECT_EQ(r.take(Receiver::only(0), {.refusal = CallerRefusal::kNoResource}),
            DropReason::kNoBuffer);
  EXPECT_EQ(r.answer.reason, wire::NackReason::kNoResource);
  EXPECT_EQ(r.take(Receiver::only(0)), DropReason::kNone);
}

// Each packet ends one message at most, so that a number cannot be further from those around it
// than its PSN is.
TEST(Responder, ANumberThatCannotBeIsDroppedWithoutAWord) {
  Receiver r;
  const auto take = [&r](unsigned place, std::uint16_t msn, Opcode opcode = Opcode::kWriteOnly) {
    wire::Packet p = Receiver::packet(place, opcode, 64);
    std::get_if<wire::Write>(&p.body)->msn = msn;
    const DropReason drop = r.take(p);
    EXPECT_EQ(r.answer.kind == AnswerKind::kNothing, drop == DropReason::kWrongNumber);
    return drop;
  };
  EXPECT_EQ(take(0, 1), DropReason::kWrongNumber);
  EXPECT_EQ(take(0, 0xFFFF), DropReason::kWrongNumber);
  EXPECT_EQ(take(5, 6), DropReason::kWrongNumber);
  EXPECT_EQ(take(5, 3), DropReason::kNone);
  EXPECT_EQ(take(8, 3), DropReason::kWrongNumber) << "that one has ended";
  EXPECT_EQ(take(8, 7), DropReason::kWrongNumber) << "only two could end between";
  EXPECT_EQ(take(8, 6), DropReason::kNone);
  EXPECT_EQ(take(4, 6), DropReason::kWrongNumber) << "it would end the message of the newest";
  EXPECT_EQ(take(4, 3), DropReason::kNone);
}

TEST(Responder, ImmediatesAreDeliveredInOrderIntoReceives) {
  Receiver r;
  for (std::uint64_t id : {10, 11})
    ASSERT_TRUE(r.responder.post({.id = id}).ok());
  EXPECT_EQ(r.take(Receiver::immediate(1, 1, 0xB)), DropReason::kNone);
  EXPECT_FALSE(r.completion().has_value()) << "one before it is missing";
  EXPECT_EQ(r.take(Receiver::immediate(0, 0, 0xA)), DropReason::kNone);
  const auto first = r.completion();
  const auto second = r.completion();
  ASSERT_TRUE(first && second);
  EXPECT_EQ(first->id, 10U);
  EXPECT_EQ(first->immediate, 0xAU);
  EXPECT_EQ(first->length, 64U);
  EXPECT_TRUE(first->has_immediate);
  EXPECT_EQ(second->id, 11U);
  EXPECT_EQ(second->immediate, 0xBU);
  EXPECT_EQ(r.counters.immediates, 2U);
}

TEST(Responder, AnImmediateWithoutAReceiveIsFatal) {
  Receiver r;
  EXPECT_EQ(r.take(Receiver::immediate(0, 0, 1)), DropReason::kReceiveQueueEmpty);
  EXPECT_TRUE(r.answer.fatal);
  EXPECT_EQ(r.answer.status, CompletionStatus::kReceiveMissing);
  EXPECT_EQ(r.answer.syndrome, wire::kSyndromeNakReceiveQueueEmpty);
  EXPECT_EQ(r.placement.length, 0U);
}

TEST(Responder, MoreImmediatesThanWereAgreedAreFatal) {
  Receiver r({.max_wimm_dest = 2});
  for (std::uint64_t id : {1, 2, 3})
    ASSERT_TRUE(r.responder.post({.id = id}).ok());
  EXPECT_EQ(r.take(Receiver::immediate(2, 1, 0)), DropReason::kNone);
  EXPECT_EQ(r.take(Receiver::immediate(3, 1, 0)), DropReason::kWrongMessage) << "twice one number";
  EXPECT_EQ(r.take(Receiver::immediate(3, 2, 0)), DropReason::kImmediateLimit);
  EXPECT_TRUE(r.answer.fatal);
  EXPECT_EQ(r.answer.syndrome, wire::kSyndromeNakImmediateLimit);
}

TEST(Responder, ReceivesAreBoundedAndFlushedWhenItStops) {
  Receiver r;
  for (std::uint64_t id = 0; id < 8; ++id)
    ASSERT_TRUE(r.responder.post({.id = id}).ok());
  EXPECT_EQ(r.responder.post({}).code(), ErrorCode::kNoSpace);
  r.take(Receiver::immediate(0, 0, 5));
  r.responder.stop();
  EXPECT_EQ(r.completion()->status, CompletionStatus::kSuccess) << "delivered before";
  for (std::uint64_t id = 1; id < 8; ++id) {
    const auto flushed = r.completion();
    ASSERT_TRUE(flushed);
    EXPECT_EQ(flushed->id, id);
    EXPECT_EQ(flushed->status, CompletionStatus::kFlushed);
  }
  EXPECT_FALSE(r.completion());
}

TEST(Responder, SendsLandInTheReceiveOfTheirNumber) {
  Receiver r({}, true);
  for (std::uint64_t id : {20, 21})
    ASSERT_TRUE(r.responder.post({.id = id, .capacity = 2'000}).ok());
  wire::Packet p = Receiver::packet(1, Opcode::kWriteLastImm, 1'500);
  auto& write = *std::get_if<wire::Write>(&p.body);
  write.key = kSendKey;
  write.address = kMtu;
  write.receive_msn = 1;
  EXPECT_EQ(r.responder.receive_of(p).value(), 21U);
  EXPECT_EQ(r.take(p, {.payload_length = 476}), DropReason::kNone);
  EXPECT_TRUE(r.placement.into_receive);
  EXPECT_EQ(r.placement.receive_id, 21U);
  EXPECT_EQ(r.placement.address, kMtu);
  write.receive_msn = 2;
  write.msn = 2;
  p.bth.psn = kFirst + 3;
  EXPECT_EQ(r.take(p, {.payload_length = 476}), DropReason::kNoBuffer) << "not posted yet";
  EXPECT_EQ(r.answer.reason, wire::NackReason::kNoResource);
  EXPECT_FALSE(r.responder.receive_of(p).ok());
}

TEST(Responder, ASendLongerThanItsReceiveIsRefused) {
  Receiver r({}, true);
  ASSERT_TRUE(r.responder.post({.id = 1, .capacity = 63}).ok());
  wire::Packet p = Receiver::immediate(0, 0, 0);
  auto& write = *std::get_if<wire::Write>(&p.body);
  write.key = kSendKey;
  write.address = 0;
  EXPECT_EQ(r.take(p), DropReason::kWrongMessage);
  EXPECT_EQ(r.answer.syndrome, wire::kSyndromeNakInvalidRequest);
}

TEST(Responder, ASackSaysWhatHasArrived) {
  Receiver r;
  for (unsigned place : {0U, 1U, 3U, 5U})
    r.take(Receiver::only(place));
  const wire::Sack sack = r.sack(5);
  EXPECT_EQ(sack.cumulative, kFirst + 1);
  EXPECT_EQ(sack.trigger_offset(), 4);
  EXPECT_EQ(sack.bitmap_offset, 1);
  EXPECT_EQ(sack.bitmap, 0b1010U);
  EXPECT_EQ(sack.out_of_order_count, 2);
  // Four packets of 64 bytes and 84 of headers; in units of 256, rounded up.
  EXPECT_EQ(sack.received_units, (4 * 148 + 255) / 256);
  EXPECT_EQ(sack.window_units, 0) << "no dynamic MPR";
}

// The 64 bits cannot show a range of 200: every second SACK sweeps on over it.
TEST(Responder, SacksInTurnShowEveryHoleOfALongRange) {
  Receiver r;
  for (unsigned place = 1; place < 200; ++place)
    if (place % 50 != 0) r.take(Receiver::only(place));
  std::vector<bool> shown(200, false);
  for (unsigned i = 0; i < 10; ++i) {
    const wire::Sack sack = r.sack(199);
    const int base = sack.bitmap_offset - 1;  // the cumulative PSN is one before place 0
    for (int bit = 0; bit < 64; ++bit) {
      const int place = base + bit;
      if (place < 0 || place >= 200) continue;
      shown[static_cast<unsigned>(place)] = true;
      EXPECT_EQ((sack.bitmap >> bit) & 1, place % 50 != 0 ? 1U : 0U) << place;
    }
  }
  for (unsigned place : {50U, 100U, 150U})
    EXPECT_TRUE(shown[place]) << place;
}

TEST(Responder, SacksFollowTheThresholdAndWhatAsksForThem) {
  Receiver r({.sack_threshold_bytes = 3'000});
  EXPECT_EQ(r.take(Receiver::only(0)), DropReason::kNone);
  EXPECT_EQ(r.answer.kind, AnswerKind::kNothing) << "64 bytes count as 1,024";
  r.take(Receiver::only(1));
  EXPECT_EQ(r.answer.kind, AnswerKind::kNothing);
  r.take(Receiver::only(2));
  EXPECT_EQ(r.answer.kind, AnswerKind::kSack);
  wire::Packet asks = Receiver::only(3);
  asks.bth.ack_request = true;
  r.take(asks);
  EXPECT_EQ(r.answer.kind, AnswerKind::kSack);
  wire::Packet again = Receiver::only(4);
  again.bth.retransmission = true;
  r.take(again);
  EXPECT_EQ(r.answer.kind, AnswerKind::kSack);
  r.take(Receiver::only(5), {.congestion_experienced = true});
  EXPECT_EQ(r.answer.kind, AnswerKind::kSack);
  EXPECT_EQ(r.answer.mark, wire::PathMark::kSkipOnce);
}

TEST(Responder, TheWindowMayShrinkWhereThatWasAgreed) {
  Receiver fixed;
  EXPECT_EQ(fixed.responder.set_window(1, {}).code(), ErrorCode::kWrongState);
  Receiver r({.mpr_dest = 4, .dynamic_mpr = true});
  EXPECT_EQ(r.sack(0).window_units, 4);
  EXPECT_EQ(r.responder.set_window(0, {}).code(), ErrorCode::kInvalidArgument);
  EXPECT_EQ(r.responder.set_window(5, {}).code(), ErrorCode::kInvalidArgument);
  ASSERT_TRUE(r.responder.set_window(2, {}).ok());
  EXPECT_EQ(r.sack(0).window_units, 2);
  EXPECT_EQ(r.take(Receiver::only(3 * 128)), DropReason::kNone) << "sent before it was told";
}

TEST(Responder, APenaltyIsInEveryAnswerUntilItIsOver) {
  Receiver r;  // without dynamic MPR: the window stays as agreed
  ASSERT_TRUE(r.responder.set_window(r.setup.mpr_dest, {.value = 64}).ok());
  EXPECT_EQ(r.sack(0).window_penalty, 64);
  EXPECT_FALSE(r.sack(0).restore_window);
  ASSERT_TRUE(r.responder.set_window(r.setup.mpr_dest, {.restore = true}).ok());
  EXPECT_EQ(r.sack(0).window_penalty, 0);
  EXPECT_TRUE(r.sack(0).restore_window);
  EXPECT_EQ(r.responder.set_window(r.setup.mpr_dest, {.value = 128}).code(),
            ErrorCode::kInvalidArgument);
}

TEST(Responder, APathThatDamagesThreePacketsInARowIsToBeSkipped) {
  Receiver r;
  EXPECT_FALSE(r.responder.on_corrupt(7));
  EXPECT_FALSE(r.responder.on_corrupt(7));
  EXPECT_FALSE(r.responder.on_corrupt(8)) << "another path";
  EXPECT_TRUE(r.responder.on_corrupt(7));
  EXPECT_FALSE(r.responder.on_corrupt(7)) << "counted anew";
  r.responder.on_corrupt(8);
  r.take(Receiver::only(0), {.entropy = 8});
  EXPECT_FALSE(r.responder.on_corrupt(8)) << "it delivered one meanwhile";
}

}  // namespace
}  // namespace mrc::core
