// NSCC under signals that make no sense, its size, and what its planted bugs do.
#include <gtest/gtest.h>

#include <algorithm>
#include <iterator>
#include <limits>

#include "base/planted_bug.h"
#include "base/prng.h"
#include "core/cc/nscc.h"
#include "unit/core/nscc_fixture.h"

namespace mrc::core {
namespace {

constexpr std::int64_t kBig = std::numeric_limits<std::int64_t>::max();

DurationNs random_rtt(Prng& prng) {
  constexpr DurationNs kOdd[] = {
      0, 1, -1, 127, kBig, std::numeric_limits<std::int64_t>::min(), kSecondNs, 10 * kSecondNs};
  if (prng.below(4) == 0) return kOdd[prng.below(std::size(kOdd))];
  return static_cast<DurationNs>(prng.below(1U << (1 + prng.below(20))));
}

std::int64_t random_bytes(Prng& prng) {
  constexpr std::int64_t kOdd[] = {0, -1, 1, kBig, std::numeric_limits<std::int64_t>::min()};
  if (prng.below(8) == 0) return kOdd[prng.below(std::size(kOdd))];
  return prng.below(8) * kNsccMtu;
}

CcProfile random_profile(Prng& prng) {
  CcProfile profile;
  profile.network_trims = prng.below(2) == 0;
  const auto odd = [&prng] { return prng.below(3) == 0 ? prng.next32() : 0; };
  profile.nscc.disable_qa = prng.below(4) == 0;
  profile.nscc.adjust_bytes_threshold = odd();
  profile.nscc.adjust_period_threshold_ns = odd();
  profile.nscc.base_rtt_ns = odd();
  profile.nscc.eta = static_cast<float>(odd());
  profile.nscc.fi = static_cast<float>(odd());
  profile.nscc.fi_scale = static_cast<float>(odd());
  profile.nscc.gamma = static_cast<float>(odd()) / 1e6F;
  profile.nscc.max_md_jump = static_cast<float>(odd()) / 1e9F;
  profile.nscc.max_cwnd = odd();
  profile.nscc.qa_gate = static_cast<std::uint8_t>(odd());
  profile.nscc.qa_threshold_ns = odd();
  profile.nscc.target_delay_ns = odd();
  return profile;
}

// One random signal; returns nothing, the invariants are checked by the caller.
void random_signal(Nscc& cc, Prng& prng, TimeNs now) {
  switch (prng.below(8)) {
    case 0:
      return cc.on_trim(now, random_bytes(prng), prng.below(2) == 0);
    case 1:
      return cc.on_loss(now, random_bytes(prng));
    case 2:
      return cc.set_bandwidth(prng.below(3) == 0 ? prng.next64() >> prng.below(64)
                                                 : prng.below(9) * 100 * kGigabit);
    case 3:
      cc.on_sent(kNsccMtu);
      return cc.on_packet_sent(now, prng.below(8) == 0 ? random_bytes(prng) : kNsccMtu);
    case 4:
      return cc.on_left_network(cc.in_flight_bytes() / 2);
    default:
      AckSample sample{.now = now,
                       .acked_bytes = random_bytes(prng),
                       .marked = prng.below(2) == 0,
                       .restore_window = prng.below(4) == 0};
      if (prng.below(4) != 0) sample.rtt_ns = random_rtt(prng);
      if (prng.below(8) == 0) sample.window_penalty = static_cast<std::uint8_t>(prng.next32());
      return cc.on_ack(sample);
  }
}

TEST(NsccRobustness, NoSequenceOfSignalsBreaksTheInvariants) {
  for (std::uint64_t seed = 0; seed < 300; ++seed) {
    Prng prng(seed);
    CcEnvironment network =
        environment(prng.below(9) * 100, prng.below(3) == 0 ? prng.next32() : 0);
    network.seed = seed;
    Nscc cc(random_profile(prng), network);
    TimeNs now = 0;
    for (int step = 0; step < 2'000; ++step) {
      now += prng.below(1U << prng.below(20));
      random_signal(cc, prng, now);
      ASSERT_GE(cc.window_bytes(), kNsccMtu) << "seed " << seed << " step " << step;
      ASSERT_LE(cc.window_bytes(), cc.max_window_bytes()) << "seed " << seed << " step " << step;
      // A paced packet leaves before long: 64 gaps of at most four base RTTs, half as much jitter.
      ASSERT_LE(cc.next_send(), now + 64 * 4 * kMaxBaseRttNs * 3 / 2) << "seed " << seed;
      ASSERT_GE(cc.average_delay_ns(), 0) << "seed " << seed << " step " << step;
    }
  }
}

TEST(NsccRobustness, PenaltyForEverStillSendsOnePacketPerRoundTrip) {
  Nscc cc = make_nscc();
  TimeNs now = 0;
  int sent = 0;
  while (now < 1'000 * kBaseRtt) {
    if (cc.may_send(now, kNsccMtu)) {
      send(cc, now);
      ++sent;
    }
    now = std::max(now + kBaseRtt, cc.next_send());
    if (cc.in_flight_bytes() == 0) continue;
    cc.on_left_network(kNsccMtu);
    penalise(cc, now, 255);
  }
  EXPECT_GT(sent, 600);
}

TEST(NsccRobustness, AControllerIsSmall) {
  RecordProperty("bytes", static_cast<int>(sizeof(Nscc)));
  EXPECT_LE(sizeof(Nscc), 336U);
}

// --- Planted bugs ---

#ifdef MRC_PLANTED_BUGS

class NsccPlanted : public ::testing::Test {
 protected:
  ~NsccPlanted() override { active_planted_bug = PlantedBug::kNone; }
};

TEST_F(NsccPlanted, FloorZeroLetsTheWindowFallBelowOnePacket) {
  active_planted_bug = PlantedBug::kCcFloorZero;
  Nscc cc = make_nscc();
  cc.on_loss(0, cc.window_bytes());
  EXPECT_LT(cc.window_bytes(), kNsccMtu);
}

TEST_F(NsccPlanted, IgnoredTrimsLeaveTheWindow) {
  active_planted_bug = PlantedBug::kCcIgnoresTrim;
  Nscc cc = make_nscc();
  const std::int64_t before = cc.window_bytes();
  for (int i = 0; i < 1'000; ++i)
    cc.on_trim(i * 1'000, kNsccMtu, true);
  EXPECT_EQ(cc.window_bytes(), before);
}

TEST_F(NsccPlanted, EndlessPaceStopsTheSender) {
  active_planted_bug = PlantedBug::kCcPaceNeverEnds;
  Nscc cc = make_nscc();
  settle(cc, 0, kNsccMtu);
  send(cc, 1'000);
  EXPECT_FALSE(cc.may_send(1'000 * kSecondNs, kNsccMtu));
}

TEST_F(NsccPlanted, ALostPlaneLeavesNoWindow) {
  active_planted_bug = PlantedBug::kCcPlaneLossEmptiesWindow;
  Nscc cc = make_nscc();
  cc.set_bandwidth(300 * kGigabit);
  EXPECT_LT(cc.window_bytes(), kNsccMtu);
}

#endif

}  // namespace
}  // namespace mrc::core
