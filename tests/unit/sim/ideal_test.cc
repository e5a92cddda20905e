#include "sim/ideal.h"

#include <gtest/gtest.h>

#include "sim/mrc_host.h"
#include "sim/simulation.h"

namespace mrc::sim {
namespace {

SimConfig sample_config() {
  SimConfig config;
  config.topology = {.planes = 2, .hosts = 32, .t0 = 4, .t1 = 8};
  config.loss = 0.01;
  config.faults = {"t0:1/t1:5/plane:0 down @0"};
  config.workload.name = "incast";
  return config;
}

double run_us(const SimConfig& config) {
  Simulation simulation(config);
  return static_cast<double>(simulation.run().flows.at(0).sent) / 1e6;
}

TEST(Ideal, KeepsTheFabricButForIdleHosts) {
  const SimConfig single = alone(sample_config(), 1'000'000);
  EXPECT_EQ(single.topology.hosts, 2u);
  EXPECT_EQ(single.topology.t0, 2u);
  EXPECT_EQ(single.topology.t1, 8u);
  EXPECT_EQ(single.topology.planes, 2u);
  EXPECT_EQ(single.loss, 0);
  EXPECT_TRUE(single.faults.empty());
  EXPECT_EQ(single.workload.name, "pair");
}

TEST(Ideal, HasTheRoundTripOfTheWholeFabric) {
  SimConfig config = sample_config();
  for (const fabric::TopologySpec& spec :
       {fabric::TopologySpec{.hosts = 16, .t0 = 1, .t1 = 4},
        fabric::TopologySpec{.hosts = 16, .t0 = 4, .t1 = 4},
        fabric::TopologySpec{.hosts = 16, .t0 = 8, .t1 = 8, .pods = 4, .t2 = 4}}) {
    config.topology = spec;
    const SimConfig single = alone(config, 1'000);
    EXPECT_EQ(longest_base_rtt(config, fabric::Topology(spec)),
              longest_base_rtt(single, fabric::Topology(single.topology)));
  }
}

TEST(Ideal, IsTheTimeOfAPairOnTheWholeFabric) {
  SimConfig config = sample_config();
  config.loss = 0;
  config.faults.clear();
  config.workload.name = "pair";
  config.workload.bytes = 1'000'000;
  const IdealTimes ideal(config, {1'000'000});
  EXPECT_NEAR(ideal.us(1'000'000), run_us(config), 0.01 * run_us(config));
}

TEST(Ideal, LiesBetweenTheSizesThatWereRun) {
  const SimConfig config = sample_config();
  const IdealTimes ideal(config, {100'000, 1'000'000});
  const double between = run_us(alone(config, 500'000));
  EXPECT_NEAR(ideal.us(500'000), between, 0.02 * between);
  EXPECT_LT(ideal.us(100'000), ideal.us(500'000));
  EXPECT_LT(ideal.us(500'000), ideal.us(1'000'000));
}

TEST(Ideal, RunsOnlySomeOfManySizes) {
  const SimConfig config = sample_config();
  std::vector<std::uint64_t> sizes;
  for (std::uint64_t i = 1; i <= 100; ++i)
    sizes.push_back(i * 10'000);
  const IdealTimes ideal(config, sizes);
  const double exact = run_us(alone(config, 570'000));
  EXPECT_NEAR(ideal.us(570'000), exact, 0.02 * exact);
}

TEST(Ideal, CountsAllConnectionsOfAPair) {
  SimConfig config = sample_config();
  const IdealTimes one(config, {1'000'000});
  config.workload.connections = 4;
  const IdealTimes four(config, {250'000});
  EXPECT_NEAR(four.us(250'000), one.us(1'000'000), 0.05 * one.us(1'000'000));
}

}  // namespace
}  // namespace mrc::sim
