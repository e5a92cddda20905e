#include "fabric/diagnosis.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <string>

#include "base/prng.h"
#include "fabric_samples.h"

namespace mrc::fabric {
namespace {

using testing::Contains;
using testing::ElementsAre;
using testing::IsEmpty;
using testing::Not;
using testing::UnorderedElementsAre;
using testing::UnorderedElementsAreArray;

constexpr unsigned kProbes = 500;

// Four hosts at two T0s, four T1s, two planes: the fabric of the system tests.
TopologySpec small() { return {.planes = 2, .hosts = 4, .t0 = 2, .t1 = 4}; }

using Losses = std::map<std::string, double>;  // of one crossing, by part

double answered_share(const Topology& topology, const Loop& loop, const Losses& losses) {
  double share = 1;
  for (const Crossing& crossing : crossings(topology, loop)) {
    const auto found = losses.find(part_name(crossing.part));
    if (found != losses.end()) share *= std::pow(1 - found->second, crossing.times);
  }
  return share;
}

// What is to be expected, to the nearest probe.
std::vector<LoopResult> expected(const Topology& topology, const std::vector<unsigned>& hosts,
                                 const Losses& losses) {
  std::vector<LoopResult> results;
  for (const unsigned host : hosts) {
    for (const Loop& loop : loops_of(topology, host, true)) {
      const double share = answered_share(topology, loop, losses);
      results.push_back({loop, kProbes, static_cast<std::uint64_t>(std::lround(kProbes * share))});
    }
  }
  return results;
}

std::vector<unsigned> all_hosts(const Topology& topology) {
  std::vector<unsigned> hosts;
  for (unsigned host = 0; host < topology.hosts(); ++host)
    hosts.push_back(host);
  return hosts;
}

std::vector<std::string> names(const Diagnosis& diagnosis) {
  std::vector<std::string> list;
  for (const Finding& finding : diagnosis.findings)
    list.push_back(part_name(finding.part));
  return list;
}

std::vector<std::string> found(const TopologySpec& spec, const Losses& losses) {
  const Topology topology(spec);
  return names(diagnose(topology, expected(topology, all_hosts(topology), losses)));
}

TEST(Diagnosis, FindsNothingWhereNothingIsLost) {
  for (const TopologySpec& spec : sample_fabrics())
    EXPECT_THAT(found(spec, {}), IsEmpty());
}

TEST(Diagnosis, NamesTheOneBrokenPart) {
  for (const char* part : {"t0:0/t1:2/plane:1", "t1:3/plane:0", "host:2/plane:1", "t0:1/plane:0"}) {
    const Topology topology(small());
    const Diagnosis diagnosis =
        diagnose(topology, expected(topology, all_hosts(topology), {{part, 1.0}}));
    ASSERT_THAT(names(diagnosis), ElementsAre(part));
    EXPECT_TRUE(diagnosis.findings[0].down());
    EXPECT_THAT(diagnosis.findings[0].or_else, IsEmpty());
  }
}

TEST(Diagnosis, NamesEveryPartOfThreeTiers) {
  for (const char* part : {"t0:4/t1:3/plane:0", "t1:3/t2:0/plane:0", "t2:7/plane:0", "t1:5/plane:0",
                           "host:23/plane:0"}) {
    EXPECT_THAT(found(three_tier(), {{part, 1.0}}), ElementsAre(part));
    EXPECT_THAT(found(three_tier(), {{part, 0.02}}), ElementsAre(part));
  }
}

TEST(Diagnosis, NamesOneOfSeveralCablesOrTheirSwitch) {
  const TopologySpec bundles{.planes = 1, .hosts = 8, .t0 = 2, .t1 = 2, .cables = 4};
  for (const char* part : {"t0:1/t1:0/cable:3/plane:0", "t1:1/plane:0", "host:7/plane:0"}) {
    EXPECT_THAT(found(bundles, {{part, 1.0}}), ElementsAre(part));
    EXPECT_THAT(found(bundles, {{part, 0.02}}), ElementsAre(part));
  }
}

TEST(Diagnosis, AllOfSeveralCablesAreNoAlternativesToEachOther) {
  const Topology topology({.planes = 2, .hosts = 4, .t0 = 2, .t1 = 2, .cables = 3});
  const std::vector<std::string> cables = {"t0:0/t1:0/cable:0/plane:0", "t0:0/t1:0/cable:1/plane:0",
                                           "t0:0/t1:0/cable:2/plane:0"};
  Losses losses;
  for (const std::string& cable : cables)
    losses[cable] = 1.0;
  const Diagnosis diagnosis = diagnose(topology, expected(topology, all_hosts(topology), losses));
  EXPECT_THAT(names(diagnosis), UnorderedElementsAreArray(cables));
  for (const Finding& finding : diagnosis.findings) {
    for (const Part& other : finding.or_else)
      EXPECT_THAT(names(diagnosis), Not(Contains(part_name(other)))) << part_name(finding.part);
  }
}

TEST(Diagnosis, NamesSeveralFaultsAtOnce) {
  EXPECT_THAT(found(small(), {{"t0:0/t1:2/plane:1", 1.0},
                              {"t1:0/plane:1", 1.0},
                              {"host:3/plane:0", 1.0},
                              {"t0:1/t1:1/plane:0", 0.01}}),
              UnorderedElementsAre("t0:0/t1:2/plane:1", "t1:0/plane:1", "host:3/plane:0",
                                   "t0:1/t1:1/plane:0"));
}

TEST(Diagnosis, TwoGreyCablesInARowAreTwo) {
  EXPECT_THAT(found(small(), {{"host:0/plane:0", 0.02}, {"t0:0/t1:1/plane:0", 0.03}}),
              UnorderedElementsAre("host:0/plane:0", "t0:0/t1:1/plane:0"));
}

TEST(Diagnosis, AllCablesOfAT1ButOneAreCablesAndNotTheT1) {
  const TopologySpec spec{.planes = 1, .hosts = 8, .t0 = 4, .t1 = 2};
  EXPECT_THAT(
      found(spec,
            {{"t0:0/t1:1/plane:0", 1.0}, {"t0:1/t1:1/plane:0", 1.0}, {"t0:2/t1:1/plane:0", 1.0}}),
      UnorderedElementsAre("t0:0/t1:1/plane:0", "t0:1/t1:1/plane:0", "t0:2/t1:1/plane:0"));
}

TEST(Diagnosis, EstimatesTheLossOfAGreyCable) {
  const Topology topology(small());
  const Diagnosis diagnosis =
      diagnose(topology, expected(topology, all_hosts(topology), {{"t0:0/t1:2/plane:1", 0.01}}));
  ASSERT_THAT(names(diagnosis), ElementsAre("t0:0/t1:2/plane:1"));
  const Finding& grey = diagnosis.findings[0];
  EXPECT_FALSE(grey.down());
  EXPECT_NEAR(grey.loss, 0.01, 0.0005);
  EXPECT_GT(grey.loss_low, 0.004);
  EXPECT_LT(grey.loss_low, grey.loss);
  EXPECT_GT(grey.loss_high, grey.loss);
  EXPECT_LT(grey.loss_high, 0.02);
}

TEST(Diagnosis, OneWitnessNamesTheCableAndSaysWhatElseItMayBe) {
  const Topology topology(small());
  Diagnosis diagnosis = diagnose(topology, expected(topology, {0}, {{"t1:2/plane:1", 1.0}}));
  ASSERT_THAT(names(diagnosis), ElementsAre("t0:0/t1:2/plane:1"));
  ASSERT_EQ(diagnosis.findings[0].or_else.size(), 1u);
  EXPECT_EQ(part_name(diagnosis.findings[0].or_else[0]), "t1:2/plane:1");

  diagnosis = diagnose(topology, expected(topology, {0}, {{"t0:0/plane:1", 1.0}}));
  ASSERT_THAT(names(diagnosis), ElementsAre("host:0/plane:1"));
  ASSERT_EQ(diagnosis.findings[0].or_else.size(), 1u);
  EXPECT_EQ(part_name(diagnosis.findings[0].or_else[0]), "t0:0/plane:1");
}

TEST(Diagnosis, WhatLiesBehindAFaultIsUnseenAndNotAccused) {
  const Topology topology(small());
  const Diagnosis diagnosis =
      diagnose(topology, expected(topology, {0, 1}, {{"t0:0/plane:1", 1.0}}));
  ASSERT_THAT(names(diagnosis), ElementsAre("t0:0/plane:1"));
  // Two host cables, four cables to T1s, four T1s.
  EXPECT_EQ(diagnosis.unseen.size(), 10u);
  EXPECT_EQ(diagnosis.seen.size(), 11u);
}

// Drawn probe by probe: 1 % of loss anywhere is found, and nothing else is.
TEST(Diagnosis, HoldsAgainstChance) {
  const Topology topology(small());
  const std::vector<std::string> parts = {"t0:0/t1:2/plane:1", "t0:1/t1:0/plane:0",
                                          "host:1/plane:0", "t1:3/plane:1", "none"};
  Prng prng(7);
  for (unsigned run = 0; run < 200; ++run) {
    const std::string& part = parts[run % parts.size()];
    std::vector<LoopResult> results = expected(topology, all_hosts(topology), {});
    for (LoopResult& result : results) {
      // Beside the fault a little chance loss, as on any network.
      const double share = answered_share(topology, result.loop, {{part, 0.01}}) * (1 - 2e-5);
      result.answered = 0;
      for (unsigned probe = 0; probe < kProbes; ++probe)
        result.answered += prng.next32() < share * 0x1p32 ? 1 : 0;
    }
    const Diagnosis diagnosis = diagnose(topology, results);
    if (part == "none") {
      EXPECT_THAT(names(diagnosis), IsEmpty()) << run;
    } else {
      EXPECT_THAT(names(diagnosis), ElementsAre(part)) << run;
    }
  }
}

TEST(Diagnosis, WithoutResultsThereIsNothingToSay) {
  const Topology topology(small());
  const std::vector<LoopResult> unsent = {{.loop = {.host = 0}}};
  const Diagnosis diagnosis = diagnose(topology, unsent);
  EXPECT_TRUE(diagnosis.healthy());
  EXPECT_THAT(diagnosis.seen, IsEmpty());
}

}  // namespace
}  // namespace mrc::fabric
