// Workloads as a whole simulation executes them.

#include <gtest/gtest.h>

#include <numeric>
#include <string>

#include "sim/simulation.h"

namespace mrc::sim {
namespace {

SimConfig config_of(const std::string& workload) {
  SimConfig config;
  config.topology = {.planes = 2, .hosts = 8, .t0 = 4, .t1 = 2};
  config.workload.name = workload;
  config.workload.bytes = 100'000;
  config.workload.senders = 5;
  config.workload.steps = 3;
  config.workload.compute_ps = 30'000'000;
  config.verify = true;
  return config;
}

class EveryWorkloadRuns : public ::testing::TestWithParam<std::string> {};

TEST_P(EveryWorkloadRuns, ToItsEndWithTheRightBytes) {
  for (const unsigned connections : {1u, 2u}) {
    SimConfig config = config_of(GetParam());
    config.workload.connections = connections;
    Simulation simulation(config);
    const SimResult result = simulation.run();
    EXPECT_TRUE(result.complete);
    EXPECT_EQ(result.bytes_wrong, 0u);
  }
}

TEST_P(EveryWorkloadRuns, InTheOrderOfItsDependencies) {
  SimConfig config = config_of(GetParam());
  config.loss = 0.01;
  config.workload.placement = Placement::kShuffled;
  Simulation simulation(config);
  const SimResult result = simulation.run();
  ASSERT_TRUE(result.complete);
  const Workload& workload = simulation.workload();
  for (TaskId id = 0; id < workload.tasks.size(); ++id) {
    const Task& task = workload.tasks[id];
    EXPECT_EQ(task.waits, 0u) << "task " << id;  // counted down as others finish
    if (task.dependent_count > 0) {
      EXPECT_GE(result.flows[id].received, 0);
    }
    for (std::uint32_t i = 0; i < task.dependent_count; ++i) {
      const TaskId later = workload.dependents[task.first_dependent + i];
      EXPECT_GE(result.flows[later].posted, result.flows[id].received)
          << "task " << later << " after " << id;
    }
  }
}

std::string test_name(const ::testing::TestParamInfo<std::string>& info) {
  std::string name = info.param;
  std::erase(name, '-');
  return name;
}

INSTANTIATE_TEST_SUITE_P(Workload, EveryWorkloadRuns,
                         ::testing::Values("pair", "permutation", "incast", "all-to-all",
                                           "ring-all-reduce", "tree-all-reduce", "reduce-scatter",
                                           "all-gather", "training"),
                         test_name);

TEST(TrainingRun, StepTimesAddUpToTheWholeRun) {
  Simulation simulation(config_of("training"));
  const SimResult result = simulation.run();
  ASSERT_EQ(result.step_us.size(), 3u);
  const double sum = std::accumulate(result.step_us.begin(), result.step_us.end(), 0.0);
  EXPECT_NEAR(sum, static_cast<double>(result.finished_at) / 1e6, 0.001);
  for (const double step : result.step_us)
    EXPECT_GT(step, 30.0);  // computing alone takes that long
}

TEST(TrainingRun, CommunicationOverlapsWithTheBackwardPass) {
  SimConfig config = config_of("training");
  // Few ranks and slow, short links, so that the all-reduce is a matter of bandwidth.
  for (fabric::LinkClass* link : {&config.topology.host_link, &config.topology.t0_t1_link})
    *link = {.bits_per_second = 50'000'000'000, .delay_ps = 100'000};
  config.workload.ranks = {0, 2, 4, 6};
  config.workload.bytes = 800'000;
  config.workload.compute_ps = 240'000'000;
  config.workload.buckets = 1;
  const SimResult one = Simulation(config).run();
  config.workload.buckets = 4;
  const SimResult four = Simulation(config).run();
  ASSERT_TRUE(one.complete && four.complete);
  EXPECT_LT(four.finished_at, one.finished_at);
}

TEST(TrainingRun, AStepThatDidNotEndIsNotReported) {
  SimConfig config = config_of("training");
  const SimResult whole = Simulation(config).run();
  config.end_ps = whole.finished_at / 2;
  const SimResult half = Simulation(config).run();
  EXPECT_FALSE(half.complete);
  EXPECT_LT(half.step_us.size(), 3u);
}

}  // namespace
}  // namespace mrc::sim
