#include "sim/explain.h"

#include <gtest/gtest.h>

#include <numeric>

#include "sim/report.h"

namespace mrc::sim {
namespace {

using enum TimePart;

struct Explained {
  Report report;
  std::vector<Explanation> flows;
};

// That looking changes nothing is asserted in explain_slowest().
Explained explain(const SimConfig& config, unsigned count) {
  Simulation simulation(config);
  SimResult result = simulation.run();
  EXPECT_TRUE(result.complete);
  const Workload& workload = simulation.workload();
  Report report =
      make_report(config, simulation.topology(), workload, simulation.faults(), std::move(result));
  auto flows = explain_slowest(report, workload, count);
  EXPECT_EQ(flows.size(), count);
  for (const Explanation& e : flows) {
    EXPECT_NEAR(std::accumulate(e.part_us.begin(), e.part_us.end(), 0.0), e.us, 1e-6);
    const FlowResult& flow = report.result.flows[e.task];
    EXPECT_NEAR(e.us, static_cast<double>(flow.sent - flow.posted) / 1e6, 1e-9);
  }
  return {std::move(report), std::move(flows)};
}

SimConfig small(unsigned planes) {
  SimConfig config;
  config.topology = {.planes = planes, .hosts = 16, .t0 = 4, .t1 = 4};
  return config;
}

TEST(Explain, AFlowOfItsOwnSendsTravelsAndIsAnswered) {
  for (const unsigned planes : {1u, 4u}) {
    SimConfig config = small(planes);
    config.workload.name = "pair";
    const Explanation e = explain(config, 1).flows.at(0);
    EXPECT_EQ(e.copies, 0u);
    EXPECT_EQ(e.packets, (config.workload.bytes + config.path_mtu - 1) / config.path_mtu);
    EXPECT_GT(e.at(kSending), 0.9 * (e.us - e.at(kTravel) - e.at(kAnswer)));
    EXPECT_EQ(e.at(kSendingAgain) + e.at(kTrimmed) + e.at(kOvertaken), 0);
    // Four links of 1 us, and the shortest answer takes as long.
    EXPECT_GT(e.at(kTravel), 4);
    EXPECT_GT(e.at(kAnswer), 4);
  }
}

TEST(Explain, SendersOfAnIncastWaitForTheirWindowAndForCutPackets) {
  for (const auto victim : {fabric::TrimVictim::kArrival, fabric::TrimVictim::kTail}) {
    SimConfig config = small(1);
    config.workload.name = "incast";
    config.workload.senders = 12;
    config.workload.bytes = 4'000'000;
    config.trim_victim = victim;
    const Explained explained = explain(config, 12);
    double window_us = 0;
    double queue_us = 0;
    std::uint64_t trimmed = 0;
    for (const Explanation& e : explained.flows) {
      window_us += e.at(kWindow);
      queue_us += e.at(kQueueT0Host);
      trimmed += e.lost[static_cast<std::size_t>(kTrimmed)];
      EXPECT_GT(e.at(kWindow), e.at(kPortTaken));
    }
    EXPECT_GT(window_us, 12 * 100);
    EXPECT_GT(queue_us, 0);
    EXPECT_EQ(trimmed, explained.report.result.network.trims);
  }
}

TEST(Explain, FlowsOfOneHostTakeThePortFromEachOther) {
  SimConfig config = small(1);
  config.workload.name = "all-to-all";
  config.workload.bytes = 16 * 256'000;
  config.workload.window = 0;
  // All are followed; what one sends is not taken for another's. 256 kB are 5.3 us at 400 Gb/s.
  for (const Explanation& e : explain(config, 16 * 15).flows) {
    EXPECT_NEAR(e.at(kSending), 5.2, 0.2);
    EXPECT_EQ(e.at(kSendingAgain), 0);
  }
  for (const Explanation& e : explain(config, 4).flows)
    EXPECT_GT(e.at(kPortTaken), e.at(kSending));
}

TEST(Explain, LossesAreToldByTheirCause) {
  SimConfig config = small(1);
  config.workload.name = "permutation";
  config.faults = {"t0:0/t1:0/plane:0 down @5us"};
  std::uint64_t met_dead_link = 0;
  for (const Explanation& e : explain(config, 16).flows) {
    met_dead_link += e.lost[static_cast<std::size_t>(kLinkDown)];
    EXPECT_EQ(e.lost[static_cast<std::size_t>(kRandomLoss)], 0u);
  }
  EXPECT_GT(met_dead_link, 0u);

  config.faults.clear();
  config.loss = 0.02;
  double lost_us = 0;
  std::uint64_t lost = 0;
  for (const Explanation& e : explain(config, 16).flows) {
    lost += e.lost[static_cast<std::size_t>(kRandomLoss)];
    lost_us += e.at(kRandomLoss) + e.at(kSendingAgain);
    EXPECT_EQ(e.lost[static_cast<std::size_t>(kLinkDown)], 0u);
  }
  EXPECT_GT(lost, 0u);
  EXPECT_GT(lost_us, 0);
}

// Go-back-N throws away what comes behind a gap.
TEST(Explain, TheBaselineIsExplainedTheSameWay) {
  SimConfig config = small(1);
  config.transport = Transport::kRoce;
  config.workload.name = "permutation";
  config.loss = 0.002;
  std::uint64_t thrown_away = 0;
  for (const Explanation& e : explain(config, 16).flows)
    thrown_away += e.lost[static_cast<std::size_t>(kNotTaken)];
  EXPECT_GT(thrown_away, 0u);
}

TEST(Explain, PartsHaveNamesOfTheirOwn) {
  for (unsigned i = 0; i < kTimeParts; ++i)
    for (unsigned j = 0; j < i; ++j)
      EXPECT_STRNE(name_of(static_cast<TimePart>(i)), name_of(static_cast<TimePart>(j)));
}

}  // namespace
}  // namespace mrc::sim
