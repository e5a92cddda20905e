// The RoCEv2 baseline in whole simulations.

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "fabric/input_error.h"
#include "sim/simulation.h"

namespace mrc::sim {
namespace {

constexpr Time kUs = 1'000'000;

SimConfig roce(const std::string& workload, std::uint64_t bytes) {
  SimConfig config;
  config.transport = Transport::kRoce;
  config.topology = {.planes = 1, .hosts = 32, .t0 = 4, .t1 = 8};
  config.workload.name = workload;
  config.workload.bytes = bytes;
  return config;
}

struct Outcome {
  SimResult result;
  std::vector<double> times_us;  // of every flow but the victim, sorted
  double victim_us = 0;
};

Outcome run(const SimConfig& config) {
  Simulation simulation(config);
  Outcome out;
  out.result = simulation.run();
  const std::vector<Task>& tasks = simulation.workload().tasks;
  for (TaskId id = 0; id < tasks.size(); ++id) {
    const FlowResult& flow = out.result.flows[id];
    const double us = static_cast<double>(flow.sent - flow.posted) / 1e6;
    if (tasks[id].victim)
      out.victim_us = us;
    else
      out.times_us.push_back(us);
  }
  std::sort(out.times_us.begin(), out.times_us.end());
  EXPECT_EQ(out.result.bytes_wrong, 0u);
  return out;
}

double gbps(double bytes, double us) { return bytes * 8 / us / 1e3; }

TEST(RoceSimulation, APairSendsAtLineRate) {
  SimConfig config = roce("pair", 40'000'000);
  const Outcome out = run(config);
  ASSERT_TRUE(out.result.complete);
  // 4096 of 4178 bytes are payload; one round trip is lost at the end.
  const double payload = 400.0 * 4096 / 4178;
  EXPECT_GT(gbps(40e6, out.times_us[0]), payload * 0.985);
  EXPECT_LT(gbps(40e6, out.times_us[0]), payload);
  EXPECT_EQ(out.result.network.marks, 0u);
  EXPECT_EQ(out.result.hosts.retransmits, 0u);
  // ACKs are coalesced.
  EXPECT_LT(out.result.hosts.control_packets * 15, out.result.hosts.data_packets);
}

TEST(RoceSimulation, TheFirstFlowTakesAsLongAsTheWireSays) {
  SimConfig config = roce("pair", 4096);
  const Outcome out = run(config);
  // Four store-and-forward hops of 4194 bytes and four of an 86-byte ACK, eight flights of 1 us.
  const double wire_ns = 4 * (4194 + 86) * 8 / 400.0;
  EXPECT_NEAR(out.times_us[0], 8 + wire_ns / 1e3, 0.001);
}

TEST(RoceSimulation, CarriesTheRightBytesForEveryKindOfMessage) {
  for (const char* workload : {"permutation", "all-to-all", "ring-all-reduce"}) {
    for (const double loss : {0.0, 0.01}) {
      SimConfig config = roce(workload, 100'001);
      config.topology = {.planes = 2, .hosts = 8, .t0 = 4, .t1 = 2};
      config.workload.connections = 2;
      config.verify = true;
      config.loss = loss;
      const Outcome out = run(config);
      EXPECT_TRUE(out.result.complete) << workload;
      EXPECT_EQ(out.result.hosts.retransmits > 0, loss > 0) << workload;
    }
  }
}

TEST(RoceSimulation, PermutationFlowsCollideOnTheirPaths) {
  const Outcome out = run(roce("permutation", 2'000'000));
  ASSERT_TRUE(out.result.complete);
  EXPECT_EQ(out.result.network.dropped_full, 0u);
  // Some have their path for themselves, some share it with one or more others.
  EXPECT_LT(out.times_us.front(), 50);
  EXPECT_GT(out.times_us.back(), 2 * out.times_us.front() - 10);
  EXPECT_GT(
      std::count_if(out.times_us.begin(), out.times_us.end(), [](double us) { return us > 80; }),
      4);
}

TEST(RoceSimulation, MoreQueuePairsPerTransferCollideLess) {
  SimConfig config = roce("permutation", 2'000'000);
  const double one = run(config).times_us.back();
  config.workload.connections = 8;
  const double eight = run(config).times_us.back();
  EXPECT_LT(eight, one * 0.75);
}

TEST(RoceSimulation, IncastWithPfcDropsNothingAndFillsTheLink) {
  SimConfig config = roce("incast", 4'000'000);
  config.workload.senders = 8;
  const Outcome out = run(config);
  ASSERT_TRUE(out.result.complete);
  EXPECT_EQ(out.result.network.drops(), 0u);
  EXPECT_EQ(out.result.hosts.retransmits, 0u);
  EXPECT_GT(out.result.network.pauses, 0u);
  EXPECT_GT(out.result.network.marks, 0u);
  const double payload = 400.0 * 4096 / 4178;
  EXPECT_GT(gbps(8 * 4e6, out.times_us.back()), payload * 0.95);
  EXPECT_GT(out.times_us.front(), out.times_us.back() * 0.5) << "fair within reason";
}

TEST(RoceSimulation, IncastWithoutPfcRecoversByGoingBack) {
  SimConfig config = roce("incast", 2'000'000);
  config.workload.senders = 8;
  config.roce.pfc = false;
  const Outcome out = run(config);
  EXPECT_TRUE(out.result.complete);
  EXPECT_EQ(out.result.network.pauses, 0u);
  EXPECT_GT(out.result.network.dropped_full, 0u);
  EXPECT_GT(out.result.hosts.retransmits, out.result.network.dropped_full);
  const double alone = run(roce("pair", 2'000'000)).times_us[0];
  EXPECT_GT(out.times_us.back(), 1.5 * 8 * alone);
}

TEST(RoceSimulation, DcqcnKeepsQueuesShorterThanPfcAlone) {
  SimConfig config = roce("incast", 8'000'000);
  config.workload.senders = 2;
  const Outcome with = run(config);
  config.roce.dcqcn = false;
  const Outcome without = run(config);
  EXPECT_LT(with.result.network.marks * 4, without.result.network.marks);
  EXPECT_LT(with.result.network.pauses, without.result.network.pauses);
  EXPECT_LT(with.times_us.back(), without.times_us.back() * 1.1);
}

TEST(RoceSimulation, AVictimOfAnIncastSuffers) {
  SimConfig config = roce("incast", 4'000'000);
  config.topology = {.planes = 1, .hosts = 32, .t0 = 2, .t1 = 2};
  config.workload.senders = 7;
  config.workload.victim = true;
  const Outcome out = run(config);
  ASSERT_TRUE(out.result.complete);
  SimConfig pair = roce("pair", 4'000'000);
  pair.topology = config.topology;
  EXPECT_GT(out.victim_us, 2 * run(pair).times_us[0]);
}

TEST(RoceSimulation, OnePacketInAThousandLostCostsAWindowEach) {
  SimConfig config = roce("pair", 40'000'000);
  const double clean = run(config).times_us[0];
  config.loss = 0.001;
  const Outcome out = run(config);
  ASSERT_TRUE(out.result.complete);
  EXPECT_GT(out.result.hosts.retransmits, 50 * out.result.network.dropped_loss);
  EXPECT_GT(out.times_us[0], clean * 1.05);
  config.loss = 0.01;
  EXPECT_GT(run(config).times_us[0], clean * 2);
}

TEST(RoceSimulation, CollectivesWaitForTheFewThatRunIntoTheTimeout) {
  SimConfig config = roce("all-to-all", 4'000'000);
  const Outcome clean = run(config);
  config.loss = 0.001;
  const Outcome out = run(config);
  ASSERT_TRUE(out.result.complete);
  EXPECT_LT(out.times_us[out.times_us.size() / 2], 1.5 * clean.times_us[clean.times_us.size() / 2]);
  EXPECT_GT(out.result.finished_at, 5 * clean.result.finished_at);
}

TEST(RoceSimulation, ALostTailWaitsForTheTimeout) {
  SimConfig config = roce("pair", 4096);
  config.loss = 0.2;
  config.roce.timeout = 6;  // 262 us
  std::vector<double> times;
  for (config.seed = 1; config.seed <= 20; ++config.seed) {
    const Outcome out = run(config);
    if (out.result.hosts.timeouts == 1) times.push_back(out.times_us[0]);
  }
  ASSERT_FALSE(times.empty());
  for (const double us : times)
    EXPECT_NEAR(us, 262.144 + 8.35, 0.3);
}

TEST(RoceSimulation, CorruptPacketsCountAsLost) {
  SimConfig config = roce("pair", 4'000'000);
  config.verify = true;
  config.faults = {"host:0 corrupt 1% @0us"};
  const Outcome out = run(config);
  EXPECT_TRUE(out.result.complete);
  EXPECT_GT(out.result.network.corrupted, 0u);
  EXPECT_GT(out.result.hosts.retransmits, 0u);
}

TEST(RoceSimulation, AQueuePairStallsWhileItsPortIsDownAndComesBack) {
  SimConfig config = roce("pair", 8'000'000);
  config.faults = {"host:0 down @50us for 3ms"};
  const Outcome out = run(config);
  ASSERT_TRUE(out.result.complete);
  EXPECT_GT(out.result.hosts.timeouts, 1u);
  EXPECT_GT(out.times_us[0], 3'000);
  EXPECT_LT(out.times_us[0], 5'000);
}

TEST(RoceSimulation, AQueuePairFailsWhenItsOnlyPathStaysDown) {
  SimConfig config = roce("pair", 8'000'000);
  config.faults = {"host:0 down @50us"};
  const Outcome out = run(config);
  EXPECT_EQ(out.result.failed, 1u);
  EXPECT_EQ(out.result.hosts.timeouts, 8u);
  EXPECT_LT(out.result.finished_at, 10'000 * kUs);
}

TEST(RoceSimulation, AMessagePostedToADeadPortFailsToo) {
  SimConfig config = roce("training", 1'000'000);
  config.topology = {.planes = 1, .hosts = 4, .t0 = 2, .t1 = 2};
  config.workload.steps = 1;
  config.faults = {"host:0 down @50us"};  // while it computes
  Simulation simulation(config);
  const SimResult result = simulation.run();
  unsigned sent_by_0 = 0;
  const std::vector<Task>& tasks = simulation.workload().tasks;
  for (TaskId id = 0; id < tasks.size(); ++id) {
    if (tasks[id].kind != Task::Kind::kTransfer || tasks[id].source != 0) continue;
    if (result.flows[id].posted < 0) continue;
    ++sent_by_0;
    EXPECT_TRUE(result.flows[id].failed);
  }
  EXPECT_GT(sent_by_0, 0u);
}

TEST(RoceSimulation, ADeadCableStopsOnlyTheFlowsThatHashToIt) {
  SimConfig config = roce("permutation", 1'000'000);
  config.faults = {"t0:0/t1:3 down @5us"};
  const Outcome out = run(config);
  EXPECT_GT(out.result.failed, 0u);
  EXPECT_LT(out.result.failed, 8u);
  EXPECT_EQ(out.result.failed + out.result.completed, 32u);
  EXPECT_GT(out.result.recovery_us, 1'000) << "packets keep going to the dead cable";
}

TEST(RoceSimulation, AQueuePairUsesOnePlane) {
  SimConfig config = roce("pair", 2'000'000);
  config.topology.planes = 4;
  config.topology.host_link.bits_per_second = 100'000'000'000;
  config.topology.t0_t1_link.bits_per_second = 100'000'000'000;
  const Outcome one = run(config);
  unsigned used = 0;
  for (unsigned plane = 0; plane < 4; ++plane) {
    std::uint64_t bytes = 0;
    for (std::size_t bin = 0; bin < one.result.series.bins(); ++bin)
      bytes += one.result.series.bytes(plane, bin);
    used += bytes > 0 ? 1 : 0;
  }
  EXPECT_EQ(used, 1u);
  EXPECT_GT(one.times_us[0], 160);
}

// Eight uplinks and eight hosts in a rack: parts on paths that the sender hands out in turn load
// all uplinks alike, so that the rack sends at the rate of its ports; hashed ones collide.
TEST(SplitTransport, GivesEachUplinkOfARackTheSameLoad) {
  SimConfig config = roce("permutation", 2'000'000);
  config.roce.split_paths = 8;
  config.workload.connections = 8;
  const Outcome hashed = run(config);
  config.transport = Transport::kSplit;
  const Outcome split = run(config);
  ASSERT_TRUE(split.result.complete && hashed.result.complete);
  EXPECT_LT(split.times_us.back(), 0.85 * hashed.times_us.back());
  const double line_us = 2e6 * (4'178.0 / 4'096) * 8 / 400e3;
  EXPECT_LT(split.times_us.back(), 1.35 * line_us);
}

TEST(SplitTransport, KeepsAPartOnItsPathThroughAFault) {
  SimConfig config = roce("pair", 4'000'000);
  config.transport = Transport::kSplit;
  config.workload.connections = 8;
  config.faults = {"t0:0/t1:0/plane:0 down @10us"};
  const Outcome out = run(config);
  // One part loses its packets, another its answers, which have a path of their own.
  EXPECT_EQ(out.result.completed, 6u);
  EXPECT_EQ(out.result.failed, 2u);
}

TEST(SplitTransport, UsesAllPlanes) {
  SimConfig config = roce("pair", 4'000'000);
  config.topology.planes = 4;
  config.transport = Transport::kSplit;
  config.workload.connections = 4;
  const Outcome out = run(config);
  for (unsigned plane = 0; plane < 4; ++plane) {
    std::uint64_t bytes = 0;
    for (std::size_t bin = 0; bin < out.result.series.bins(); ++bin)
      bytes += out.result.series.bytes(plane, bin);
    EXPECT_EQ(bytes, 1'000'000u) << plane;
  }
}

TEST(RoceSimulation, SameSeedSameTrace) {
  SimConfig config = roce("permutation", 500'000);
  config.loss = 0.001;
  const std::uint64_t hash = run(config).result.trace_hash;
  EXPECT_EQ(run(config).result.trace_hash, hash);
  config.seed = 2;
  EXPECT_NE(run(config).result.trace_hash, hash);
}

TEST(RoceSimulation, RefusesOptionsThatMakeNoSense) {
  const auto refused = [](auto change) {
    SimConfig config = roce("pair", 1'000);
    change(config.roce);
    EXPECT_THROW(Simulation{config}, fabric::InputError);
  };
  refused([](RoceOptions& o) { o.ack_every = 0; });
  refused([](RoceOptions& o) { o.timeout = 32; });
  refused([](RoceOptions& o) { o.ecn_max_probability = 1.5; });
  refused([](RoceOptions& o) { o.ecn_min_bytes = 2'000'000; });
  refused([](RoceOptions& o) { o.rates.stage_period_ps = 0; });
}

}  // namespace
}  // namespace mrc::sim
