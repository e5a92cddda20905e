#include "sim/workload.h"

#include <gtest/gtest.h>

#include <fstream>
#include <map>
#include <string>
#include <vector>

#include "fabric/input_error.h"

namespace mrc::sim {
namespace {

using fabric::InputError;
using fabric::Topology;

Topology fabric_of(unsigned hosts, unsigned t0 = 4) {
  return Topology({.planes = 1, .hosts = hosts, .t0 = t0, .t1 = 2});
}

WorkloadSpec spec_of(const std::string& name, std::uint64_t bytes = 1'000'003) {
  WorkloadSpec spec;
  spec.name = name;
  spec.bytes = bytes;
  return spec;
}

struct Sums {
  std::vector<std::uint64_t> sent;
  std::vector<std::uint64_t> received;
  std::size_t transfers = 0;
  std::size_t computations = 0;
};

Sums sums_of(const Workload& workload, unsigned hosts) {
  Sums sums{std::vector<std::uint64_t>(hosts), std::vector<std::uint64_t>(hosts)};
  for (const Task& task : workload.tasks) {
    ++(task.kind == Task::Kind::kTransfer ? sums.transfers : sums.computations);
    sums.sent[task.source] += task.bytes;
    sums.received[task.destination] += task.bytes;
  }
  return sums;
}

// Runs the graph without a network. Counts the tasks that can be reached, which are all of them
// when there is no cycle, and how many rounds that takes.
struct Walk {
  std::size_t reached = 0;
  unsigned rounds = 0;
};

Walk walk(const Workload& workload) {
  std::vector<std::uint32_t> waits;
  std::vector<TaskId> ready;
  for (TaskId id = 0; id < workload.tasks.size(); ++id) {
    waits.push_back(workload.tasks[id].waits);
    if (waits[id] == 0) ready.push_back(id);
  }
  Walk result;
  while (!ready.empty()) {
    ++result.rounds;
    result.reached += ready.size();
    std::vector<TaskId> next;
    for (const TaskId id : ready) {
      const Task& task = workload.tasks[id];
      for (std::uint32_t i = 0; i < task.dependent_count; ++i) {
        const TaskId later = workload.dependents[task.first_dependent + i];
        if (--waits[later] == 0) next.push_back(later);
      }
    }
    ready = std::move(next);
  }
  return result;
}

std::string why_not(const WorkloadSpec& spec, const Topology& topology) {
  try {
    make_workload(spec, topology);
  } catch (const InputError& error) {
    return error.what();
  }
  return "accepted";
}

class EveryWorkload : public ::testing::TestWithParam<std::string> {};

TEST_P(EveryWorkload, HasNoCycleAndNoEmptyTransfer) {
  for (const unsigned connections : {1u, 3u}) {
    WorkloadSpec spec = spec_of(GetParam());
    spec.connections = connections;
    spec.steps = 3;
    const Workload workload = make_workload(spec, fabric_of(16));
    EXPECT_EQ(walk(workload).reached, workload.tasks.size());
    for (const Task& task : workload.tasks) {
      if (task.kind != Task::Kind::kTransfer) continue;
      EXPECT_GT(task.bytes, 0u);
      EXPECT_NE(task.source, task.destination);
      EXPECT_LT(task.connection, connections);
    }
  }
}

TEST_P(EveryWorkload, MovesTheSameBytesOverAnyNumberOfConnections) {
  WorkloadSpec spec = spec_of(GetParam());
  spec.steps = 2;
  const Sums one = sums_of(make_workload(spec, fabric_of(12)), 12);
  spec.connections = 4;
  const Sums four = sums_of(make_workload(spec, fabric_of(12)), 12);
  EXPECT_EQ(one.sent, four.sent);
  EXPECT_EQ(one.received, four.received);
  EXPECT_EQ(four.transfers, 4 * one.transfers);
}

TEST_P(EveryWorkload, OneSeedMakesOneWorkload) {
  WorkloadSpec spec = spec_of(GetParam());
  spec.placement = Placement::kShuffled;
  const Workload a = make_workload(spec, fabric_of(16));
  const Workload b = make_workload(spec, fabric_of(16));
  ASSERT_EQ(a.tasks.size(), b.tasks.size());
  EXPECT_EQ(a.dependents, b.dependents);
  for (std::size_t i = 0; i < a.tasks.size(); ++i) {
    EXPECT_EQ(a.tasks[i].source, b.tasks[i].source);
    EXPECT_EQ(a.tasks[i].destination, b.tasks[i].destination);
  }
}

std::string test_name(const ::testing::TestParamInfo<std::string>& info) {
  std::string name = info.param;
  std::erase(name, '-');
  return name;
}

INSTANTIATE_TEST_SUITE_P(Workload, EveryWorkload,
                         ::testing::Values("pair", "permutation", "incast", "all-to-all",
                                           "ring-all-reduce", "tree-all-reduce", "reduce-scatter",
                                           "all-gather", "training"),
                         test_name);

TEST(Workload, NamesAllGenerators) {
  const std::vector<std::string> names = workload_names();
  EXPECT_EQ(names.size(), 13u);
  EXPECT_EQ(why_not(spec_of("gossip"), fabric_of(8)).find("workload: 'gossip' is unknown; there "),
            0u);
}

TEST(Workload, PermutationGivesEveryHostOneSenderAndOneReceiver) {
  const Sums sums = sums_of(make_workload(spec_of("permutation", 500), fabric_of(16)), 16);
  EXPECT_EQ(sums.sent, std::vector<std::uint64_t>(16, 500));
  EXPECT_EQ(sums.received, std::vector<std::uint64_t>(16, 500));
}

TEST(Workload, PermutationKeepsToTheRanksGiven) {
  WorkloadSpec spec = spec_of("permutation", 500);
  spec.ranks = {1, 5, 9};
  const Sums sums = sums_of(make_workload(spec, fabric_of(16)), 16);
  EXPECT_EQ(sums.transfers, 3u);
  EXPECT_EQ(sums.sent[5], 500u);
  EXPECT_EQ(sums.received[9], 500u);
  EXPECT_EQ(sums.sent[0], 0u);
}

TEST(Workload, RingAllReducePassesEachChunkAroundTwice) {
  const unsigned ranks = 8;
  const std::uint64_t bytes = 800'000;
  WorkloadSpec spec = spec_of("ring-all-reduce", bytes);
  spec.slices = 1;
  const Workload workload = make_workload(spec, fabric_of(ranks));
  const Sums sums = sums_of(workload, ranks);
  EXPECT_EQ(sums.transfers, ranks * 2 * (ranks - 1));
  EXPECT_EQ(sums.computations, 0u);
  EXPECT_EQ(sums.sent, std::vector<std::uint64_t>(ranks, bytes * 2 * (ranks - 1) / ranks));
  EXPECT_EQ(sums.received, sums.sent);
  EXPECT_EQ(walk(workload).rounds, 2 * (ranks - 1));
  EXPECT_EQ(workload.ranks, ranks);
  EXPECT_DOUBLE_EQ(workload.bus_factor, 1.75);
}

TEST(Workload, RingChunksAreSplitIntoSlicesThatDoNotWaitForEachOther) {
  WorkloadSpec spec = spec_of("ring-all-reduce", 800'000);
  spec.slices = 5;
  const Workload workload = make_workload(spec, fabric_of(8));
  EXPECT_EQ(workload.tasks.size(), 5u * 8 * 14);
  EXPECT_EQ(walk(workload).rounds, 14u);
  spec.slices = 0;
  spec.bytes = 8 * 131'072 * 3;  // by itself: pieces of 128 KiB
  EXPECT_EQ(make_workload(spec, fabric_of(8)).tasks.size(), 3u * 8 * 14);
  spec.bytes = 8 * 131'072 * 100;
  EXPECT_EQ(make_workload(spec, fabric_of(8)).tasks.size(), 8u * 8 * 14);
}

TEST(Workload, ReduceScatterAndAllGatherAreHalfAnAllReduce) {
  for (const char* name : {"reduce-scatter", "all-gather"}) {
    const Workload workload = make_workload(spec_of(name, 800'000), fabric_of(8));
    EXPECT_EQ(sums_of(workload, 8).sent, std::vector<std::uint64_t>(8, 700'000));
    EXPECT_EQ(walk(workload).rounds, 7u);
    EXPECT_DOUBLE_EQ(workload.bus_factor, 0.875);
  }
}

TEST(Workload, RingSendsOnlyWhatItHasReceived) {
  WorkloadSpec spec = spec_of("ring-all-reduce", 80'000);
  const Workload workload = make_workload(spec, fabric_of(8));
  for (TaskId id = 0; id < workload.tasks.size(); ++id) {
    const Task& task = workload.tasks[id];
    for (std::uint32_t i = 0; i < task.dependent_count; ++i) {
      const Task& later = workload.tasks[workload.dependents[task.first_dependent + i]];
      EXPECT_EQ(later.source, task.destination);
      EXPECT_EQ(later.bytes, task.bytes);
    }
  }
}

TEST(Workload, TreeAllReduceBringsEveryRankTheSum) {
  for (const unsigned ranks : {2u, 3u, 7u, 16u}) {
    WorkloadSpec spec = spec_of("tree-all-reduce", 1'000'000);
    spec.slices = 4;
    const Workload workload = make_workload(spec, fabric_of(ranks, 1));
    const Sums sums = sums_of(workload, ranks);
    EXPECT_EQ(sums.transfers, 2u * 4 * 2 * (ranks - 1));
    for (unsigned r = 0; r < ranks; ++r) {
      // A leaf of both trees receives each half once; nobody is an inner node of both.
      EXPECT_GE(sums.received[r], 500'000u);
      EXPECT_LE(sums.received[r], 2'000'000u);
      EXPECT_LE(sums.sent[r], 2'000'000u);
    }
    EXPECT_EQ(walk(workload).reached, workload.tasks.size());
  }
}

TEST(Workload, TreeTurnsAroundAtTheRoot) {
  WorkloadSpec spec = spec_of("tree-all-reduce", 1'000);
  const Workload workload = make_workload(spec, fabric_of(16));
  // 16 nodes in a heap: leaves are four levels below the root; up and down again.
  EXPECT_EQ(walk(workload).rounds, 8u);
}

TEST(Workload, AllToAllSendsEachPairItsShare) {
  const unsigned ranks = 12;
  const Workload workload = make_workload(spec_of("all-to-all", 12'000), fabric_of(ranks));
  std::map<std::pair<std::uint32_t, std::uint32_t>, std::uint64_t> pairs;
  for (const Task& task : workload.tasks)
    pairs[{task.source, task.destination}] += task.bytes;
  EXPECT_EQ(pairs.size(), ranks * (ranks - 1));
  for (const auto& [pair, bytes] : pairs)
    EXPECT_EQ(bytes, 1'000u);
  EXPECT_DOUBLE_EQ(workload.bus_factor, 11.0 / 12);
}

TEST(Workload, AllToAllKeepsToItsWindow) {
  WorkloadSpec spec = spec_of("all-to-all", 12'000);
  spec.window = 4;
  EXPECT_EQ(walk(make_workload(spec, fabric_of(12))).rounds, 3u);
  spec.window = 0;
  EXPECT_EQ(walk(make_workload(spec, fabric_of(12))).rounds, 1u);
}

TEST(Workload, StridedPlacementPutsNeighboursIntoDifferentRacks) {
  const Topology topology = fabric_of(16);
  WorkloadSpec spec = spec_of("ring-all-reduce");
  spec.placement = Placement::kStrided;
  for (const Task& task : make_workload(spec, topology).tasks)
    EXPECT_NE(topology.t0_of(task.source), topology.t0_of(task.destination));
}

TEST(Workload, ShuffledPlacementFollowsTheSeed) {
  WorkloadSpec spec = spec_of("ring-all-reduce");
  spec.placement = Placement::kShuffled;
  const auto first_targets = [&](std::uint64_t seed) {
    spec.seed = seed;
    std::map<std::uint32_t, std::uint32_t> targets;
    for (const Task& task : make_workload(spec, fabric_of(16)).tasks)
      targets[task.source] = task.destination;
    return targets;
  };
  EXPECT_EQ(first_targets(3), first_targets(3));
  EXPECT_NE(first_targets(3), first_targets(4));
  EXPECT_EQ(first_targets(4).size(), 16u);
}

TEST(Workload, TrainingComputesAndReducesEveryStep) {
  WorkloadSpec spec = spec_of("training", 640'000);
  spec.steps = 3;
  spec.buckets = 2;
  spec.compute_ps = 90'000'000;
  const Workload workload = make_workload(spec, fabric_of(8));
  EXPECT_EQ(workload.steps, 3u);
  EXPECT_EQ(sums_of(workload, 8).sent, std::vector<std::uint64_t>(8, 3u * 640'000 * 14 / 8));
  std::vector<Time> computed(3 * 8);
  for (const Task& task : workload.tasks)
    if (task.kind == Task::Kind::kCompute) computed[task.step * 8 + task.source] += task.delay;
  EXPECT_EQ(computed, std::vector<Time>(3 * 8, 90'000'000));
}

TEST(Workload, PlacementsHaveNames) {
  for (const char* name : {"linear", "strided", "shuffled"})
    EXPECT_STREQ(placement_name(parse_placement(name)), name);
  EXPECT_THROW(parse_placement("anywhere"), InputError);
}

TEST(Workload, BusBandwidthIsThatOfThePorts) {
  Workload workload;
  workload.bytes = 1'000'000;
  workload.bus_factor = 1.5;
  EXPECT_DOUBLE_EQ(algorithm_gbps(workload, 20'000'000), 400);
  EXPECT_DOUBLE_EQ(bus_gbps(workload, 20'000'000), 600);
}

TEST(Workload, RefusesWhatCannotBeRun) {
  WorkloadSpec spec = spec_of("ring-all-reduce", 7);
  EXPECT_EQ(why_not(spec, fabric_of(8)),
            "workload: ring-all-reduce needs at least 8 bytes here, one per piece, not 7");
  spec = spec_of("all-to-all");
  spec.ranks = {3, 17};
  EXPECT_EQ(why_not(spec, fabric_of(16)), "workload: rank on host 17, but there are only 16");
  spec.ranks = {3, 3};
  EXPECT_EQ(why_not(spec, fabric_of(16)), "workload: two ranks on host 3");
  spec.ranks = {3};
  EXPECT_EQ(why_not(spec, fabric_of(16)), "workload: at least two ranks are needed");
  spec = spec_of("pair");
  spec.destination = 16;
  EXPECT_EQ(why_not(spec, fabric_of(16)), "workload: there is no host 16, the last is 15");
  spec = spec_of("incast");
  spec.senders = 16;
  EXPECT_EQ(why_not(spec, fabric_of(16)),
            "workload: an incast on this fabric has 1 to 15 senders, not 16");
  spec = spec_of("training");
  spec.buckets = 0;
  EXPECT_EQ(why_not(spec, fabric_of(16)), "workload: training needs at least one bucket");
  spec = spec_of("permutation", 2);
  spec.connections = 3;
  EXPECT_EQ(why_not(spec, fabric_of(16)), "workload: bytes must be from 3 to 68719476735");
}

class FlowFile : public ::testing::Test {
 protected:
  FlowFile() : path_(::testing::TempDir() + "mrc_flows.csv") {}
  ~FlowFile() override { std::remove(path_.c_str()); }

  WorkloadSpec write(const std::string& text) {
    std::ofstream(path_) << text;
    WorkloadSpec spec = spec_of("flows");
    spec.file = path_;
    return spec;
  }
  // Without the name of the file.
  std::string complaint(const std::string& text) {
    return why_not(write(text), fabric_of(8)).substr(path_.size());
  }

  std::string path_;
};

TEST_F(FlowFile, EveryLineIsAFlow) {
  WorkloadSpec spec = write(
      "source,destination,bytes,start_us,connection\n"
      "# a comment\n"
      "0,1,1000\n"
      "\n"
      " 2 , 3 , 2000 , 1.5 \r\n"
      "4,5,3000,0,7\n"
      "6,7,4000,,2");
  const Workload workload = make_workload(spec, fabric_of(8));
  ASSERT_EQ(workload.tasks.size(), 4u);
  EXPECT_EQ(workload.tasks[0].bytes, 1'000u);
  EXPECT_EQ(workload.tasks[1].source, 2u);
  EXPECT_EQ(workload.tasks[1].destination, 3u);
  EXPECT_EQ(workload.tasks[1].delay, 1'500'000);
  EXPECT_EQ(workload.tasks[2].connection, 7u);
  EXPECT_EQ(workload.tasks[3].connection, 2u);
  EXPECT_EQ(workload.tasks[3].delay, 0);
}

TEST_F(FlowFile, TheColumnsMayBeNamedOnceBelowAComment) {
  EXPECT_EQ(make_workload(write("# flows\n\nsource,destination,bytes\n0,1,10\n"), fabric_of(8))
                .tasks.size(),
            1u);
  EXPECT_EQ(complaint("source,destination,bytes\nsource,destination,bytes\n"),
            ":2: source 'source' is not a whole number from 0 to 7");
}

TEST_F(FlowFile, ConnectionsSplitFlowsThatNameNone) {
  WorkloadSpec spec = write("0,1,1000,2\n2,3,1000,2,5\n");
  spec.connections = 4;
  const Workload workload = make_workload(spec, fabric_of(8));
  ASSERT_EQ(workload.tasks.size(), 5u);
  EXPECT_EQ(workload.tasks[3].bytes, 250u);
  EXPECT_EQ(workload.tasks[3].delay, 2'000'000);
  EXPECT_EQ(workload.tasks[4].bytes, 1'000u);
}

TEST_F(FlowFile, BadLinesAreNamed) {
  EXPECT_EQ(complaint("0,1,10\n0,1\n"),
            ":2: a flow is source,destination,bytes[,start_us[,connection]]");
  EXPECT_EQ(complaint("0,8,10\n"), ":1: destination '8' is not a whole number from 0 to 7");
  EXPECT_EQ(complaint("-1,2,10\n"), ":1: source '-1' is not a whole number from 0 to 7");
  EXPECT_EQ(complaint("\n\n3,3,10\n"), ":3: source and destination are the same host");
  EXPECT_EQ(complaint("0,1,0\n"), ":1: bytes '0' is not a whole number from 1 to 68719476735");
  EXPECT_EQ(complaint("0,1,10,soon\n"), ":1: start_us 'soon' is not a time in microseconds");
  EXPECT_EQ(complaint("0,1,10,0,4096\n"),
            ":1: connection '4096' is not a whole number from 0 to 1023");
  EXPECT_EQ(complaint("0,1,10,0,1,1\n"),
            ":1: a flow is source,destination,bytes[,start_us[,connection]]");
  EXPECT_EQ(complaint("# nothing\n"), ": has no flow");
}

TEST_F(FlowFile, AFileThatIsNotThereIsNamed) {
  WorkloadSpec spec = spec_of("flows");
  EXPECT_EQ(why_not(spec, fabric_of(8)), "workload: flows come from a file, and none is given");
  spec.file = path_ + ".absent";
  EXPECT_EQ(why_not(spec, fabric_of(8)), spec.file + ": cannot be read");
}

}  // namespace
}  // namespace mrc::sim
