// Room for answers, and for each queue pair's transport ACK beside them.
#include "core/control_queue.h"

#include <gtest/gtest.h>

#include <memory>

namespace mrc::core {
namespace {

ControlEntry entry_of(std::uint32_t slot, ControlEntry::Kind kind = ControlEntry::Kind::kSack) {
  ControlEntry entry;
  entry.kind = kind;
  entry.qp.slot = slot;
  return entry;
}

ControlEntry ack_of(std::uint32_t slot) { return entry_of(slot, ControlEntry::Kind::kAck); }

TEST(ControlLine, IsFirstInFirstOut) {
  ControlLine queue(4, 2);
  for (std::uint32_t slot = 0; slot < 3; ++slot)
    ASSERT_TRUE(queue.push(entry_of(slot)));
  for (std::uint32_t slot = 0; slot < 3; ++slot) {
    EXPECT_EQ(queue.front().qp.slot, slot);
    queue.pop();
  }
  EXPECT_TRUE(queue.empty());
}

TEST(ControlLine, AFullQueueStillTakesAcks) {
  ControlLine queue(4, 2);
  for (unsigned i = 0; i < 4; ++i)
    ASSERT_TRUE(queue.push(entry_of(0)));
  EXPECT_FALSE(queue.push(entry_of(0)));
  EXPECT_TRUE(queue.push(ack_of(0)));
  EXPECT_TRUE(queue.push(ack_of(1)));
  EXPECT_FALSE(queue.push(entry_of(1))) << "the room of the ACKs is theirs alone";
}

TEST(ControlLine, AcksTakeNoRoomFromOthers) {
  ControlLine queue(4, 2);
  queue.push(ack_of(0));
  queue.push(ack_of(1));
  for (unsigned i = 0; i < 4; ++i)
    EXPECT_TRUE(queue.push(entry_of(0)));
  EXPECT_FALSE(queue.push(entry_of(0)));
}

TEST(ControlLine, CopiesLeaveHalfOfTheRoom) {
  ControlLine queue(8, 1);
  EXPECT_TRUE(queue.push_copies(entry_of(0), 16));
  EXPECT_EQ(queue.size(), 4U);
  EXPECT_TRUE(queue.push_copies(entry_of(0), 16)) << "one is always tried";
  EXPECT_EQ(queue.size(), 5U);
}

TEST(ControlLine, WhatCannotLeaveLetsOthersPass) {
  ControlLine queue(4, 2);
  queue.push(ack_of(0));
  queue.push(entry_of(1));
  queue.defer();
  EXPECT_EQ(queue.front().qp.slot, 1U);
  queue.pop();
  EXPECT_EQ(queue.front().qp.slot, 0U);
  queue.pop();
  for (unsigned i = 0; i < 4; ++i)
    EXPECT_TRUE(queue.push(entry_of(0))) << "deferring lost count of nothing";
}

TEST(ControlLine, AnswersEndWithTheirQueuePair) {
  ControlLine queue(8, 2);
  ControlEntry response;
  response.kind = ControlEntry::Kind::kEndpointResponse;
  std::construct_at(&response.destination, Address{0, 7});
  queue.push(entry_of(0));
  queue.push(entry_of(1));
  queue.push(ack_of(0));
  queue.push(response);
  queue.push(entry_of(1));
  queue.forget(0);
  EXPECT_EQ(queue.size(), 3U);
  EXPECT_EQ(queue.front().qp.slot, 1U);
  queue.pop();
  EXPECT_EQ(queue.front().kind, ControlEntry::Kind::kEndpointResponse) << "is nobody's";
}

ControlEntry ev_probe_answer() {
  ControlEntry entry;
  entry.kind = ControlEntry::Kind::kEndpointResponse;
  entry.op = wire::EndpointOp::kEvProbe;
  std::construct_at(&entry.destination, Address{0, 7});
  return entry;
}

TEST(ControlQueue, AnswersToAnybodyTakeAQuarterAndNoTurnOfPeers) {
  ControlQueue queue(8, 2);
  EXPECT_TRUE(queue.push(ev_probe_answer()));
  EXPECT_TRUE(queue.push(ev_probe_answer()));
  EXPECT_FALSE(queue.push(ev_probe_answer()));
  for (unsigned i = 0; i < 6; ++i)
    EXPECT_TRUE(queue.push(entry_of(0)));
  EXPECT_FALSE(queue.push(entry_of(0)));
  EXPECT_EQ(queue.lines()[0].front().kind, ControlEntry::Kind::kSack) << "peers first";
  queue.forget(0);
  EXPECT_FALSE(queue.empty()) << "the answers to anybody are still there";
}

TEST(ControlQueue, OfTheSmallestThereIsRoomForOneOfEach) {
  ControlQueue queue(1, 1);
  EXPECT_TRUE(queue.push(ev_probe_answer()));
  EXPECT_TRUE(queue.push(entry_of(0)));
}

}  // namespace
}  // namespace mrc::core
