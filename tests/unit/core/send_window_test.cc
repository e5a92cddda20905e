#include "core/send_window.h"

#include <gtest/gtest.h>

#include <map>
#include <vector>

#include "base/prng.h"

namespace mrc::core {
namespace {

constexpr Sequence kFirst = first_sequence(Psn(0xFFFFF0));

TEST(Sequence, FindsTheNearestNumberWithAPsnAcrossTheWrap) {
  EXPECT_EQ(sequence_near(kFirst, Psn(0xFFFFEF)), kFirst - 1);
  EXPECT_EQ(sequence_near(kFirst, Psn(0x000005)), kFirst + 0x15);
  EXPECT_EQ(sequence_near(kFirst + 0x15, Psn(0xFFFFF0)), kFirst);
  EXPECT_EQ(psn_of(kFirst + 0x10).value(), 0U);
}

TEST(SendWindow, WalksPacketsInTheOrderOfTheirLastTransmission) {
  SendWindow window(128, 2, kFirst);
  for (TimeNs t = 0; t < 3; ++t)
    window.append(t, EvIndex{0}, 100);
  window.queue_resend(kFirst, ResendReason::kTime);
  window.resend(kFirst, 10, EvIndex{1}, 100, true);
  EXPECT_EQ(window.earliest_sent(), kFirst + 1);
  EXPECT_EQ(window.sent_after(kFirst + 2), kFirst);
  EXPECT_EQ(window.sent_after(kFirst), SendWindow::kEnd);
  EXPECT_EQ(window.record(kFirst).transmissions, 2);
}

TEST(SendWindow, KeepsRecordsOfPacketsThatAreOutOnly) {
  SendWindow window(512, 1, kFirst, 4);
  for (unsigned i = 0; i < 4; ++i)
    window.append(i, EvIndex{0}, 100);
  EXPECT_EQ(window.free_records(), 0U);
  window.acknowledge(kFirst + 2);
  EXPECT_EQ(window.record(kFirst + 2).state, PacketState::kAcknowledged);
  EXPECT_EQ(window.free_records(), 1U);
  window.queue_resend(kFirst + 1, ResendReason::kTime);
  EXPECT_EQ(window.free_records(), 1U) << "what is lost is still to be sent";
  // The hole at the left edge does not keep the window from moving on.
  for (unsigned i = 4; i < 500; ++i) {
    window.append(i, EvIndex{0}, 100);
    window.acknowledge(kFirst + i);
  }
  EXPECT_EQ(window.oldest(), kFirst);
  EXPECT_EQ(window.first_to_resend(window.next()), kFirst + 1);
  EXPECT_EQ(window.record(kFirst).sent_at, 0);
  EXPECT_EQ(window.record(kFirst + 3).sent_at, 3);
}

TEST(SendWindow, KnowsWhenAPacketLeftWhateverTheClockShows) {
  constexpr TimeNs kHour = 3'600 * 1'000'000'000LL;
  // Before the clock's low bits wrap, around it, and far beyond.
  for (const TimeNs start : {TimeNs{0}, (TimeNs{1} << 46) - 5, TimeNs{1} << 62}) {
    SendWindow window(128, 1, kFirst);
    window.append(start, EvIndex{0}, 100);
    window.append(start + 18 * kHour, EvIndex{0}, 100);
    EXPECT_EQ(window.record(kFirst).sent_at, start);
    EXPECT_EQ(window.record(kFirst + 1).sent_at, start + 18 * kHour);
    window.queue_resend(kFirst, ResendReason::kTime);
    window.resend(kFirst, start + 19 * kHour, EvIndex{0}, 100, true);
    EXPECT_EQ(window.record(kFirst).sent_at, start + 19 * kHour);
    EXPECT_EQ(window.record(kFirst + 1).sent_at, start + 18 * kHour);
  }
}

TEST(SendWindow, CopiesThatAnswersCannotTellApartAreSeveral) {
  SendWindow window(128, 2, kFirst);
  window.append(0, EvIndex{0}, 100);
  window.queue_resend(kFirst, ResendReason::kTime);
  window.resend(kFirst, 10, EvIndex{1}, 100, false);
  EXPECT_EQ(window.record(kFirst).transmissions, kSeveralTransmissions);
}

TEST(SendWindow, WhatIsNoLongerCountedMayStillArriveOrBeSentAgain) {
  SendWindow window(128, 2, kFirst);
  for (TimeNs t = 0; t < 3; ++t)
    window.append(t, EvIndex{0}, 100);
  EXPECT_EQ(window.uncount_bytes(), 300);
  EXPECT_EQ(window.in_flight_bytes(), 0);
  EXPECT_EQ(window.in_flight(), 3U);
  window.acknowledge(kFirst);
  EXPECT_EQ(window.in_flight_bytes(), 0);
  window.queue_resend(kFirst + 1, ResendReason::kTimeout);
  window.resend(kFirst + 1, 10, EvIndex{1}, 100, true);
  EXPECT_EQ(window.in_flight_bytes(), 100);
}

TEST(SendWindow, OvertakesOnlyEarlierPacketsOfTheSamePath) {
  SendWindow window(128, 2, kFirst);
  for (unsigned i = 0; i < 6; ++i)
    window.append(i, EvIndex(i % 2), 100);
  window.overtake_before(kFirst + 4);
  EXPECT_TRUE(window.overtaken(kFirst));
  EXPECT_TRUE(window.overtaken(kFirst + 2));
  EXPECT_FALSE(window.overtaken(kFirst + 4));
  for (unsigned i : {1U, 3U, 5U})
    EXPECT_FALSE(window.overtaken(kFirst + i));
}

TEST(SendWindow, ARetransmittedPacketIsNoLongerOvertaken) {
  SendWindow window(128, 2, kFirst);
  for (unsigned i = 0; i < 3; ++i)
    window.append(i, EvIndex{0}, 100);
  window.overtake_before(kFirst + 2);
  window.queue_resend(kFirst, ResendReason::kTime);
  window.resend(kFirst, 9, EvIndex{0}, 100, true);
  EXPECT_FALSE(window.overtaken(kFirst));
}

TEST(SendWindow, AProbeOvertakesWhatWasSentBeforeItOnItsPath) {
  SendWindow window(128, 2, kFirst);
  for (unsigned i = 0; i < 4; ++i)
    window.append(10 * i, EvIndex(i % 2), 100);
  window.overtake_until(EvIndex{0}, 15);
  EXPECT_TRUE(window.overtaken(kFirst));
  EXPECT_FALSE(window.overtaken(kFirst + 1));
  EXPECT_FALSE(window.overtaken(kFirst + 2));
}

TEST(SendWindow, FindsTheOldestLostPacketFirst) {
  SendWindow window(128, 1, kFirst);
  for (unsigned i = 0; i < 100; ++i)
    window.append(i, EvIndex{0}, 100);
  window.queue_resend(kFirst + 80, ResendReason::kTime);
  window.queue_resend(kFirst + 7, ResendReason::kTime);
  EXPECT_EQ(window.first_to_resend(window.next()), kFirst + 7);
  EXPECT_EQ(window.first_to_resend(kFirst + 5), kFirst + 5);
}

// A slow model of the same: states and paths by sequence, transmissions in a list.
class Model {
 public:
  explicit Model(std::uint32_t records) : window_(kPsns, kEvs, kFirst, records) {}

