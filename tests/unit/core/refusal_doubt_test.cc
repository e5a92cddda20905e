// A NAK that is held against what comes next.
#include "core/refusal_doubt.h"

#include <gtest/gtest.h>

namespace mrc::core {
namespace {

constexpr CompletionStatus kStatus = CompletionStatus::kRemoteAccess;

struct Doubt : RefusalDoubt {
  bool believes(TimeNs now, Sequence seq, TimeNs sent_at) {
    return weigh(
        now, {.seq = seq, .open = true, .sent_at = sent_at, .fastest_ns = 10, .patience_ns = 30},
        kStatus, ask);
  }
  bool believes_closed(TimeNs now, Sequence seq) {
    return weigh(now, {.seq = seq, .patience_ns = 30}, kStatus, ask);
  }
  bool ask = false;
};

TEST(RefusalDoubt, ATruthRepeatsItself) {
  Doubt doubt;
  EXPECT_FALSE(doubt.believes(100, 7, 50));
  EXPECT_TRUE(doubt.ask);
  EXPECT_TRUE(doubt.any());
  EXPECT_EQ(doubt.status(), kStatus);
  EXPECT_TRUE(doubt.believes(130, 7, 105));
}

TEST(RefusalDoubt, AVolleyProvesNothing) {
  Doubt doubt;
  EXPECT_FALSE(doubt.believes(100, 7, 50));
  EXPECT_FALSE(doubt.believes(100, 7, 50));
  EXPECT_FALSE(doubt.ask) << "once is enough";
  EXPECT_FALSE(doubt.believes(109, 7, 100)) << "no answer to the copy can be back";
  EXPECT_FALSE(doubt.ask);
  EXPECT_FALSE(doubt.believes(110, 7, 100)) << "nor one to the original, on a slow path";
  EXPECT_TRUE(doubt.ask) << "again";
  EXPECT_FALSE(doubt.believes(130, 7, 126)) << "no answer to the copy can be back";
  EXPECT_TRUE(doubt.believes(131, 7, 121));
}

// The only sample may be of an answer that waited, so that each copy halves what is too soon.
TEST(RefusalDoubt, ATruthThatIsFasterThanThoughtIsBelieved) {
  Doubt doubt;
  EXPECT_FALSE(doubt.believes(100, 7, 50));
  for (int copies = 0; copies < 100; ++copies)
    EXPECT_FALSE(doubt.believes(203, 7, 200)) << "one copy halves it once";
  EXPECT_FALSE(doubt.believes(303, 7, 300));
  EXPECT_FALSE(doubt.ask) << "the next copy comes by itself";
  EXPECT_TRUE(doubt.believes(403, 7, 400));
}

// Nobody may have told yet how long answers take, so that each question doubles what is late.
TEST(RefusalDoubt, ALateOneIsAskedAgain) {
  Doubt doubt;
  EXPECT_FALSE(doubt.believes(100, 7, 50));
  EXPECT_FALSE(doubt.believes(181, 7, 100));
  EXPECT_TRUE(doubt.ask);
  EXPECT_FALSE(doubt.believes(262, 7, 181));
  EXPECT_TRUE(doubt.ask);
  EXPECT_TRUE(doubt.believes(343, 7, 262)) << "answers take 81";
}

TEST(RefusalDoubt, WhatArrivedWasNotRefused) {
  Doubt doubt;
  EXPECT_FALSE(doubt.believes(100, 7, 50));
  EXPECT_FALSE(doubt.believes_closed(200, 7));
  EXPECT_FALSE(doubt.any());
  EXPECT_FALSE(doubt.believes(300, 9, 50));
  doubt.note_arrived(9);
  EXPECT_TRUE(doubt.any());
  doubt.note_arrived(10);
  EXPECT_FALSE(doubt.any());
}

TEST(RefusalDoubt, OfSeveralTheLowestCounts) {
  Doubt doubt;
  EXPECT_FALSE(doubt.believes(100, 7, 50));
  EXPECT_FALSE(doubt.believes(100, 9, 50));
  EXPECT_FALSE(doubt.ask);
  EXPECT_EQ(doubt.seq(), 7U);
  EXPECT_FALSE(doubt.believes(110, 3, 50));
  EXPECT_TRUE(doubt.ask);
  EXPECT_EQ(doubt.seq(), 3U);
}

// A card may acknowledge a packet and refuse its operation later, and so may a copy of an old NAK.
TEST(RefusalDoubt, OfAnAcknowledgedPacketNoNakIsProof) {
  Doubt doubt;
  EXPECT_FALSE(doubt.believes_closed(100, 7));
  EXPECT_TRUE(doubt.ask);
  EXPECT_FALSE(doubt.believes_closed(500, 7));
  doubt.note_arrived(8);
  EXPECT_TRUE(doubt.any()) << "it had arrived before";
}

}  // namespace
}  // namespace mrc::core
