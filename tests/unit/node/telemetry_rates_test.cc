#include "node/telemetry_rates.h"

#include <gtest/gtest.h>

#include <memory>

namespace mrc::node {
namespace {

class TelemetryRatesTest : public ::testing::Test {
 protected:
  TelemetryRatesTest() {
    for (TelemetryBody* body : {before.get(), now.get()}) {
      body->plane_count = 4;
      for (std::uint32_t i = 0; i < 4; ++i)
        body->planes[i] = {.port = i + 1, .enabled = 1, .link_up = 1};
    }
    before->written_unix_ns = 1'000 * kSecondNs;
    now->written_unix_ns = 1'002 * kSecondNs;
  }
  std::string only_finding() {
    const auto found = telemetry_findings(*before, *now);
    return found.size() == 1 ? found[0].text : std::to_string(found.size()) + " findings";
  }

  std::unique_ptr<TelemetryBody> before = std::make_unique<TelemetryBody>();
  std::unique_ptr<TelemetryBody> now = std::make_unique<TelemetryBody>();
};

TEST_F(TelemetryRatesTest, AreDifferencesByTime) {
  before->traffic.bytes_sent = 1'000;
  now->traffic.bytes_sent = 5'000;
  now->process.cpu_ns = 3 * kSecondNs;
  now->planes[3].bytes_received = 600;
  now->drops[0] = 1'000;  // packets that were used
  now->drops[5] = 8;
  const TelemetryRates rates = telemetry_rates(*before, *now);
  EXPECT_DOUBLE_EQ(rates.seconds, 2);
  EXPECT_DOUBLE_EQ(rates.sent_bytes, 2'000);
  EXPECT_DOUBLE_EQ(rates.processors, 1.5);
  EXPECT_DOUBLE_EQ(rates.planes.at(3).received_bytes, 300);
  EXPECT_DOUBLE_EQ(rates.dropped_packets, 4);
}

TEST_F(TelemetryRatesTest, CountersThatBeganAnewGiveNoRate) {
  before->traffic.bytes_sent = 9'000;
  now->traffic.bytes_sent = 5'000;
  EXPECT_DOUBLE_EQ(telemetry_rates(*before, *now).sent_bytes, 0);
  now->written_unix_ns = before->written_unix_ns;
  EXPECT_DOUBLE_EQ(telemetry_rates(*before, *now).seconds, 0);
}

TEST_F(TelemetryRatesTest, OtherLivesAreOtherDevices) {
  EXPECT_TRUE(is_same_device(*before, *now));
  now->process.start_ticks = 1;
  EXPECT_FALSE(is_same_device(*before, *now));
}

TEST_F(TelemetryRatesTest, EvenPlanesAreFine) {
  for (TelemetryPlane& plane : now->planes)
    plane.bytes_sent = 10'000'000;
  EXPECT_TRUE(telemetry_findings(*before, *now).empty());
}

TEST_F(TelemetryRatesTest, PlaneThatCarriesLessThanHalfItsShareIsNamed) {
  for (TelemetryPlane& plane : now->planes)
    plane.bytes_sent = 10'000'000;
  now->planes[1].bytes_sent = 1'000'000;
  now->planes[1].interface.set("eth7");
  EXPECT_EQ(only_finding(), "plane 1 (eth7): carries 12.9 % of its share");
  // One that is off carries nothing, which is no news; that it is off is.
  now->planes[1].link_up = 0;
  EXPECT_EQ(only_finding(), "plane 1 (eth7): link down");
}

TEST_F(TelemetryRatesTest, PlanesTakenOutOfUseAreNoAlarm) {
  for (TelemetryPlane& plane : now->planes)
    plane.bytes_sent = 10'000'000;
  now->planes[1].bytes_sent = 1'000'000;
  std::uint32_t& denied = now->planes[1].paths.at(static_cast<std::size_t>(core::EvState::kDenied));
  denied = 8;
  EXPECT_TRUE(telemetry_findings(*before, *now).empty());
  // One path is still in use.
  now->planes[1].paths.at(static_cast<std::size_t>(core::EvState::kGood)) = 1;
  EXPECT_EQ(only_finding(), "plane 1: carries 12.9 % of its share");
  denied = 0;
  now->planes[1].enabled = 0;
  EXPECT_TRUE(telemetry_findings(*before, *now).empty());
}

TEST_F(TelemetryRatesTest, LinkThatComesAndGoesIsNamed) {
  before->planes[0].link_changes = 10;
  now->planes[0].link_changes = 13;
  EXPECT_TRUE(telemetry_findings(*before, *now).empty());
  now->planes[0].link_changes = 14;
  EXPECT_EQ(only_finding(), "plane 0: went up and down, 4 changes");
}

TEST_F(TelemetryRatesTest, ResendsAreSharesOfWhatWasSent) {
  now->traffic.data_sent = 10'000;
  now->traffic.retransmitted = 100;
  EXPECT_TRUE(telemetry_findings(*before, *now).empty());
  now->traffic.retransmitted = 101;
  EXPECT_EQ(only_finding(), "1.0 % of the packets resent");
  now->traffic.data_sent = 999;
  EXPECT_TRUE(telemetry_findings(*before, *now).empty());
}

TEST_F(TelemetryRatesTest, BadPathsAndSilentPeersAreNamed) {
  now->planes[2].paths[static_cast<std::size_t>(core::EvState::kAssumedBad)] = 5;
  EXPECT_EQ(only_finding(), "plane 2: 5 paths assumed bad");
  now->planes[2].paths = {};
  now->planes[2].silent = 1;
  EXPECT_EQ(only_finding(), "plane 2: peers of 1 queue pair do not answer");
}

}  // namespace
}  // namespace mrc::node
