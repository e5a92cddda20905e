#include "sim/bound.h"

#include <gtest/gtest.h>

#include "sim/mrc_host.h"
#include "sim/report.h"
#include "sim/simulation.h"

namespace mrc::sim {
namespace {

constexpr std::uint64_t kBytes = 1'000'000;

SimConfig config_of(const std::string& workload) {
  SimConfig config;
  config.topology = {.planes = 1, .hosts = 16, .t0 = 4, .t1 = 4};
  config.workload.name = workload;
  config.workload.bytes = kBytes;
  return config;
}

// Time that one flow needs on the line of a host.
double line_us(const SimConfig& config) {
  const double wire = static_cast<double>(kBytes) * full_packet_bytes(config) / config.path_mtu;
  return wire * 8e6 / 400e9;
}

Bound bound_of(const SimConfig& config) {
  const fabric::Topology topology(config.topology);
  std::vector<fabric::Fault> faults;
  for (const std::string& text : config.faults)
    faults.push_back(fabric::parse_fault(text, topology));
  const Workload workload = make_workload(config.workload, topology);
  std::vector<std::uint64_t> sizes;
  for (const Task& task : workload.tasks)
    if (task.bytes > 0) sizes.push_back(task.bytes);
  return lower_bound(config, topology, workload, faults, IdealTimes(config, sizes));
}

double ideal_us(const SimConfig& config) { return IdealTimes(config, {kBytes}).us(kBytes); }

TEST(Bound, OfOneFlowIsItsIdealTime) {
  const SimConfig config = config_of("pair");
  EXPECT_DOUBLE_EQ(bound_of(config).us, ideal_us(config));
}

TEST(Bound, OfAnIncastIsThePortOfTheSink) {
  SimConfig config = config_of("incast");
  config.workload.senders = 10;
  const Bound bound = bound_of(config);
  EXPECT_NEAR(bound.us, ideal_us(config) + 9 * line_us(config), 1e-6);
  EXPECT_EQ(bound.reason, "bytes into host:0");
}

TEST(Bound, CountsTheFramesOfItsTransport) {
  SimConfig config = config_of("incast");
  config.workload.senders = 10;
  const auto each_us = [&] { return (bound_of(config).us - ideal_us(config)) / 9; };
  const double mrc_us = each_us();
  config.transport = Transport::kRoce;
  EXPECT_NEAR(each_us() / mrc_us, 4178.0 / 4242.0, 1e-9);
}

TEST(Bound, CountsUplinksThatAreTooFew) {
  SimConfig config = config_of("flows");
  config.topology.t1 = 2;
  config.workload.name = "permutation";
  // Neighbouring hosts in different racks: all of a rack's four flows share its two uplinks.
  config.workload.placement = Placement::kStrided;
  const fabric::Topology topology(config.topology);
  const Workload workload = make_workload(config.workload, topology);
  std::vector<std::uint64_t> up(4);
  for (const Task& task : workload.tasks)
    if (topology.t0_of(task.source) != topology.t0_of(task.destination))
      up[topology.t0_of(task.source)] += task.bytes;
  const double most = static_cast<double>(*std::max_element(up.begin(), up.end()));
  const double flows = most / static_cast<double>(kBytes);
  ASSERT_GT(flows, 2);
  EXPECT_NEAR(bound_of(config).us, ideal_us(config) + (flows / 2 - 1) * line_us(config), 1e-6);
}

TEST(Bound, CountsSlowLinksWithTheRateTheyHave) {
  SimConfig config = config_of("pair");
  config.faults = {"host:15/plane:0 rate 50% @0"};
  const Bound bound = bound_of(config);
  EXPECT_NEAR(bound.us, ideal_us(config) + line_us(config), 1e-6);
  EXPECT_EQ(bound.reason, "bytes into host:15");
}

TEST(Bound, WaitsForALinkThatIsDown) {
  SimConfig config = config_of("pair");
  config.faults = {"host:0/plane:0 down @5us for 30us"};
  EXPECT_NEAR(bound_of(config).us, ideal_us(config) + 30, 1e-6);
  config.faults = {"host:0/plane:0 down @1s for 30us"};
  EXPECT_NEAR(bound_of(config).us, ideal_us(config), 1e-6);
}

TEST(Bound, FollowsChainsOfTasks) {
  SimConfig config = config_of("training");
  config.workload.steps = 2;
  config.workload.compute_ps = 500'000'000;
  EXPECT_GT(bound_of(config).us, 1'000);
  EXPECT_EQ(bound_of(config).reason, "the longest chain of tasks");
}

class BoundHolds : public ::testing::TestWithParam<std::string> {};

TEST_P(BoundHolds, ForWhatIsSimulated) {
  for (const unsigned planes : {1u, 2u}) {
    for (const unsigned pods : {1u, 2u}) {
      SimConfig config = config_of(GetParam());
      config.topology.planes = planes;
      config.topology.pods = pods;
      config.topology.t2 = pods == 1 ? 0 : 2;
      config.workload.steps = 2;
      Simulation simulation(config);
      SimResult result = simulation.run();
      ASSERT_TRUE(result.complete);
      const Report report = make_report(config, simulation.topology(), simulation.workload(),
                                        simulation.faults(), std::move(result));
      // The ideal time is that of another pair of hosts, which may be a little less lucky.
      EXPECT_GE(report.finish_us, report.bound_us * 0.999) << report.bound_reason;
      EXPECT_LT(report.ratio_bound, 4) << report.bound_reason;
    }
  }
}

std::string test_name(const ::testing::TestParamInfo<std::string>& workload) {
  std::string name = workload.param;
  std::erase(name, '-');
  return name;
}

INSTANTIATE_TEST_SUITE_P(Sim, BoundHolds,
                         ::testing::Values("pair", "permutation", "incast", "all-to-all",
                                           "ring-all-reduce", "tree-all-reduce", "reduce-scatter",
                                           "all-gather", "training"),
                         test_name);

}  // namespace
}  // namespace mrc::sim
