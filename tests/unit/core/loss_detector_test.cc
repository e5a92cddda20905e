// The rules that give packets up, each alone.
#include "core/loss_detector.h"

#include <gtest/gtest.h>

#include <utility>
#include <vector>

namespace mrc::core {
namespace {

constexpr Sequence kFirst = 1'000;
constexpr DurationNs kRtt = 12 * kMicrosecondNs;

using Resent = std::vector<std::pair<Sequence, ResendReason>>;

// Round trips of 12 us that hardly vary: paths differ by 9 us.
struct Detector {
  Detector() {
    for (TimeNs t = 0; t < 100 * kRtt; t += kRtt)
      rtt.add(t + kRtt, t, kRtt);
  }
  void send(TimeNs now, unsigned ev) {
    window.append(now, EvIndex{static_cast<std::uint16_t>(ev)}, 1'000);
  }
  // As the requester does when a packet sent once is acknowledged.
  void arrives(TimeNs now, Sequence seq) {
    const PacketRecord packet = window.record(seq);
    window.overtake_before(seq);
    losses.note_arrival(packet.sent_at);
    window.note_life(packet.ev, now);
    window.acknowledge(seq);
  }
  // A SACK that says nothing of its own beyond `cumulative`.
  Resent detect(TimeNs now, SackView view, bool everything_waits = false) {
    Resent resent;
    losses.detect(now, view, window,
                  {.rtt = &rtt, .jitter_ns = 0, .everything_waits = everything_waits},
                  [&](Sequence seq, ResendReason reason) {
                    resent.emplace_back(seq, reason);
                    window.queue_resend(seq, reason);
                  });
    return resent;
  }
  static SackView missing_from(Sequence first, std::uint64_t bitmap, bool fresh = true) {
    return {.cumulative = first - 1, .base = first, .bitmap = bitmap, .fresh = fresh};
  }

  RttEstimator rtt{kRtt};
  SendWindow window{128, 4, kFirst};
  LossDetector losses;
};

TEST(LossDetector, OvertakenOnItsPathIsLost) {
  Detector d;
  d.send(0, 0);
  d.send(100, 0);
  d.arrives(kRtt, kFirst + 1);
  EXPECT_EQ(d.detect(kRtt, Detector::missing_from(kFirst, 0b10)),
            (Resent{{kFirst, ResendReason::kPathOrder}}));
}

TEST(LossDetector, OvertakenOnAnotherPathIsNot) {
  Detector d;
  d.send(0, 0);
  d.send(100, 1);
  d.arrives(kRtt, kFirst + 1);
  EXPECT_TRUE(d.detect(kRtt, Detector::missing_from(kFirst, 0b10)).empty());
}

TEST(LossDetector, AnOldSackProvesNothing) {
  Detector d;
  d.send(0, 0);
  d.send(100, 0);
  d.arrives(kRtt, kFirst + 1);
  EXPECT_TRUE(d.detect(kRtt, Detector::missing_from(kFirst, 0b10, false)).empty());
}

TEST(LossDetector, BehindByMoreThanPathsDifferIsLost) {
  constexpr TimeNs kLater = 10 * kMicrosecondNs;
  Detector d;
  d.send(0, 0);
  d.send(kLater, 1);
  d.arrives(kLater + kRtt, kFirst + 1);
  EXPECT_EQ(d.detect(kLater + kRtt, Detector::missing_from(kFirst, 0b10)),
            (Resent{{kFirst, ResendReason::kTime}}));
}

TEST(LossDetector, APathThatDeliversKeepsItsOrder) {
  constexpr TimeNs kLater = 10 * kMicrosecondNs;
  Detector d;
  d.send(0, 0);
  d.send(kLater, 1);
  d.arrives(kLater + kRtt, kFirst + 1);
  d.window.note_life(EvIndex{0}, kLater + kRtt);
  EXPECT_TRUE(d.detect(kLater + kRtt, Detector::missing_from(kFirst, 0b10)).empty());
}

TEST(LossDetector, SilenceTakesARoundTripMore) {
  Detector d;
  d.send(0, 0);
  d.send(10 * kMicrosecondNs, 1);
  d.arrives(10 * kMicrosecondNs + kRtt, kFirst + 1);
  const SackView nothing{.cumulative = kFirst - 2, .base = kFirst + 64, .bitmap = 0, .fresh = true};
  EXPECT_TRUE(d.detect(10 * kMicrosecondNs + kRtt, nothing).empty());
  d.send(22 * kMicrosecondNs, 1);
  d.arrives(22 * kMicrosecondNs + kRtt, kFirst + 2);
  EXPECT_EQ(d.detect(22 * kMicrosecondNs + kRtt, nothing),
            (Resent{{kFirst, ResendReason::kSilence}}));
}

TEST(LossDetector, AFalseAlarmWidensTheWindowForAWhile) {
  constexpr TimeNs kLater = 10 * kMicrosecondNs;
  Detector d;
  d.losses.note_false_alarm(0, 1);
  d.send(0, 0);
  d.send(kLater, 1);
  d.arrives(kLater + kRtt, kFirst + 1);
  EXPECT_TRUE(d.detect(kLater + kRtt, Detector::missing_from(kFirst, 0b10)).empty());
  for (unsigned i = 0; i < 1'024; ++i)
    d.losses.note_acknowledged();
  EXPECT_EQ(d.detect(kLater + kRtt, Detector::missing_from(kFirst, 0b10)).size(), 1U);
}

TEST(LossDetector, WhatEverythingWaitsForIsSentOnceMore) {
  Detector d;
  d.send(0, 0);
  d.window.note_life(EvIndex{0}, 2 * kRtt);
  const SackView nothing{.cumulative = kFirst - 1, .base = kFirst, .bitmap = 0, .fresh = true};
  EXPECT_TRUE(d.detect(2 * kRtt, nothing).empty());
  EXPECT_EQ(d.detect(2 * kRtt, nothing, true), (Resent{{kFirst, ResendReason::kLate}}));
  d.window.resend(kFirst, 2 * kRtt, EvIndex{1}, 1'000, true);
  EXPECT_TRUE(d.detect(4 * kRtt, nothing, true).empty()) << "once";
}

}  // namespace
}  // namespace mrc::core
