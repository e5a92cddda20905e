// Which packet a full queue cuts, in whole simulations.
#include <gtest/gtest.h>

#include "sim/simulation.h"

namespace mrc::sim {
namespace {

// Twelve hosts send to one.
SimConfig incast(fabric::TrimVictim victim) {
  SimConfig config;
  config.topology = {.planes = 1, .hosts = 16, .t0 = 4, .t1 = 4};
  config.workload.name = "incast";
  config.workload.senders = 12;
  config.workload.bytes = 500'000;
  config.trim_victim = victim;
  config.verify = true;
  return config;
}

SimResult run(fabric::TrimVictim victim) {
  Simulation simulation(incast(victim));
  SimResult result = simulation.run();
  EXPECT_TRUE(result.complete);
  EXPECT_EQ(result.bytes_wrong, 0u);
  EXPECT_GT(result.network.trims, 0u);
  return result;
}

// Whoever is cut, every byte arrives; and the setting acts.
TEST(Trimming, CutsTheOneThatComesTheLastOneOrEither) {
  using enum fabric::TrimVictim;
  const std::uint64_t arrival = run(kArrival).trace_hash;
  const std::uint64_t tail = run(kTail).trace_hash;
  const std::uint64_t either = run(kEither).trace_hash;
  EXPECT_NE(arrival, tail);
  EXPECT_NE(arrival, either);
  EXPECT_NE(tail, either);
}

}  // namespace
}  // namespace mrc::sim
