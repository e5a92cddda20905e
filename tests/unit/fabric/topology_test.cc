#include "fabric/topology.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

#include "fabric/input_error.h"
#include "fabric_samples.h"

namespace mrc::fabric {
namespace {

using testing::HasSubstr;

std::string objection(const TopologySpec& spec) {
  try {
    const Topology built(spec);
    return "";
  } catch (const InputError& error) {
    return error.what();
  }
}

TEST(Topology, EveryLinkIsFoundByItsEnds) {
  for (const TopologySpec& spec : sample_fabrics()) {
    const Topology topology(spec);
    for (std::uint32_t i = 0; i < topology.link_count(); ++i) {
      const Link link = topology.describe(LinkId{i});
      ASSERT_EQ(topology.find(link.from, link.to, link.cable), LinkId{i})
          << link_name(topology, LinkId{i});
    }
  }
}

TEST(Topology, TheReverseOfALinkJoinsTheSameEndsTheOtherWayRound) {
  for (const TopologySpec& spec : sample_fabrics()) {
    const Topology topology(spec);
    for (std::uint32_t i = 0; i < topology.link_count(); ++i) {
      const LinkId back = topology.reverse(LinkId{i});
      ASSERT_NE(back, LinkId{i});
      ASSERT_EQ(topology.reverse(back), LinkId{i});
      ASSERT_EQ(topology.describe(back).from, topology.describe(LinkId{i}).to);
      ASSERT_EQ(topology.describe(back).tier, topology.describe(LinkId{i}).tier);
    }
  }
}

TEST(Topology, LinkNamesAreAllDifferent) {
  for (const TopologySpec& spec : sample_fabrics()) {
    const Topology topology(spec);
    std::set<std::string> names;
    for (std::uint32_t i = 0; i < topology.link_count(); ++i)
      names.insert(link_name(topology, LinkId{i}));
    EXPECT_EQ(names.size(), topology.link_count());
  }
}

TEST(Topology, LinksByNameEndWhereTheNameSays) {
  const Topology two(two_tier());
  EXPECT_EQ(link_name(two, two.host_up(1, 5)), "host:5>t0:1/plane:1");
  EXPECT_EQ(link_name(two, two.host_down(0, 5)), "t0:1>host:5/plane:0");
  EXPECT_EQ(link_name(two, two.t0_up(1, 3, 2)), "t0:3>t1:2/plane:1");
  EXPECT_EQ(link_name(two, two.t1_down(0, 2, 3, 0)), "t1:2>t0:3/plane:0");
  // Two pods of three T0 and three T1; each T1 has three T2s of its own place.
  const Topology three(three_tier());
  EXPECT_EQ(link_name(three, three.t0_up(0, 4, 2)), "t0:4>t1:5/plane:0");
  EXPECT_EQ(link_name(three, three.t1_down(0, 5, 1, 0)), "t1:5>t0:4/plane:0");
  EXPECT_EQ(link_name(three, three.t1_up(0, 4, 2)), "t1:4>t2:5/plane:0");
  EXPECT_EQ(link_name(three, three.t2_down(0, 5, 1)), "t2:5>t1:4/plane:0");
}

TEST(Topology, CablesBetweenTwoSwitchesAreCountedThrough) {
  const Topology topology({.planes = 2, .hosts = 4, .t0 = 2, .t1 = 2, .cables = 3});
  EXPECT_EQ(topology.uplinks_per_t0(), 6u);
  EXPECT_EQ(topology.paths_per_plane(), 6u);
  EXPECT_EQ(link_name(topology, topology.t0_up(1, 0, 5)), "t0:0>t1:1/cable:2/plane:1");
  EXPECT_EQ(link_name(topology, topology.t1_down(0, 1, 0, 1)), "t1:1>t0:0/cable:1/plane:0");
  EXPECT_EQ(link_name(topology, topology.host_up(0, 3)), "host:3>t0:1/plane:0");
  const Node t0{NodeKind::kT0, 1, 0};
  const Node t1{NodeKind::kT1, 1, 1};
  EXPECT_EQ(topology.find(t0, t1, 2), topology.t0_up(1, 0, 5));
  EXPECT_EQ(topology.reverse(topology.t0_up(1, 0, 5)), topology.t1_down(1, 1, 0, 2));
  EXPECT_EQ(topology.find(t0, t1, 3), kNoLink);
  EXPECT_EQ(topology.find({NodeKind::kHost, 0, 0}, {NodeKind::kT0, 0, 0}, 1), kNoLink);
}

TEST(Topology, EverySwitchHasItsShareOfCables) {
  const Topology topology(three_tier());
  std::vector<unsigned> t0(6), t1(6), t2(9);
  for (std::uint32_t i = 0; i < topology.link_count(); ++i) {
    const Node from = topology.describe(LinkId{i}).from;
    if (from.kind == NodeKind::kT0) ++t0[from.index];
    if (from.kind == NodeKind::kT1) ++t1[from.index];
    if (from.kind == NodeKind::kT2) ++t2[from.index];
  }
  EXPECT_THAT(t0, testing::Each(4 + 3));
  EXPECT_THAT(t1, testing::Each(3 + 3));
  EXPECT_THAT(t2, testing::Each(2));
  EXPECT_EQ(topology.switches(), 21u);
}

TEST(Topology, DevicesWithoutACommonCableHaveNoLink) {
  const Topology topology(three_tier());
  using enum NodeKind;
  EXPECT_EQ(topology.find({kHost, 0, 0}, {kT0, 0, 1}), kNoLink);
  EXPECT_EQ(topology.find({kT0, 0, 0}, {kHost, 0, 4}), kNoLink);
  EXPECT_EQ(topology.find({kT0, 0, 0}, {kT1, 0, 3}), kNoLink);
  EXPECT_EQ(topology.find({kT1, 0, 3}, {kT0, 0, 2}), kNoLink);
  EXPECT_EQ(topology.find({kT1, 0, 0}, {kT2, 0, 3}), kNoLink);
  EXPECT_EQ(topology.find({kT2, 0, 3}, {kT1, 0, 0}), kNoLink);
  EXPECT_EQ(topology.find({kT0, 0, 0}, {kT2, 0, 0}), kNoLink);
  EXPECT_EQ(topology.find({kHost, 0, 0}, {kHost, 0, 1}), kNoLink);
  EXPECT_EQ(topology.find({kHost, 0, 24}, {kT0, 0, 6}), kNoLink);
  EXPECT_EQ(topology.find({kHost, 1, 0}, {kT0, 1, 0}), kNoLink);
  EXPECT_EQ(topology.find({kHost, 0, 0}, {kT0, 1, 0}), kNoLink);
}

TEST(Topology, DistanceGrowsFromT0ToPodToFabric) {
  const Topology topology(three_tier());
  EXPECT_EQ(topology.hops(0, 3), 2u);
  EXPECT_EQ(topology.hops(0, 4), 4u);
  EXPECT_EQ(topology.hops(0, 11), 4u);
  EXPECT_EQ(topology.hops(0, 12), 6u);
  EXPECT_EQ(topology.longest_hops(), 6u);
  EXPECT_EQ(topology.paths_per_plane(), 9u);
  EXPECT_EQ(Topology(two_tier()).longest_hops(), 4u);
  EXPECT_EQ(Topology(two_tier()).paths_per_plane(), 4u);
  EXPECT_EQ(Topology(TopologySpec{.hosts = 4, .t0 = 1}).longest_hops(), 2u);
}

TEST(Topology, EveryTierHasItsOwnRateAndDelay) {
  TopologySpec spec = three_tier();
  spec.host_link = {.bits_per_second = 100'000'000'000, .delay_ps = 1};
  spec.t0_t1_link = {.bits_per_second = 200'000'000'000, .delay_ps = 2};
  spec.t1_t2_link = {.bits_per_second = 800'000'000'000, .delay_ps = 3};
  const Topology topology(spec);
  EXPECT_EQ(topology.link_class(LinkTier::kHost), spec.host_link);
  EXPECT_EQ(topology.link_class(LinkTier::kT0T1), spec.t0_t1_link);
  EXPECT_EQ(topology.link_class(LinkTier::kT1T2), spec.t1_t2_link);
  EXPECT_EQ(topology.describe(topology.t1_up(0, 0, 0)).tier, LinkTier::kT1T2);
}

TEST(Topology, ImpossibleFabricsAreRefusedWithTheReason) {
  EXPECT_THAT(objection({.planes = 0}), HasSubstr("planes must be 1 to 16, not 0"));
  EXPECT_THAT(objection({.planes = 17}), HasSubstr("not 17"));
  EXPECT_THAT(objection({.hosts = 0}), HasSubstr("at least one host"));
  EXPECT_THAT(objection({.t0 = 0}), HasSubstr("at least one T0"));
  EXPECT_THAT(objection({.t1 = 0}), HasSubstr("at least one T1"));
  EXPECT_THAT(objection({.cables = 0}), HasSubstr("cables must be 1 to 65536, not 0"));
  EXPECT_THAT(objection({.t2 = 4, .cables = 2}), HasSubstr("need two tiers"));
  EXPECT_THAT(objection({.hosts = 17}), HasSubstr("17 hosts cannot be spread evenly over 4 T0"));
  EXPECT_THAT(objection({.pods = 0}), HasSubstr("at least one pod"));
  EXPECT_THAT(objection({.pods = 2}), HasSubstr("pods need a third tier"));
  EXPECT_THAT(objection({.t0 = 4, .t1 = 4, .pods = 3, .t2 = 4}), HasSubstr("over 3 pods"));
  EXPECT_THAT(objection({.t0 = 4, .t1 = 4, .pods = 2, .t2 = 3}),
              HasSubstr("3 T2 switches cannot be shared evenly by the 2 T1s of a pod"));
  EXPECT_THAT(objection({.host_link = {.bits_per_second = 0}}), HasSubstr("link rate"));
  EXPECT_THAT(objection({.t0_t1_link = {.delay_ps = 0}}), HasSubstr("link delay"));
  EXPECT_THAT(objection({.hosts = 1u << 30, .t0 = 1u << 15, .t1 = 1u << 15}),
              HasSubstr("too many links"));
}

}  // namespace
}  // namespace mrc::fabric
