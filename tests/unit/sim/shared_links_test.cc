// Workloads whose flows must share links, and loads.
#include <gtest/gtest.h>

#include <map>

#include "fabric/input_error.h"
#include "sim/flow_sizes.h"
#include "sim/report.h"
#include "sim/simulation.h"

namespace mrc::sim {
namespace {

using fabric::InputError;
using fabric::Topology;

Topology racks(unsigned t0, unsigned hosts_per_t0) {
  return Topology({.planes = 1, .hosts = t0 * hosts_per_t0, .t0 = t0, .t1 = 2});
}

WorkloadSpec spec_of(const std::string& name) {
  WorkloadSpec spec;
  spec.name = name;
  spec.bytes = 1'000'000;
  return spec;
}

Report report_of(const SimConfig& config) {
  Simulation simulation(config);
  SimResult result = simulation.run();
  return make_report(config, simulation.topology(), simulation.workload(), simulation.faults(),
                     std::move(result));
}

TEST(ParkingLot, LoadsTheWayOutOfAAndTheWayIntoBAlike) {
  const Topology topology = racks(3, 8);
  WorkloadSpec spec = spec_of("parking-lot");
  spec.through_bytes = 3'000'000;
  const Workload workload = make_workload(spec, topology);
  std::map<std::pair<unsigned, unsigned>, unsigned> flows;
  std::map<std::uint32_t, unsigned> busy;  // ports
  for (const Task& task : workload.tasks) {
    ++flows[{topology.t0_of(task.source), topology.t0_of(task.destination)}];
    EXPECT_EQ(++busy[task.source], 1u);
    EXPECT_EQ(++busy[1'000 + task.destination], 1u);
    EXPECT_EQ(task.victim, task.bytes == 3'000'000);
  }
  EXPECT_EQ(flows, (std::map<std::pair<unsigned, unsigned>, unsigned>{
                       {{0, 2}, 7}, {{2, 1}, 7}, {{0, 1}, 1}}));
}

TEST(ParkingLot, NeedsThreeRacksAndAHostForTheThroughFlow) {
  WorkloadSpec spec = spec_of("parking-lot");
  EXPECT_THROW(make_workload(spec, racks(2, 8)), InputError);
  EXPECT_THROW(make_workload(spec, racks(3, 7)), InputError);
  spec.crossing = 6;
  EXPECT_EQ(make_workload(spec, racks(3, 7)).tasks.size(), 13u);
}

// Eight flows of 2 MB over uplinks for six: 4/3 of the time that a port needs, for all alike. That
// is the bound, which is what a fair share gives the through flow, too.
TEST(ParkingLot, IsBoundByTheRackWhereUplinksAreFewer) {
  SimConfig config;
  config.topology = {.planes = 1, .hosts = 24, .t0 = 3, .t1 = 6};
  config.workload = spec_of("parking-lot");
  config.workload.bytes = 2'000'000;
  const Report report = report_of(config);
  ASSERT_TRUE(report.result.complete);
  const double line_us = 2e6 * (4'242.0 / 4'096) * 8 / 400e3;
  EXPECT_NEAR(report.bound_us - report.ideal_us, line_us / 3, 0.01 * line_us);
  ASSERT_TRUE(report.victim);
  EXPECT_GE(report.victim->fct_us, 0.95 * report.bound_us);
  ASSERT_TRUE(report.fairness);
  EXPECT_EQ(report.fairness->share.size(), 15u);
}

TEST(FairnessWorkload, HasOneFlowPerHostOfTheRackAndStaggersThem) {
  const Topology topology = racks(2, 4);
  WorkloadSpec spec = spec_of("fairness");
  spec.senders = 3;
  spec.stagger_ps = 7;
  const Workload workload = make_workload(spec, topology);
  ASSERT_EQ(workload.tasks.size(), 3u);
  for (unsigned i = 0; i < 3; ++i) {
    EXPECT_EQ(workload.tasks[i].source, i);
    EXPECT_EQ(workload.tasks[i].destination, 4 + i);
    EXPECT_EQ(workload.tasks[i].delay, 7 * i);
  }
  spec.senders = 5;
  EXPECT_THROW(make_workload(spec, topology), InputError);
  spec.senders = 1;
  EXPECT_THROW(make_workload(spec, topology), InputError);
}

// Two ports into one uplink: twice the time of one flow.
TEST(FairnessWorkload, OfTwoOnOneLinkIsBoundByIt) {
  SimConfig config;
  config.topology = {.planes = 1, .hosts = 4, .t0 = 2, .t1 = 1};
  config.workload = spec_of("fairness");
  config.workload.senders = 2;
  config.workload.bytes = 4'000'000;
  const Report report = report_of(config);
  const double line_us = 4e6 * (4'242.0 / 4'096) * 8 / 400e3;
  EXPECT_NEAR(report.bound_us - report.ideal_us, line_us, 0.01 * line_us);
  ASSERT_TRUE(report.fairness);
  EXPECT_NEAR(report.fairness->share[0] + report.fairness->share[1], 1, 1e-12);
}

TEST(Poisson, AsksForTheLoadThatWasSaidInFlowsThatComeAtRandom) {
  const Topology topology = racks(4, 16);
  WorkloadSpec spec = spec_of("poisson");
  spec.sizes = "websearch";
  spec.load = 0.4;
  spec.arrivals_ps = 100'000'000'000;
  const Workload workload = make_workload(spec, topology);
  double bytes = 0;
  Time last = 0;
  for (const Task& task : workload.tasks) {
    bytes += static_cast<double>(task.bytes);
    EXPECT_NE(task.source, task.destination);
    EXPECT_GE(task.delay, last);
    EXPECT_LT(task.delay, spec.arrivals_ps);
    last = task.delay;
  }
  // 64 hosts of 400 Gb/s for 100 ms; some 60,000 flows of 1.7 MB with a deviation of 3.9 MB.
  EXPECT_NEAR(bytes * 8 / (0.1 * 64 * 400e9), 0.4, 0.02);
  spec.load = 0;
  EXPECT_THROW(make_workload(spec, topology), InputError);
  spec.load = 1e-6;
  spec.arrivals_ps = 1;
  EXPECT_THROW(make_workload(spec, topology), InputError);
}

TEST(Poisson, IsReportedByLength) {
  SimConfig config;
  config.topology = {.planes = 1, .hosts = 16, .t0 = 4, .t1 = 4};
  config.workload = spec_of("poisson");
  config.workload.sizes = "websearch";
  config.workload.load = 0.3;
  config.workload.arrivals_ps = 50'000'000;
  const Report report = report_of(config);
  ASSERT_TRUE(report.result.complete);
  std::uint64_t flows = 0;
  for (const SlowdownClass& c : report.slowdown) {
    flows += c.flows;
    EXPECT_GE(c.max, c.p50);
  }
  EXPECT_EQ(flows, report.flows);
  EXPECT_GE(report.ratio_bound, 0.999);
}

}  // namespace
}  // namespace mrc::sim
