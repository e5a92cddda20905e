// The order of messages, their marks, refusals and reports, without any network.
#include "core/message_queue.h"

#include <gtest/gtest.h>

namespace mrc::core {
namespace {

constexpr Sequence kFirst = 1'000;
constexpr std::uint32_t kMtu = 100;

struct Queue : MessageQueue {
  Queue() : MessageQueue(8) {}
  void post(std::uint64_t id, std::uint32_t length, bool with_immediate = false,
            bool signaled = true) {
    MessageQueue::post({.id = id,
                        .length = length,
                        .with_immediate = with_immediate,
                        .immediate = 0,
                        .signaled = signaled});
  }
  // Sends whole messages.
  void send(unsigned messages) {
    for (; messages > 0; --messages) {
      open(sent, kMtu);
      sent = at(next()).end();
      note_sent(sent);
    }
  }
  Sequence sent = kFirst;
};

TEST(MessageQueue, CutsMessagesIntoPackets) {
  Queue queue;
  for (const std::uint32_t length : {0U, 1U, 100U, 101U, 200U})
    queue.post(length, length);
  queue.send(5);
  const Sequence firsts[] = {kFirst, kFirst + 1, kFirst + 2, kFirst + 3, kFirst + 5};
  for (std::uint64_t m = 0; m < 5; ++m)
    EXPECT_EQ(queue.at(m).first, firsts[m]) << "message " << m;
  EXPECT_EQ(queue.at(4).end(), kFirst + 7);
  EXPECT_TRUE(queue.all_segmented());
}

TEST(MessageQueue, AnOpenMessageIsClosedByItsLastPacketOnly) {
  Queue queue;
  queue.post(1, 250);
  queue.open(kFirst, kMtu);
  queue.note_sent(kFirst + 1);
  queue.note_sent(kFirst + 2);
  EXPECT_EQ(queue.next(), 0U);
  EXPECT_FALSE(queue.ends_backlog(kFirst + 1));
  EXPECT_TRUE(queue.ends_backlog(kFirst + 2));
  queue.note_sent(kFirst + 3);
  EXPECT_EQ(queue.next(), 1U);
}

TEST(MessageQueue, FindsTheMessageOfAPacket) {
  Queue queue;
  for (unsigned i = 0; i < 5; ++i)
    queue.post(i, 300);
  queue.send(5);
  for (Sequence seq = kFirst; seq < queue.sent; ++seq)
    EXPECT_EQ(queue.unfinished_with(seq, queue.sent), (seq - kFirst) / 3);
  EXPECT_EQ(queue.unfinished_with(kFirst - 1, queue.sent), MessageQueue::kNone);
  EXPECT_EQ(queue.unfinished_with(queue.sent, queue.sent), MessageQueue::kNone) << "never sent";
  queue.complete(2);
  EXPECT_EQ(queue.unfinished_with(kFirst + 5, queue.sent), MessageQueue::kNone) << "complete";
}

TEST(MessageQueue, HoldsImmediatesBackNotWrites) {
  Queue queue;
  queue.post(1, 10, true);
  queue.post(2, 10, true);
  queue.send(1);
  EXPECT_FALSE(queue.may_send(1));
  EXPECT_TRUE(queue.may_send(2));
  queue.complete(1);
  EXPECT_TRUE(queue.may_send(1));
  Queue plain;
  plain.post(1, 10);
  EXPECT_TRUE(plain.may_send(0));
}

TEST(MessageQueue, AnAckMustNameOnePlace) {
  Queue queue;
  for (unsigned i = 0; i < 3; ++i)
    queue.post(i, 200);
  queue.send(3);
  EXPECT_EQ(queue.acknowledged_by(1, kFirst + 1), 1U);
  EXPECT_EQ(queue.acknowledged_by(0, kFirst), 0U) << "nothing new is no contradiction";
  EXPECT_EQ(queue.acknowledged_by(2, kFirst + 2), MessageQueue::kNone) << "not all has arrived";
  EXPECT_EQ(queue.acknowledged_by(4, kFirst + 5), MessageQueue::kNone) << "more than was sent";
  queue.complete(3);
  EXPECT_EQ(queue.acknowledged_by(2, kFirst + 3), MessageQueue::kNone) << "an old one";
}

TEST(MessageQueue, WhatWasRefusedStaysRefused) {
  Queue queue;
  for (unsigned i = 0; i < 4; ++i)
    queue.post(i, 10);
  queue.send(3);
  queue.refuse(2, CompletionStatus::kRemoteAccess);
  queue.refuse(1, CompletionStatus::kRemoteInvalidRequest);
  queue.refuse(2, CompletionStatus::kRemoteOperation);
  EXPECT_EQ(queue.refused_from(), queue.at(1).first) << "the earliest counts";
  EXPECT_EQ(queue.refused_for(), CompletionStatus::kRemoteInvalidRequest);
  EXPECT_FALSE(queue.may_send(8)) << "nothing is sent behind it";
  EXPECT_FALSE(queue.refused_is_due());
  EXPECT_EQ(queue.complete(3), 1U);
  EXPECT_TRUE(queue.refused_is_due());
}

TEST(MessageQueue, ReportsInOrderAndLeavesOutSilentSuccess) {
  Queue queue;
  queue.post(1, 10, false, false);
  queue.post(2, 10);
  queue.post(3, 10, false, false);
  queue.send(3);
  queue.complete(2);
  Completion completion;
  ASSERT_TRUE(queue.pop_completion(completion));
  EXPECT_EQ(completion.id, 2U);
  EXPECT_FALSE(queue.pop_completion(completion));
  queue.flush(CompletionStatus::kRetryExceeded);
  ASSERT_TRUE(queue.pop_completion(completion)) << "a failure is never silent";
  EXPECT_EQ(completion.id, 3U);
  EXPECT_EQ(completion.status, CompletionStatus::kRetryExceeded);
  EXPECT_EQ(queue.outstanding(), 0U);
}

TEST(MessageQueue, AFlushBlamesTheOldest) {
  Queue queue;
  for (unsigned i = 0; i < 3; ++i)
    queue.post(i, 10);
  queue.send(1);
  queue.complete(1);
  queue.flush(CompletionStatus::kRemoteAccess);
  Completion completion;
  for (const CompletionStatus status :
       {CompletionStatus::kSuccess, CompletionStatus::kRemoteAccess, CompletionStatus::kFlushed}) {
    ASSERT_TRUE(queue.pop_completion(completion));
    EXPECT_EQ(completion.status, status);
  }
}

TEST(MessageQueue, PlacesAreUsedAgain) {
  Queue queue;
  for (unsigned i = 0; i < 100; ++i) {
    ASSERT_FALSE(queue.full());
    queue.post(i, 150);
    queue.send(1);
    queue.complete(1);
    Completion completion;
    ASSERT_TRUE(queue.pop_completion(completion));
    EXPECT_EQ(completion.id, i);
  }
  for (unsigned i = 0; i < 8; ++i)
    queue.post(i, 1);
  EXPECT_TRUE(queue.full());
}

}  // namespace
}  // namespace mrc::core
