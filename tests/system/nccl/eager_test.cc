// Which of the messages sent without a credit were taken, as both ends count them.
#include "eager.h"

#include <gtest/gtest.h>

namespace mrc::nccl {
namespace {

TEST(EagerInbox, TakesTheOldestOfATag) {
  EagerInbox inbox;
  for (const int tag : {1, 2, 1})
    inbox.add(tag);
  EXPECT_EQ(inbox.take(3), EagerInbox::kNone);
  EXPECT_EQ(inbox.take(2), 1U);
  EXPECT_EQ(inbox.taken().all_before, 0U);
  EXPECT_EQ(inbox.taken().others, 0b10);
  EXPECT_EQ(inbox.take(1), 0U);
  EXPECT_EQ(inbox.taken().all_before, 2U);
  EXPECT_EQ(inbox.taken().others, 0);
  EXPECT_EQ(inbox.take(1), 2U);
  EXPECT_EQ(inbox.take(1), EagerInbox::kNone);
}

TEST(EagerInbox, HasRoomForSoManyAndSaysWhenHalfIsFree) {
  EagerInbox inbox;
  for (unsigned i = 0; i < kEagerSlots; ++i) {
    EXPECT_EQ(inbox.next_slot(), i);
    inbox.add(0);
  }
  EXPECT_EQ(inbox.next_slot(), EagerInbox::kNone);
  for (unsigned i = 0; i < kEagerSlots / 2; ++i) {
    EXPECT_FALSE(inbox.must_tell());
    inbox.take(0);
  }
  EXPECT_TRUE(inbox.must_tell());
  inbox.note_told();
  EXPECT_FALSE(inbox.must_tell());
  EXPECT_EQ(inbox.next_slot(), 0U);
}

TEST(EagerOutbox, ASlotIsFreeWhenItsMessageWasTakenAndAcknowledged) {
  EagerOutbox outbox;
  for (unsigned i = 0; i < kEagerSlots; ++i) {
    EXPECT_TRUE(outbox.has_room());
    EXPECT_EQ(outbox.add(0), i);
  }
  EXPECT_FALSE(outbox.has_room());
  EXPECT_TRUE(outbox.on_told({.all_before = 1}));
  EXPECT_FALSE(outbox.has_room());
  outbox.on_completed();
  EXPECT_TRUE(outbox.has_room());
  EXPECT_FALSE(outbox.all_completed());
}

TEST(EagerOutbox, WhatMeetsACreditTakesItsPlace) {
  EagerOutbox outbox;
  for (const int tag : {1, 2, 1, 1})
    outbox.add(tag);
  // The first and the third were taken by receives that needed no credit.
  EXPECT_TRUE(outbox.on_told({.all_before = 1, .others = 0b10}));
  EXPECT_TRUE(outbox.claim(1)) << "the fourth";
  EXPECT_FALSE(outbox.claim(1));
  EXPECT_TRUE(outbox.claim(2));
  EXPECT_FALSE(outbox.claim(2));
}

TEST(EagerOutbox, BelievesNothingThatCannotBe) {
  EagerOutbox outbox;
  outbox.add(0);
  EXPECT_FALSE(outbox.on_told({.all_before = 2}));
  EXPECT_TRUE(outbox.on_told({.all_before = 1}));
  EXPECT_FALSE(outbox.on_told({.all_before = 0})) << "back in time";
  EXPECT_TRUE(outbox.on_told({.all_before = 1}, 0xff'ffff));
}

TEST(EagerOutbox, CountsGoRound) {
  EagerOutbox outbox;
  for (std::uint32_t i = 1; i <= (1U << 24) + 10; ++i) {
    outbox.add(0);
    outbox.on_completed();
    ASSERT_TRUE(outbox.on_told({.all_before = i & 0xff'ffff}, 0xff'ffff));
    ASSERT_FALSE(outbox.claim(0));
  }
}

}  // namespace
}  // namespace mrc::nccl
