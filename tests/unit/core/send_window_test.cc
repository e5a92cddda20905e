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
  window.mark_lost(kFirst, LossCause::kTime);
  window.resend(kFirst, 10, EvIndex{1});
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
  window.mark_lost(kFirst + 1, LossCause::kTime);
  EXPECT_EQ(window.free_records(), 1U) << "what is lost is still to be sent";
  // The hole at the left edge does not keep the window from moving on.
  for (unsigned i = 4; i < 500; ++i) {
    window.append(i, EvIndex{0}, 100);
    window.acknowledge(kFirst + i);
  }
  EXPECT_EQ(window.oldest(), kFirst);
  EXPECT_EQ(window.first_lost(window.next()), kFirst + 1);
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
    window.mark_lost(kFirst, LossCause::kTime);
    window.resend(kFirst, start + 19 * kHour, EvIndex{0});
    EXPECT_EQ(window.record(kFirst).sent_at, start + 19 * kHour);
    EXPECT_EQ(window.record(kFirst + 1).sent_at, start + 18 * kHour);
  }
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
  window.mark_lost(kFirst, LossCause::kTime);
  window.resend(kFirst, 9, EvIndex{0});
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
  window.mark_lost(kFirst + 80, LossCause::kTime);
  window.mark_lost(kFirst + 7, LossCause::kTime);
  EXPECT_EQ(window.first_lost(window.next()), kFirst + 7);
  EXPECT_EQ(window.first_lost(kFirst + 5), kFirst + 5);
}

// A slow model of the same: states by sequence, transmissions in a list.
TEST(SendWindow, AgreesWithASlowModelOverLongRandomRuns) {
  SendWindow window(256, 5, kFirst);
  std::map<Sequence, PacketState> state;
  std::vector<Sequence> order;
  Prng prng(11);
  const auto forget = [&order](Sequence seq) { std::erase(order, seq); };
  for (TimeNs now = 0; now < 30'000; ++now) {
    const Sequence pick = window.oldest() + prng.below(256);
    switch (prng.below(4)) {
      case 0:
        if (window.next() - window.oldest() >= 256) break;
        state[window.next()] = PacketState::kInFlight;
        order.push_back(window.next());
        window.append(now, EvIndex(prng.below(5)), 100);
        break;
      case 1:
        if (!window.contains(pick) || state[pick] == PacketState::kAcknowledged) break;
        window.acknowledge(pick);
        forget(pick);
        state[pick] = PacketState::kAcknowledged;
        break;
      case 2:
        if (!window.contains(pick)) break;
        if (state[pick] == PacketState::kInFlight) {
          window.mark_lost(pick, LossCause::kTime);
          forget(pick);
          state[pick] = PacketState::kLost;
        } else if (state[pick] == PacketState::kLost) {
          window.resend(pick, now, EvIndex(prng.below(5)));
          order.push_back(pick);
          state[pick] = PacketState::kInFlight;
        }
        break;
      default:
        while (!state.empty() && state.begin()->second == PacketState::kAcknowledged) {
          state.erase(state.begin());
        }
        window.advance_to(state.empty() ? window.next() : state.begin()->first);
    }
    ASSERT_EQ(window.in_flight(), order.size());
    ASSERT_EQ(window.in_flight_bytes(), static_cast<std::int64_t>(order.size() * 100));
    Sequence at = window.earliest_sent();
    for (Sequence expected : order) {
      ASSERT_EQ(at, expected);
      at = window.sent_after(at);
    }
    ASSERT_EQ(at, SendWindow::kEnd);
  }
}

}  // namespace
}  // namespace mrc::core
