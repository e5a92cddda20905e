#include "sim/fairness.h"

#include <gtest/gtest.h>

#include "sim/simulation.h"

namespace mrc::sim {
namespace {

// Two flows, of which the second begins at 3 us; series with one bin a microsecond.
struct TwoFlows {
  TwoFlows() {
    WorkloadBuilder builder("fairness");
    builder.record_shares();
    builder.transfer(0, 2, 1'000);
    builder.transfer(1, 3, 1'000);
    workload = builder.build();
    result.flows = {{.posted = 0, .sent = 25'000'000}, {.posted = 3'000'000, .sent = 30'000'000}};
    result.shares = Series(2, 1'000'000);
  }
  void deliver(Time us, unsigned flow, std::uint32_t bytes) {
    result.shares.add(us * 1'000'000, flow, bytes);
  }
  Workload workload;
  SimResult result;
};

TEST(JainIndex, IsOneForEqualsAndAnNthForOneThatHasAll) {
  EXPECT_DOUBLE_EQ(jain_index({3, 3, 3, 3}), 1);
  EXPECT_DOUBLE_EQ(jain_index({5, 0, 0, 0}), 0.25);
  EXPECT_DOUBLE_EQ(jain_index({2, 1}), 9.0 / 10);
  EXPECT_DOUBLE_EQ(jain_index({0, 0}), 1);
}

TEST(Fairness, CountsWhileAllFlowsAreUnderWay) {
  TwoFlows two;
  two.deliver(1, 0, 9'000);  // the second has not begun
  for (Time us = 3; us < 25; ++us) {
    two.deliver(us, 0, 300);
    two.deliver(us, 1, 100);
  }
  two.deliver(27, 1, 9'000);  // the first has ended
  const std::optional<FairnessReport> report = measure_fairness(two.workload, two.result);
  ASSERT_TRUE(report);
  EXPECT_DOUBLE_EQ(report->from_us, 3);
  EXPECT_DOUBLE_EQ(report->until_us, 25);
  EXPECT_DOUBLE_EQ(report->share[0], 0.75);
  EXPECT_DOUBLE_EQ(report->jain, 16.0 / 20);
  EXPECT_EQ(report->slices.size(), 10u);
}

TEST(Fairness, OfTheWorstTenthShowsTurnsThatTheWholeHides) {
  TwoFlows two;
  for (Time us = 3; us < 25; ++us)
    two.deliver(us, us < 14 ? 0 : 1, 100);
  const std::optional<FairnessReport> report = measure_fairness(two.workload, two.result);
  ASSERT_TRUE(report);
  EXPECT_DOUBLE_EQ(report->jain, 1);
  EXPECT_DOUBLE_EQ(report->jain_worst, 0.5);
}

TEST(Fairness, IsNotMeasuredWhereFlowsHardlyMeetOrFail) {
  TwoFlows two;
  two.result.flows[0].sent = 12'000'000;
  EXPECT_FALSE(measure_fairness(two.workload, two.result));
  two.result.flows[0].sent = 25'000'000;
  EXPECT_TRUE(measure_fairness(two.workload, two.result));
  two.result.flows[1].failed = true;
  EXPECT_FALSE(measure_fairness(two.workload, two.result));
}

TEST(Fairness, OfARunHasTheBytesOfAllItsFlowsOnAllConnections) {
  SimConfig config;
  config.topology = {.planes = 1, .hosts = 4, .t0 = 2, .t1 = 1};
  config.workload.name = "fairness";
  config.workload.senders = 2;
  config.workload.connections = 2;
  config.workload.bytes = 500'000;
  Simulation simulation(config);
  const SimResult result = simulation.run();
  ASSERT_TRUE(result.complete);
  ASSERT_EQ(result.shares.planes(), 2u);
  for (unsigned flow = 0; flow < 2; ++flow) {
    std::uint64_t bytes = 0;
    for (std::size_t bin = 0; bin < result.shares.bins(); ++bin)
      bytes += result.shares.bytes(flow, bin);
    EXPECT_EQ(bytes, 500'000u) << flow;
  }
}

}  // namespace
}  // namespace mrc::sim
