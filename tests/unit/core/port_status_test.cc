// News about ports: what peers say, and whom to tell.
#include "core/port_status.h"

#include <gtest/gtest.h>

namespace mrc::core {
namespace {

constexpr PortMask kAll = PortMask::first(kMaxPorts);
constexpr PortId kSecond{2};
using Word = PortStatus::Word;

struct Status : PortStatus {
  Status() : PortStatus(2, 200, 0xFFFE, 0x5EC2E7) {}
  Word word(std::uint32_t peer, TimeNs now, std::uint16_t id, PortMask ports) {
    return hear(peer, now, id, ports).word;
  }
};

TEST(PortStatus, AllPortsAreUpAtFirst) {
  Status status;
  EXPECT_EQ(status.ours(), PortMask(0b11));
  EXPECT_EQ(status.of_peer(7), kAll);
  EXPECT_FALSE(status.set_ours(kSecond, true));
  EXPECT_TRUE(status.set_ours(kSecond, false));
  EXPECT_EQ(status.ours(), PortMask(0b01));
}

TEST(PortStatus, NewerReplacesOlderAcrossTheWrapOfIds) {
  Status status;
  EXPECT_EQ(status.word(0, 0, 0xFFFD, PortMask(0b01)), Word::kNewPorts);
  EXPECT_EQ(status.word(0, 0, 0xFFFF, PortMask(0b01)), Word::kKnown);
  EXPECT_EQ(status.word(0, 1, 0xFFFF, PortMask(0b11)), Word::kKnown) << "repeated";
  EXPECT_EQ(status.word(0, 1, 3, PortMask(0b11)), Word::kNewPorts);
  EXPECT_EQ(status.word(0, 2, 0xFFF0, PortMask(0b10)), Word::kOld) << "late";
  EXPECT_EQ(status.word(0, 3, 4, PortMask(0b11)), Word::kKnown) << "newer, and nothing else";
  EXPECT_EQ(status.of_peer(0), PortMask(0b11));
  EXPECT_EQ(status.of_peer(1), kAll);
}

TEST(PortStatus, WhatComesThroughAPortShowsThatItIsUp) {
  Status status;
  status.hear(0, 0, 1, PortMask(0b01));
  EXPECT_FALSE(status.hear_through(0, kMillisecondNs, kSecond, 0)) << "may have been on its way";
  EXPECT_FALSE(status.hear_through(0, 2 * kMillisecondNs, kSecond, kMillisecondNs));
  EXPECT_TRUE(status.hear_through(0, 2 * kMillisecondNs, kSecond, 0));
  EXPECT_FALSE(status.hear_through(0, 3 * kMillisecondNs, kSecond, 0)) << "known";
  EXPECT_EQ(status.of_peer(0), PortMask(0b11));
}

TEST(PortStatus, ANewConnectionForgetsOldWord) {
  Status status;
  EXPECT_FALSE(status.forget_old(0, 0, false)) << "nothing was said";
  status.hear(0, 0, 1, PortMask(0b01));
  EXPECT_FALSE(status.forget_old(0, 10, true)) << "said just now, and others are connected";
  EXPECT_TRUE(status.forget_old(0, 2 * kMillisecondNs, true));
  EXPECT_EQ(status.of_peer(0), kAll);
  EXPECT_EQ(status.word(0, 3 * kMillisecondNs, 1, PortMask(0b01)), Word::kNewPorts)
      << "ids start anew";
}

TEST(PortStatus, APeerThatUsesADownPortIsToldAgain) {
  Status status;
  status.announce(5);
  status.note_told(5, 0);
  const std::uint16_t id = status.id(5);
  status.remind(5, kSecondNs);
  EXPECT_EQ(status.id(5), id) << "it has not answered yet and is told anyway";
  ASSERT_TRUE(status.note_answer(5, 0, id));
  status.remind(5, 9 * kMillisecondNs);
  EXPECT_FALSE(status.to_tell().any()) << "packets may still be on their way";
  status.remind(5, 10 * kMillisecondNs);
  EXPECT_EQ(status.to_tell().next(0), 5U);
  EXPECT_NE(status.id(5), id) << "as news";
}

TEST(PortStatus, ARemindersDistanceCountsFromTheLastTelling) {
  Status status;
  status.announce(5);
  status.note_told(5, 0);
  status.note_told(5, 9 * kMillisecondNs);
  ASSERT_TRUE(status.note_answer(5, 0, status.id(5)));
  status.remind(5, 18 * kMillisecondNs);
  EXPECT_FALSE(status.to_tell().any());
  status.remind(5, 19 * kMillisecondNs);
  EXPECT_TRUE(status.to_tell().any());
}

// A stranger who uses a port of ours that is down in a peer's name causes 100 reminders a second,
// and 33,000 of them in 330 s.
TEST(PortStatus, WhatOnePeerIsToldMakesNewsForAnotherNoOlder) {
  Status ours;
  Status of_quiet_peer;  // in which we are peer 0
  ours.announce(1);
  EXPECT_EQ(of_quiet_peer.word(0, 0, ours.id(1), PortMask(0b11)), Word::kKnown);
  for (unsigned i = 0; i < 33'000; ++i)
    ours.announce(5);
  ours.announce(1);
  EXPECT_EQ(of_quiet_peer.word(0, 1, ours.id(1), PortMask(0b01)), Word::kNewPorts);
}

// The peer may still be connected to us, with our last id in mind.
TEST(PortStatus, APeerThatCameBackIsToldSomethingNewer) {
  Status status;
  for (unsigned i = 0; i < 10; ++i)
    status.announce(3);
  const std::uint16_t last = status.id(3);
  status.remove(3);
  status.announce(4);
  EXPECT_GT(static_cast<std::int16_t>(status.id(4) - last), 0);
}

TEST(PortStatus, TheSameWordAgainPutsNoQuestionOff) {
  Status status;
  status.hear(0, 0, 1, PortMask(0b01));
  status.note_asked(0, 0, PortMask(0b10));
  const TimeNs question = status.deadline();
  EXPECT_EQ(status.word(0, question - 1, 2, PortMask(0b01)), Word::kKnown);
  EXPECT_EQ(status.deadline(), question);
  EXPECT_TRUE(status.hear_through(0, question, kSecond, 0, question - 1)) << "nor its answer";
}

TEST(PortStatus, TellsAgainUntilAnswered) {
  Status status;
  status.announce(5);
  const std::uint16_t id = status.id(5);
  TimeNs now = 0;
  for (const DurationNs distance : {20, 40, 80, 160, 320, 640, 1'280, 2'560, 5'120, 5'120}) {
    ASSERT_EQ(status.to_tell().next(0), 5U);
    status.note_told(5, now);
    EXPECT_FALSE(status.to_tell().any());
    EXPECT_EQ(status.deadline() - now, distance * kMicrosecondNs);
    now = status.deadline();
    status.on_timer(now);
  }
  EXPECT_FALSE(status.note_answer(5, 0, static_cast<std::uint16_t>(id - 1)));
  EXPECT_TRUE(status.note_answer(5, 0, id));
  EXPECT_FALSE(status.note_answer(5, 0, id)) << "once";
  EXPECT_FALSE(status.to_tell().any());
  EXPECT_EQ(status.deadline(), kNever);
}

TEST(PortStatus, ThinsOutForAPeerThatNeverAnswers) {
  Status status;
  status.announce(5);
  TimeNs now = 0;
  for (unsigned i = 0; i < 256; ++i) {
    status.note_told(5, now);
    now = status.deadline();
    status.on_timer(now);
  }
  EXPECT_GT(now, kSecondNs);
  EXPECT_LT(now, 2 * kSecondNs);
  for (unsigned i = 0; i < 1'000; ++i) {
    status.note_told(5, now);
    EXPECT_LE(status.deadline() - now, 1'310'720 * kMicrosecondNs);
    now = status.deadline();
    status.on_timer(now);
  }
  EXPECT_GT(now, 900 * kSecondNs) << "less than one a second";
}

TEST(PortStatus, ARepeatMeansThatTheAnswerWasLost) {
  Status status;
  status.hear(0, 0, 7, PortMask(0b11));
  EXPECT_FALSE(status.repeats_itself(0));
  status.hear(0, 1, 6, PortMask(0b11));
  EXPECT_FALSE(status.repeats_itself(0)) << "an older one";
  status.hear(0, 2, 7, PortMask(0b11));
  EXPECT_TRUE(status.repeats_itself(0));
  status.hear(0, 3, 8, PortMask(0b11));
  EXPECT_FALSE(status.repeats_itself(0));
}

TEST(PortStatus, WordThatIsDisregardedDoesNotComeBack) {
  Status status;
  EXPECT_FALSE(status.disregard(0));
  status.hear(0, 0, 7, PortMask(0b01));
  status.hear(0, 0, 8, PortMask(0b01));
  EXPECT_TRUE(status.disregard(0));
  EXPECT_EQ(status.of_peer(0), kAll);
  EXPECT_EQ(status.word(0, 1, 8, PortMask(0b01)), Word::kKnown) << "a late copy";
  EXPECT_EQ(status.of_peer(0), kAll);
}

// A copy of what an earlier incarnation said made the peer believe an id that is ahead of ours.
TEST(PortStatus, GoesOnBehindAnIdThatThePeerBelieves) {
  Status status;
  status.announce(0);
  status.note_told(0, 0);
  const auto ahead = static_cast<std::uint16_t>(status.id(0) + 2'000);
  EXPECT_TRUE(status.note_answer(0, 0, ahead));
  EXPECT_EQ(status.id(0), ahead + 1);
  EXPECT_EQ(status.to_tell().next(0), 0U) << "at once";
  status.note_told(0, 10);
  EXPECT_FALSE(status.note_answer(0, 0, ahead)) << "a copy";
  EXPECT_TRUE(status.note_answer(0, 0, status.id(0)));
  EXPECT_EQ(status.deadline(), kNever);
}

TEST(PortStatus, HalfACircleIsAhead) {
  Status status;
  status.announce(0);
  const auto far = static_cast<std::uint16_t>(status.id(0) + 0x8000);
  EXPECT_FALSE(status.note_answer(0, 0, static_cast<std::uint16_t>(far + 1)));
  EXPECT_TRUE(status.note_answer(0, 0, far));
  EXPECT_EQ(status.id(0), static_cast<std::uint16_t>(far + 1));
}

TEST(PortStatus, NewNewsStartAnew) {
  Status status;
  status.announce(0);
  EXPECT_FALSE(status.told_before(0));
  status.note_told(0, 0);
  EXPECT_TRUE(status.told_before(0));
  const std::uint16_t old = status.id(0);
  status.announce(0);
  EXPECT_FALSE(status.told_before(0));
  EXPECT_FALSE(status.note_answer(0, 0, old));
  EXPECT_EQ(status.deadline(), kNever) << "it is due at once";
}

// What was said may be old or a lie, and nothing comes in through a port that nobody uses.
TEST(PortStatus, AsksAboutPortsThatAPeerCallsDown) {
  Status status;
  TimeNs now = 5;
  status.hear(7, now, 1, PortMask(0b01));
  EXPECT_EQ(status.called_down(7), PortMask(0b10));
  ASSERT_EQ(status.to_ask().next(0), 7U) << "at once";
  for (const DurationNs distance : {1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1'024, 1'024}) {
    EXPECT_EQ(status.unasked(7), PortMask(0b10));
    status.note_asked(7, now, PortMask(0b10));
    EXPECT_FALSE(status.to_ask().any());
    EXPECT_EQ(status.deadline() - now, distance * kMillisecondNs);
    now = status.deadline();
    status.on_timer(now);
    ASSERT_EQ(status.to_ask().next(0), 7U);
    EXPECT_EQ(status.deadline(), kNever) << "it waits for a port now";
  }
  EXPECT_TRUE(status.hear_through(7, now, kSecond, 0));
  EXPECT_EQ(status.deadline(), kNever) << "nothing is called down any more";
}

TEST(PortStatus, EachPortThatIsCalledDownIsAsked) {
  PortStatus status(4, 2, 0, 1);
  status.hear(0, 0, 1, PortMask(0b0001));
  status.note_asked(0, 0, PortMask(0b0010));
  EXPECT_EQ(status.unasked(0), PortMask(0b1100));
  EXPECT_TRUE(status.to_ask().any());
  status.note_asked(0, 0, PortMask(0b1100));
  EXPECT_FALSE(status.to_ask().any());
}

TEST(PortStatus, NewsEndTheQuestions) {
  Status status;
  status.hear(0, 0, 1, PortMask(0b01));
  EXPECT_TRUE(status.to_ask().any());
  status.hear(0, 26 * kMillisecondNs, 3, PortMask(0b11));
  EXPECT_FALSE(status.to_ask().any());
  EXPECT_EQ(status.deadline(), kNever);
}

// --- Claims

TEST(PortStatus, AnAnswerThatWasAskedForSinceOutweighsTheClaim) {
  Status status;
  status.hear(0, 1'000, 5, PortMask(0b01));
  EXPECT_FALSE(status.hear_through(0, 1'500, kSecond, 0, 600)) << "asked before it came";
  EXPECT_TRUE(status.hear_through(0, 1'500, kSecond, 0, 400));
  EXPECT_EQ(status.of_peer(0), PortMask(0b11));
}

TEST(PortStatus, WhoSaidItConfirmsItByTheNextIdBehindTheChallenge) {
  Status told;
  Status teller;
  teller.announce(0);
  std::uint16_t id = teller.id(0);
  const auto first = told.hear(0, 0, id, PortMask(0b01));
  EXPECT_EQ(first.word, Word::kNewPorts);
  EXPECT_GE(static_cast<std::uint16_t>(first.answer - id), 256);
  EXPECT_TRUE(teller.note_answer(0, 0, first.answer));
  id = teller.id(0);
  const auto second = told.hear(0, 1, id, PortMask(0b01));
  EXPECT_EQ(second.word, Word::kKnown);
  EXPECT_EQ(second.answer, id);
  EXPECT_TRUE(teller.note_answer(0, 0, second.answer));
  EXPECT_FALSE(teller.to_tell().any());
}

// Refuted claims are held off, ever longer; one that is confirmed is not.
TEST(PortStatus, RefutedClaimsAreHeldOff) {
  Status status;
  TimeNs now = kSecondNs;
  std::uint16_t id = 1;
  for (const DurationNs distance : {10, 20, 40, 80, 160, 320, 640, 1'280, 1'280}) {
    ASSERT_EQ(status.word(0, now, ++id, PortMask(0b01)), Word::kNewPorts);
    ASSERT_TRUE(status.hear_through(0, now + 10, kSecond, 0, 5));
    now += 10 + distance * kMillisecondNs;
    EXPECT_EQ(status.word(0, now - 1, ++id, PortMask(0b01)), Word::kHeldOff);
  }
  now += 11 * kSecondNs;
  ASSERT_EQ(status.word(0, now, ++id, PortMask(0b01)), Word::kNewPorts);
  ASSERT_TRUE(status.hear_through(0, now + 10, kSecond, 0, 5));
  now += 10 + 10 * kMillisecondNs;
  EXPECT_EQ(status.word(0, now - 1, ++id, PortMask(0b01)), Word::kHeldOff);
  EXPECT_EQ(status.word(0, now, ++id, PortMask(0b01)), Word::kNewPorts) << "forgotten";
  ASSERT_TRUE(status.hear_through(0, now + 10, kSecond, 0, 5));
  const auto held = status.hear(0, now + 20, ++id, PortMask(0b01));
  EXPECT_EQ(held.word, Word::kHeldOff);
  EXPECT_EQ(status.word(0, now + 30, static_cast<std::uint16_t>(held.answer + 1), PortMask(0b01)),
            Word::kNewPorts)
      << "confirmed";
}

// Down and up in turns is refuted by nobody.
TEST(PortStatus, AClaimIsActedOnOnceInTenMilliseconds) {
  Status status;
  EXPECT_EQ(status.word(0, 0, 1, PortMask(0b01)), Word::kNewPorts);
  EXPECT_EQ(status.word(0, 1, 2, PortMask(0b11)), Word::kNewPorts);
  EXPECT_EQ(status.word(0, 2, 3, PortMask(0b01)), Word::kHeldOff);
}

// Others must not be able to compute it, and no claim changes it.
TEST(PortStatus, ChallengesDiffer) {
  PortStatus one(2, 4, 0, 1);
  PortStatus other(2, 4, 0, 2);
  const std::uint16_t challenge = one.hear(0, 0, 5, PortMask(0b01)).answer;
  EXPECT_NE(challenge, other.hear(0, 0, 5, PortMask(0b01)).answer);
  EXPECT_NE(challenge, one.hear(1, 0, 5, PortMask(0b01)).answer);
  one.hear_through(0, 10, kSecond, 0, 5);
  EXPECT_EQ(one.hear(0, 20, 5, PortMask(0b01)).answer, challenge);
  EXPECT_EQ(one.hear(0, 20, 6, PortMask(0b01)).answer, challenge);
}

// Wherever the ids of a peer are it comes to one that is believed, within four answers.
TEST(PortStatus, EveryIdLeadsToAConfirmation) {
  for (std::uint32_t start = 0; start < 0x1'0000; start += 97) {
    Status told;
    told.hear(0, 0, 100, PortMask(0b11));
    told.hear(0, 0, 101, PortMask(0b01));
    told.hear_through(0, 10, kSecond, 0, 5);
    auto id = static_cast<std::uint16_t>(start);
    auto heard = told.hear(0, 20, id, PortMask(0b01));
    unsigned answers = 1;
    while (heard.word != Word::kNewPorts && answers < 9 && start != 100) {
      ASSERT_LE(static_cast<std::uint16_t>(heard.answer - id), 0x8000U) << start;
      id = static_cast<std::uint16_t>(heard.answer + 1);
      heard = told.hear(0, 20, id, PortMask(0b01));
      ++answers;
    }
    EXPECT_LE(answers, 5U) << start;
  }
}

TEST(PortStatus, APeerThatOnlyRepeatsItselfIsAnsweredWithItsId) {
  Status status;
  status.hear(0, 0, 1, PortMask(0b01));
  status.hear_through(0, 10, kSecond, 0, 5);
  for (unsigned i = 0; i < 8; ++i)
    EXPECT_NE(status.hear(0, 20, 9, PortMask(0b01)).answer, 9);
  EXPECT_EQ(status.hear(0, 20, 9, PortMask(0b01)).answer, 9);
  EXPECT_NE(status.hear(0, 20, 10, PortMask(0b01)).answer, 10);
}

// An answer to what was never said: somebody has spoken in our name.
TEST(PortStatus, WhatOthersSaidInOurNameIsPutRight) {
  Status status;
  EXPECT_TRUE(status.note_answer(3, 0, 500)) << "even if nothing was ever told";
  EXPECT_EQ(status.id(3), 501);
  status.note_told(3, 0);
  EXPECT_TRUE(status.note_answer(3, 10, 501));
  EXPECT_FALSE(status.note_answer(3, 10 * kMillisecondNs - 1, 700)) << "every 10 ms at most";
  EXPECT_FALSE(status.note_answer(3, 10 * kMillisecondNs, 501)) << "a copy";
  EXPECT_TRUE(status.note_answer(3, 10 * kMillisecondNs, 700));
  EXPECT_EQ(status.to_tell().next(0), 3U);
}

TEST(PortStatus, PeersAreToldInTheOrderOfTheirPlaces) {
  Status status;
  for (const std::uint32_t peer : {150U, 3U, 64U})
    status.announce(peer);
  EXPECT_EQ(status.to_tell().next(0), 3U);
  EXPECT_EQ(status.to_tell().next(4), 64U);
  EXPECT_EQ(status.to_tell().next(64), 64U);
  EXPECT_EQ(status.to_tell().next(65), 150U);
  EXPECT_EQ(status.to_tell().next(151), kNoSlot);
}

TEST(PortStatus, APlaceIsForAnotherPeer) {
  Status status;
  status.announce(1);
  status.announce(2);
  status.note_told(2, 0);
  status.hear(2, 0, 9, PortMask(0b01));
  status.remove(1);
  status.remove(2);
  EXPECT_FALSE(status.to_tell().any());
  EXPECT_EQ(status.deadline(), kNever);
  EXPECT_EQ(status.of_peer(2), kAll);
}

}  // namespace
}  // namespace mrc::core
