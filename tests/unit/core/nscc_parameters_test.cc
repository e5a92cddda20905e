#include "core/cc/nscc_parameters.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "core/cc/base_rtt.h"
#include "unit/core/nscc_fixture.h"

namespace mrc::core {
namespace {

constexpr NsccNetwork kReference{.bits_per_second = 100 * kGigabit,
                                 .full_bits_per_second = 100 * kGigabit,
                                 .base_rtt_ns = kReferenceRttNs};

NsccGains derived(const CcProfile& profile = {}, const NsccNetwork& network = kReference,
                  const QpHints& hints = {}) {
  return derive_gains(make_settings(profile, kNsccMtu, hints), network);
}

TEST(NsccParameters, BandwidthTimesDelayInBytes) {
  EXPECT_EQ(bandwidth_delay_bytes(100 * kGigabit, 12'000), kReferenceBdpBytes);
  EXPECT_EQ(bandwidth_delay_bytes(400 * kGigabit, 8'000), 400'000);
  EXPECT_EQ(bandwidth_delay_bytes(0, 12'000), 0);
  EXPECT_EQ(bandwidth_delay_bytes(std::numeric_limits<std::uint64_t>::max(), kMaxBaseRttNs),
            kMaxWindowBytes);
}

// The reference network: "a" is 1, so the numbers of the algorithm appear as published.
TEST(NsccParameters, OnTheReferenceNetworkTheGainsAreThePublishedOnes) {
  const NsccGains gains = derived();
  EXPECT_EQ(gains.max_window_bytes, 225'000U);  // 1.5 BDP
  EXPECT_EQ(gains.target_ns, 9'000U);           // 3/4 of the RTT, with trimming
  EXPECT_EQ(gains.fair_bytes, 5 * kNsccMtu);
  EXPECT_EQ(gains.eta_bytes, 3 * kNsccMtu / 20);
  EXPECT_EQ(gains.fast_q16, kOneQ16 / 4);
  EXPECT_EQ(gains.alpha_q16, std::uint64_t{4} * kNsccMtu * kOneQ16 / 12'000);
  EXPECT_EQ(gains.gamma_q16, 52'429U);
  EXPECT_EQ(gains.max_md_jump_q16, kOneQ16 / 2);
  EXPECT_EQ(gains.near_zero_ns, 1'000U);
  EXPECT_EQ(gains.adjust_bytes, 8 * kNsccMtu);
  EXPECT_EQ(gains.adjust_period_ns, 12'000U);
  EXPECT_EQ(gains.qa_gate_bytes, 225'000U >> 3);
}

TEST(NsccParameters, GainsGrowWithTheNetwork) {
  const NsccNetwork larger{.bits_per_second = 400 * kGigabit,
                           .full_bits_per_second = 400 * kGigabit,
                           .base_rtt_ns = kReferenceRttNs};
  EXPECT_EQ(derived({}, larger).fair_bytes, 4 * derived().fair_bytes);
  EXPECT_EQ(derived({}, larger).max_window_bytes, 4 * derived().max_window_bytes);
  EXPECT_EQ(derived({}, larger).target_ns, derived().target_ns);
}

TEST(NsccParameters, ValuesAreKeptInsideTheirBounds) {
  CcProfile profile;
  profile.nscc.fi = INFINITY;
  profile.nscc.gamma = 1e9F;
  profile.nscc.max_md_jump = 3.0F;
  profile.nscc.eta = 1e-30F;
  profile.nscc.qa_gate = 255;
  profile.nscc.max_cwnd = std::numeric_limits<std::uint32_t>::max();
  const NsccSettings settings = make_settings(profile, 0, {.remote_recv_peers = 1'000'000});
  EXPECT_EQ(settings.fair_bytes, static_cast<std::uint32_t>(kMaxWindowBytes));
  EXPECT_EQ(settings.gamma_q16, 16 * kOneQ16);
  EXPECT_EQ(settings.max_md_jump_q16, kOneQ16);
  EXPECT_EQ(settings.eta_bytes, 1U);
  EXPECT_EQ(settings.qa_gate, 31);
  EXPECT_EQ(settings.max_window_bytes, static_cast<std::uint32_t>(kMaxWindowBytes));
  EXPECT_EQ(settings.mtu_bytes, kMinNominalBytes);
  EXPECT_EQ(settings.sharers, kMaxSharers);
  EXPECT_EQ(make_settings({}, 1'000'000, {}).mtu_bytes, kMaxNominalBytes);
  EXPECT_EQ(make_settings({}, kNsccMtu, {}).sharers, 1U);
}

TEST(NsccParameters, ThoseWhoShareThePathAreCountedAtItsNarrowerEnd) {
  const auto sharers = [](const QpHints& hints) {
    return make_settings({}, kNsccMtu, hints).sharers;
  };
  EXPECT_EQ(sharers({.send_peers = 4}), 4U);
  EXPECT_EQ(sharers({.send_peers = 4, .remote_recv_peers = 9}), 9U);
  EXPECT_EQ(sharers({.qps_per_peer = 4, .remote_recv_peers = 32}), 8U);
  EXPECT_EQ(sharers({.qps_per_peer = 4, .remote_recv_peers = 33}), 9U);
  EXPECT_EQ(sharers({.qps_per_peer = 4}), 1U);
  EXPECT_EQ(sharers({.qps_per_peer = 0xFFFF'FFFF, .remote_recv_peers = 0xFFFF'FFFF}), 1U);
}

TEST(NsccParameters, RatesAreThoseOfAllQueuePairsOfAController) {
  constexpr std::uint32_t kLine = QpHints::kLineRate;
  const NsccGains full = derived();
  const NsccGains half = derived({}, kReference, {.qps_per_peer = 4, .max_rate = kLine / 8});
  EXPECT_EQ(half.max_window_bytes, full.max_window_bytes / 2);
  const auto least = [&](const QpHints& hints) {
    return min_window_bytes(make_settings({}, kNsccMtu, hints),
                            derived({}, kReference, hints).max_window_bytes);
  };
  EXPECT_EQ(least({}), kNsccMtu);
  EXPECT_EQ(least({.min_rate = kLine / 8}), full.max_window_bytes / 8);
  EXPECT_EQ(least({.min_rate = kLine / 8, .max_rate = kLine / 2}), full.max_window_bytes / 8);
  EXPECT_EQ(derived({}, kReference, {.max_rate = 1}).max_window_bytes, kNsccMtu)
      << "a packet at least";
  EXPECT_LE(least({.min_rate = kLine / 2, .max_rate = kLine / 4}), full.max_window_bytes / 4)
      << "no floor above the ceiling";
  const QpHints slow{.initial_rate = kLine / 8};
  EXPECT_EQ(first_window_bytes(make_settings({}, kNsccMtu, slow), full.max_window_bytes, slow),
            full.max_window_bytes / 8);
}

TEST(NsccParameters, AnExplicitWindowShrinksWithThePlanesThatAreLeft) {
  CcProfile profile;
  profile.nscc.max_cwnd = 100'000;
  const NsccNetwork three_of_four{.bits_per_second = 300 * kGigabit,
                                  .full_bits_per_second = 400 * kGigabit,
                                  .base_rtt_ns = kReferenceRttNs};
  EXPECT_EQ(derived(profile, three_of_four).max_window_bytes, 75'000U);
}

TEST(NsccParameters, AWindowHoldsSomePacketsHoweverSmallTheNetwork) {
  const NsccNetwork tiny{
      .bits_per_second = 1'000'000, .full_bits_per_second = 1'000'000, .base_rtt_ns = 1'000};
  EXPECT_EQ(derived({}, tiny).max_window_bytes, kMinMaxWindowPackets * kNsccMtu);
  CcProfile profile;
  profile.nscc.max_cwnd = 100;
  EXPECT_EQ(derived(profile, tiny).max_window_bytes, kNsccMtu);
  EXPECT_GE(derived({}, tiny).fair_bytes, 1U);
  EXPECT_GE(derived({}, tiny).eta_bytes, 1U);
  EXPECT_GE(derived({}, tiny).fast_q16, 1U);
}

TEST(NsccParameters, DefaultsMatchTheTwoTier400GigabitTable) {
  // The table counts increases in payload (4,086 bytes) and thresholds in packets (4,150).
  const NsccGains gains = gains_of(two_tier(), 400, 4'086);
  EXPECT_NEAR(gains.target_ns, 6'253, 1);
  EXPECT_NEAR(from_q16(gains.alpha_q16) * 1'000, 3'785, 1);
  EXPECT_NEAR(gains.fair_bytes, 56'776, 3);
  EXPECT_NEAR(gains.eta_bytes, 1'703, 1);
  EXPECT_NEAR(from_q16(gains.fast_q16), 0.695, 0.001);
  EXPECT_NEAR(from_q16(gains.gamma_q16), 0.8, 0.0001);
  EXPECT_NEAR(from_q16(gains.max_md_jump_q16), 0.5, 0.0001);
  EXPECT_NEAR(gains.max_window_bytes, 625'284, 10);
  EXPECT_EQ(gains.qa_gate_bytes, gains.max_window_bytes / 8);
  EXPECT_EQ(gains.adjust_period_ns, kBaseRtt);
  EXPECT_EQ(gains_of(two_tier(), 400, kNsccMtu).adjust_bytes, 33'200U);
}

TEST(NsccParameters, DefaultsMatchTheThreeTier100GigabitTable) {
  CcProfile profile;
  profile.nscc.base_rtt_ns = 14'023;
  const NsccGains gains = gains_of(profile, 100, 4'086);
  EXPECT_NEAR(gains.target_ns, 10'517, 1);
  EXPECT_NEAR(from_q16(gains.alpha_q16) * 1'000, 1'592, 1);
  EXPECT_NEAR(gains.fair_bytes, 23'874, 10);
  EXPECT_NEAR(gains.eta_bytes, 716, 1);
  EXPECT_NEAR(from_q16(gains.fast_q16), 0.292, 0.001);
  EXPECT_NEAR(gains.max_window_bytes, 262'926, 10);
}

TEST(NsccParameters, WithoutTrimmingTheTargetIsOneBaseRttAndDelayTriggersQuickAdapt) {
  CcProfile profile = two_tier();
  profile.network_trims = false;
  const NsccGains gains = gains_of(profile, 400, kNsccMtu);
  EXPECT_EQ(gains.target_ns, kBaseRtt);
  EXPECT_EQ(gains.qa_threshold_ns, 4 * kBaseRtt);
  EXPECT_EQ(gains_of(two_tier(), 400, kNsccMtu).qa_threshold_ns,
            std::numeric_limits<std::uint32_t>::max());
}

TEST(NsccParameters, FastIncreaseDelayLimitScalesWithBaseRtt) {
  CcProfile profile;
  profile.nscc.base_rtt_ns = 12'000;
  EXPECT_EQ(gains_of(profile, 100, kNsccMtu).near_zero_ns, 1'000U);
  profile.nscc.base_rtt_ns = 96'000;
  EXPECT_EQ(gains_of(profile, 100, kNsccMtu).near_zero_ns, 8'000U);
  // Timestamps have steps of 128 ns; a single step is no delay.
  profile.nscc.base_rtt_ns = 600;
  EXPECT_EQ(gains_of(profile, 100, kNsccMtu).near_zero_ns, 128U);
}

TEST(NsccParameters, ExplicitValuesWin) {
  CcProfile profile;
  profile.nscc = {.adjust_bytes_threshold = 1'001,
                  .adjust_period_threshold_ns = 1'002,
                  .base_rtt_ns = 10'000,
                  .eta = 1'003,
                  .fi = 1'004,
                  .fi_scale = 1.5F,
                  .gamma = 0.25F,
                  .max_md_jump = 0.75F,
                  .max_cwnd = 100'000,
                  .qa_gate = 2,
                  .qa_threshold_ns = 1'005,
                  .target_delay_ns = 1'006};
  for (const std::uint64_t gigabits : {25, 400}) {
    const NsccGains gains = gains_of(profile, gigabits, kNsccMtu, {.remote_recv_peers = 16});
    EXPECT_EQ(gains.adjust_bytes, 1'001U);
    EXPECT_EQ(gains.adjust_period_ns, 1'002U);
    EXPECT_EQ(gains.eta_bytes, 1'003U);
    EXPECT_EQ(gains.fair_bytes, 1'004U);
    EXPECT_EQ(gains.fast_q16, 3 * kOneQ16 / 2);
    EXPECT_EQ(gains.gamma_q16, kOneQ16 / 4);
    EXPECT_EQ(gains.max_md_jump_q16, 3 * kOneQ16 / 4);
    EXPECT_EQ(gains.max_window_bytes, 100'000U);
    EXPECT_EQ(gains.qa_gate_bytes, 25'000U);
    EXPECT_EQ(gains.qa_threshold_ns, 1'005U);
    EXPECT_EQ(gains.target_ns, 1'006U);
  }
}

TEST(NsccParameters, AlphaDoesNotDependOnTheTarget) {
  CcProfile profile = two_tier();
  const NsccGains derived = gains_of(profile, 400, kNsccMtu);
  profile.nscc.target_delay_ns = 2'000;
  EXPECT_EQ(gains_of(profile, 400, kNsccMtu).alpha_q16, derived.alpha_q16);
}

TEST(NsccParameters, FloatsThatMeanNothingAreDerivedOrBounded) {
  const NsccGains derived = gains_of(two_tier(), 400, kNsccMtu);
  const float infinity = std::numeric_limits<float>::infinity();
  for (const float nonsense : {-1.0F, -infinity, std::nanf("")}) {
    CcProfile profile = two_tier();
    profile.nscc.eta = profile.nscc.fi = profile.nscc.fi_scale = nonsense;
    profile.nscc.gamma = profile.nscc.max_md_jump = nonsense;
    const NsccGains gains = gains_of(profile, 400, kNsccMtu);
    EXPECT_EQ(gains.eta_bytes, derived.eta_bytes);
    EXPECT_EQ(gains.fair_bytes, derived.fair_bytes);
    EXPECT_EQ(gains.fast_q16, derived.fast_q16);
    EXPECT_EQ(gains.gamma_q16, derived.gamma_q16);
    EXPECT_EQ(gains.max_md_jump_q16, derived.max_md_jump_q16);
  }
  CcProfile profile = two_tier();
  profile.nscc.eta = infinity;
  profile.nscc.max_md_jump = 7;
  profile.nscc.gamma = 1e-30F;
  EXPECT_EQ(gains_of(profile, 400, kNsccMtu).eta_bytes, kMaxWindowBytes);
  EXPECT_EQ(gains_of(profile, 400, kNsccMtu).max_md_jump_q16, kOneQ16);
  EXPECT_EQ(gains_of(profile, 400, kNsccMtu).gamma_q16, 1U);
}

TEST(NsccParameters, TheRootOfTheIncastDegreeDividesTheDerivedIncreases) {
  const NsccGains one = gains_of(two_tier(), 400, kNsccMtu);
  const NsccGains many = gains_of(two_tier(), 400, kNsccMtu, {.remote_recv_peers = 16});
  EXPECT_NEAR(many.fair_bytes, one.fair_bytes / 4, 1);
  EXPECT_NEAR(many.eta_bytes, one.eta_bytes / 4, 1);
  EXPECT_EQ(many.alpha_q16, one.alpha_q16 / 4);
  EXPECT_EQ(many.fast_q16, one.fast_q16);
  EXPECT_EQ(many.max_window_bytes, one.max_window_bytes);
}

TEST(NsccParameters, AbsurdNetworksStayInBounds) {
  constexpr std::uint64_t kMaxBits = std::numeric_limits<std::uint64_t>::max();
  for (const std::uint64_t bits : {std::uint64_t{0}, std::uint64_t{1}, kMaxBits}) {
    for (const DurationNs rtt : {kMinBaseRttNs, kMaxBaseRttNs}) {
      for (const std::uint32_t mtu : {0U, std::numeric_limits<std::uint32_t>::max()}) {
        const NsccSettings settings = make_settings({}, mtu, {});
        const NsccGains gains = derive_gains(
            settings,
            {.bits_per_second = bits, .full_bits_per_second = kMaxBits, .base_rtt_ns = rtt});
        EXPECT_GE(gains.max_window_bytes, settings.mtu_bytes);
        EXPECT_LE(gains.max_window_bytes, kMaxWindowBytes);
        EXPECT_GE(gains.eta_bytes, 1U);
        EXPECT_GE(gains.target_ns, 1U);
      }
    }
  }
}

}  // namespace
}  // namespace mrc::core