  void step(TimeNs now, Prng& prng) {
    const Sequence pick = window_.oldest() + prng.below(kPsns);
    switch (prng.below(5)) {
      case 0:
        return append(now, EvIndex(prng.below(kEvs)));
      case 1:
        return acknowledge(pick);
      case 2:
        return lose_or_resend(now, pick, EvIndex(prng.below(kEvs)));
      case 3:
        return overtake(pick);
      default:
        return advance();
    }
  }

  void compare() const {
    ASSERT_EQ(window_.in_flight(), order_.size());
    ASSERT_EQ(window_.in_flight_bytes(), static_cast<std::int64_t>(order_.size() * 100));
    Sequence at = window_.earliest_sent();
    for (const Sequence expected : order_) {
      ASSERT_EQ(at, expected);
      ASSERT_EQ(window_.record(at).ev, packets_.at(at).ev);
      ASSERT_EQ(window_.overtaken(at), packets_.at(at).overtaken);
      at = window_.sent_after(at);
    }
    ASSERT_EQ(at, SendWindow::kEnd);
  }

 private:
  static constexpr std::uint32_t kPsns = 256;
  static constexpr unsigned kEvs = 5;
  struct Packet {
    PacketState state = PacketState::kInFlight;
    EvIndex ev = kNoEv;
    bool overtaken = false;
  };

  PacketState state(Sequence seq) const {
    return window_.contains(seq) ? packets_.at(seq).state : PacketState::kUnused;
  }
  void append(TimeNs now, EvIndex ev) {
    if (window_.next() - window_.oldest() >= kPsns || window_.free_records() == 0) return;
    packets_[window_.next()] = {.ev = ev};
    order_.push_back(window_.next());
    window_.append(now, ev, 100);
  }
  void acknowledge(Sequence seq) {
    if (state(seq) != PacketState::kInFlight && state(seq) != PacketState::kToResend) return;
    window_.acknowledge(seq);
    std::erase(order_, seq);
    packets_[seq].state = PacketState::kAcknowledged;
  }
  void lose_or_resend(TimeNs now, Sequence seq, EvIndex ev) {
    if (state(seq) == PacketState::kInFlight) {
      window_.queue_resend(seq, ResendReason::kTime);
      std::erase(order_, seq);
      packets_[seq].state = PacketState::kToResend;
    } else if (state(seq) == PacketState::kToResend) {
      window_.resend(seq, now, ev, 100, true);
      order_.push_back(seq);
      packets_[seq] = {.ev = ev};
    }
  }
  void overtake(Sequence seq) {
    if (state(seq) != PacketState::kInFlight) return;
    window_.overtake_before(seq);
    for (const Sequence earlier : order_) {
      if (earlier == seq) break;
      if (packets_[earlier].ev == packets_[seq].ev) packets_[earlier].overtaken = true;
    }
  }
  void advance() {
    while (!packets_.empty() && packets_.begin()->second.state == PacketState::kAcknowledged)
      packets_.erase(packets_.begin());
    window_.advance_to(packets_.empty() ? window_.next() : packets_.begin()->first);
  }

  SendWindow window_;
  std::map<Sequence, Packet> packets_;
  std::vector<Sequence> order_;
};

TEST(SendWindow, AgreesWithASlowModelOverLongRandomRuns) {
  for (const std::uint32_t records : {0U, 40U, 254U, 255U, 256U}) {
    Model model(records);
    Prng prng(11);
    for (TimeNs now = 0; now < 30'000; ++now) {
      model.step(now, prng);
      ASSERT_NO_FATAL_FAILURE(model.compare()) << records << " records, step " << now;
    }
  }
}

}  // namespace
}  // namespace mrc::core
