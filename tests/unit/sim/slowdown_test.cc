#include "sim/slowdown.h"

#include <gtest/gtest.h>

#include "sim/simulation.h"

namespace mrc::sim {
namespace {

TEST(Slowdown, IsOverTheSameFlowAloneAndByItsLength) {
  SimConfig config;
  config.topology = {.planes = 1, .hosts = 8, .t0 = 2, .t1 = 2};
  const IdealTimes ideal(config, {5'000, 10'000, 50'000'000});
  WorkloadBuilder builder("poisson");
  SimResult result;
  const auto flow = [&](std::uint64_t bytes, double times_ideal) {
    builder.transfer(0, 7, bytes);
    const Time posted = 1'000'000;
    result.flows.push_back(
        {.posted = posted,
         .sent = posted + static_cast<Time>(ideal.us(bytes) * 1e6 * times_ideal)});
  };
  flow(10'000, 2);
  flow(5'000, 4);
  flow(50'000'000, 1.5);
  flow(50'000'000, 9);
  result.flows.back().failed = true;
  const std::vector<SlowdownClass> classes = slowdown_by_size(builder.build(), result, ideal);
  ASSERT_EQ(classes.size(), 2u);
  EXPECT_EQ(classes[0].up_to_bytes, 10'000u);
  EXPECT_EQ(classes[0].flows, 2u);
  EXPECT_NEAR(classes[0].mean, 3, 1e-4);
  EXPECT_NEAR(classes[0].p99, 4, 1e-4);
  EXPECT_EQ(classes[1].up_to_bytes, 0u);
  EXPECT_EQ(classes[1].flows, 1u);
  EXPECT_NEAR(classes[1].max, 1.5, 1e-4);
}

}  // namespace
}  // namespace mrc::sim
