// Several cables between a T0 and a T1 are worth as much as that many T1s with one cable each.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "sim/simulation.h"

namespace mrc::sim {
namespace {

struct Times {
  std::vector<Time> sent;  // of each flow
  std::uint64_t packets = 0;
  std::uint64_t resent = 0;
  friend bool operator==(const Times&, const Times&) = default;
};

Times run(unsigned t1, unsigned cables, const std::vector<const char*>& faults) {
  SimConfig config;
  config.topology = {.planes = 2, .hosts = 16, .t0 = 4, .t1 = t1, .cables = cables};
  config.workload.name = "permutation";
  config.workload.bytes = 500'000;
  for (const char* fault : faults)
    config.faults.emplace_back(fault);
  Simulation simulation(config);
  const SimResult result = simulation.run();
  EXPECT_TRUE(result.complete);
  Times times{.sent = {}, .packets = result.hosts.data_packets, .resent = result.hosts.retransmits};
  for (const FlowResult& flow : result.flows)
    times.sent.push_back(flow.sent);
  return times;
}

// Flow by flow and packet by packet: only the numbers of links differ.
TEST(ParallelCables, CarryWhatAsManySwitchesWould) { EXPECT_EQ(run(2, 3, {}), run(6, 1, {})); }

TEST(ParallelCables, OneThatIsCutIsASwitchLessForOneT0) {
  const Times bundle = run(2, 3, {"t0:1/t1:1/cable:2/plane:0 down @6us"});
  EXPECT_EQ(bundle, run(6, 1, {"t0:1/t1:5/plane:0 down @6us"}));
  EXPECT_GT(bundle.resent, 0u);
}

TEST(ParallelCables, ASwitchThatFailsTakesAllOfItsOwn) {
  EXPECT_EQ(
      run(2, 3, {"t1:1/plane:0 down @6us"}),
      run(6, 1, {"t1:3/plane:0 down @6us", "t1:4/plane:0 down @6us", "t1:5/plane:0 down @6us"}));
}

}  // namespace
}  // namespace mrc::sim
