#include "nic/engine/software_cc.h"

#include <gtest/gtest.h>

namespace mrc::nic::test {
namespace {

constexpr std::uint32_t kFull = 4'200;

SoftwarePorts ports_with(std::uint64_t bits_per_second, unsigned ports) {
  return {.bits_per_second = bits_per_second,
          .ports = ports,
          .receive_buffer_bytes = 8'000'000,
          .full_packet_bytes = kFull,
          .burst_packets = 1};
}

core::NsccParameters values(const SoftwarePorts& ports, bool trims) {
  return software_cc({.network_trims = trims}, ports).nscc;
}

// 0.2 ms, four packets of 0.7 ms, and 1 ms for processors make 4 ms: 50 kB on two ports.
TEST(SoftwareCc, WindowsOfSlowPortsHoldWhatTheseCarry) {
  const core::NsccParameters nscc = values(ports_with(50'000'000, 2), true);
  EXPECT_NEAR(nscc.base_rtt_ns, 2'985'000, 1'000);
  EXPECT_NEAR(nscc.max_cwnd, 12'500 * 3.985 * 1.5, 20);
  EXPECT_NEAR(values(ports_with(50'000'000, 4), true).max_cwnd, 2 * nscc.max_cwnd, 20);
}

TEST(SoftwareCc, WindowsOfFastPortsHoldWhatBuffersDo) {
  EXPECT_NEAR(values(ports_with(100'000'000'000, 4), true).max_cwnd, 1024 * 1024, 2 * kFull);
  SoftwarePorts little = ports_with(100'000'000'000, 4);
  little.receive_buffer_bytes = 10'000;
  EXPECT_NEAR(values(little, false).max_cwnd, 512 * 1024, 2 * kFull);
}

TEST(SoftwareCc, AWindowHoldsAFewPacketsHoweverSlowThePort) {
  EXPECT_EQ(values(ports_with(1'000'000, 1), true).max_cwnd, 64U * 1024);
}

TEST(SoftwareCc, QueuesOfSwitchesThatTrimAreHalfOfWhatAPathHolds) {
  EXPECT_NEAR(values(ports_with(50'000'000, 2), true).target_delay_ns, 1'992'000, 1'000);
  EXPECT_NEAR(values(ports_with(50'000'000, 2), false).target_delay_ns, 6'570'000, 1'000);
}

// Somebody who knows that the network is long, and nothing else, needs a window that fits it.
TEST(SoftwareCc, WhatIsGivenStaysAndTheRestFollowsFromIt) {
  const SoftwarePorts ports = ports_with(1'000'000'000, 1);
  core::CcProfile given{.network_trims = true};
  given.nscc.base_rtt_ns = 2'000'000;
  const core::NsccParameters longer = software_cc(given, ports).nscc;
  EXPECT_EQ(longer.base_rtt_ns, 2'000'000U);
  EXPECT_EQ(longer.target_delay_ns, 1'500'000U);
  EXPECT_EQ(longer.max_cwnd, 125'000U * 3 * 3 / 2);
  given.nscc.max_cwnd = 77'000;
  given.nscc.target_delay_ns = 5'000;
  EXPECT_EQ(software_cc(given, ports).nscc.max_cwnd, 77'000U);
  EXPECT_EQ(software_cc(given, ports).nscc.target_delay_ns, 5'000U);
}

TEST(SoftwareCc, QuickAdaptNeedsSomethingThatTriggersIt) {
  const SoftwarePorts ports = ports_with(1'000'000'000, 1);
  EXPECT_FALSE(values(ports, true).disable_qa);
  EXPECT_TRUE(values(ports, false).disable_qa);
  core::CcProfile given{.network_trims = false};
  given.nscc.qa_threshold_ns = 1'000'000;
  EXPECT_FALSE(software_cc(given, ports).nscc.disable_qa);
}

}  // namespace
}  // namespace mrc::nic::test
