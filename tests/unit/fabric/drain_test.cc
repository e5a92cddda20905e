#include "fabric/drain.h"

#include <gtest/gtest.h>

#include <set>

#include "fabric/input_error.h"
#include "fabric_samples.h"

namespace mrc::fabric {
namespace {

// 4 hosts at 2 T0s, 4 T1s, 2 planes.
TopologySpec small_fabric() { return {.planes = 2, .hosts = 4, .t0 = 2, .t1 = 4}; }

std::string refusal(const std::string& text, const Topology& topology) {
  try {
    parse_drain_target(text, topology);
  } catch (const InputError& error) {
    return error.what();
  }
  return {};
}

std::vector<DrainTarget> targets(const Topology& topology, const std::vector<std::string>& names) {
  std::vector<DrainTarget> list;
  for (const std::string& name : names)
    list.push_back(parse_drain_target(name, topology));
  return list;
}

std::string cut_off(const TopologySpec& spec, const std::vector<std::string>& drained,
                    const std::string& wanted) {
  const Topology topology(spec);
  const Routing routing(topology);
  const auto pair = pair_cut_off(routing, targets(topology, drained), targets(topology, {wanted}));
  return pair ? std::to_string(pair->one) + "-" + std::to_string(pair->other) : "";
}

TEST(DrainTarget, HasOneNameHoweverItIsWritten) {
  const Topology topology(small_fabric());
  const auto name = [&](const char* text) { return parse_drain_target(text, topology).name; };
  EXPECT_EQ(name("t1:3/plane:0"), "t1:3/plane:0");
  EXPECT_EQ(name("t0:1/t1:2/plane:1"), "t0:1/t1:2/plane:1");
  EXPECT_EQ(name("t1:2/t0:1/plane:1"), "t0:1/t1:2/plane:1");
  EXPECT_EQ(name("host:2/plane:1"), "host:2/plane:1");
  EXPECT_EQ(name("t0:1/host:2/plane:1"), "host:2/plane:1");
  EXPECT_EQ(name("host:2"), "host:2");
  EXPECT_EQ(name("plane:1"), "plane:1");
  const Topology one_plane(TopologySpec{.planes = 1});
  EXPECT_EQ(parse_drain_target("t1:3", one_plane).name, "t1:3/plane:0");
}

TEST(DrainTarget, OfSeveralCablesAllOrOneAreMeant) {
  const Topology topology({.planes = 2, .hosts = 4, .t0 = 2, .t1 = 4, .cables = 3});
  const DrainTarget all = parse_drain_target("t0:1/t1:2/plane:1", topology);
  EXPECT_EQ(all.name, "t0:1/t1:2/plane:1");
  EXPECT_EQ(links_of(all, topology).size(), 6u);
  const DrainTarget one = parse_drain_target("t1:2/t0:1/cable:2/plane:1", topology);
  EXPECT_EQ(one.name, "t0:1/t1:2/cable:2/plane:1");
  const std::vector<LinkId> links = links_of(one, topology);
  ASSERT_EQ(links.size(), 2u);
  EXPECT_EQ(link_name(topology, links[0]), "t0:1>t1:2/cable:2/plane:1");
  for (const char* text : {"t0:1/t1:2/cable:3/plane:1", "t0:1/t1:2/cable:*/plane:1",
                           "t0:1/cable:0/plane:1", "cable:0/plane:1"})
    EXPECT_NE(refusal(text, topology), "") << text;
  // Where there is only one it needs no number, and has one name.
  const Topology single(small_fabric());
  EXPECT_EQ(parse_drain_target("t0:1/t1:2/cable:0/plane:1", single).name, "t0:1/t1:2/plane:1");
}

TEST(DrainTarget, WhatTheFabricLacksIsRefused) {
  const Topology topology(small_fabric());
  for (const char* text : {"", "nonsense", "t1:4/plane:0", "t1:0/plane:2", "t1:0", "plane:*",
                           "t1:*/plane:0", "t0:0/t0:1/plane:0", "host:0/t0:1/plane:0",
                           "t0:0/t1:0/t0:1/plane:0", "t2:0/plane:0", "plane:0/t1:0", "host:4"})
    EXPECT_NE(refusal(text, topology), "") << text;
}

TEST(DrainTarget, TakesTheCablesOfThePartAndNoOthers) {
  const Topology topology(small_fabric());
  const auto cables = [&](const char* text) {
    return links_of(parse_drain_target(text, topology), topology).size();
  };
  EXPECT_EQ(cables("t1:3/plane:0"), 2U * 2);
  EXPECT_EQ(cables("t0:1/plane:0"), 2U * (4 + 2));
  EXPECT_EQ(cables("t0:1/t1:2/plane:1"), 2U);
  EXPECT_EQ(cables("host:2/plane:1"), 2U);
  EXPECT_EQ(cables("host:2"), 2U * 2);
  EXPECT_EQ(cables("plane:1"), topology.link_count() / 2);
}

TEST(PairCutOff, IsNoneWhileAnotherWayIsLeft) {
  EXPECT_EQ(cut_off(small_fabric(), {}, "t1:3/plane:0"), "");
  EXPECT_EQ(cut_off(small_fabric(), {}, "plane:0"), "");
  EXPECT_EQ(cut_off(small_fabric(), {"t1:0/plane:1", "t1:1/plane:1", "t1:2/plane:1"}, "plane:0"),
            "");
}

TEST(PairCutOff, NamesTwoHostsThatLoseTheirLastWay) {
  EXPECT_EQ(cut_off(small_fabric(), {"plane:0"}, "plane:1"), "0-1");
  EXPECT_EQ(cut_off(small_fabric(), {"host:3/plane:0"}, "host:2/plane:1"), "2-3");
  EXPECT_EQ(cut_off(small_fabric(), {"plane:0", "t1:0/plane:1", "t1:1/plane:1", "t1:2/plane:1"},
                    "t0:1/t1:3/plane:1"),
            "0-2");
  EXPECT_EQ(cut_off(small_fabric(), {}, "host:3"), "0-3");
}

TEST(PairCutOff, APairThatHadNoWayBeforeDoesNotCount) {
  EXPECT_EQ(cut_off(small_fabric(), {"host:3"}, "t1:3/plane:0"), "");
  EXPECT_EQ(cut_off(small_fabric(), {"host:3", "plane:0"}, "plane:1"), "0-1");
}

// Against every pair of hosts and every path, one by one.
TEST(PairCutOff, AgreesWithALookAtAllPathsInEveryKindOfFabric) {
  for (const TopologySpec& spec : sample_fabrics()) {
    const Topology topology(spec);
    if (topology.hosts() > 64) continue;
    const Routing routing(topology);
    std::vector<DrainTarget> drained;
    for (unsigned plane = 1; plane < topology.planes(); ++plane)
      drained.push_back(parse_drain_target("plane:" + std::to_string(plane), topology));
    for (const char* text :
         {"t1:0/plane:0", "t0:0/plane:0", "host:0/plane:0", "plane:0", "t0:0/t1:0/plane:0"}) {
      const DrainTarget wanted = parse_drain_target(text, topology);
      std::set<LinkId> gone;
      for (const DrainTarget& target : drained)
        for (const LinkId link : links_of(target, topology))
          gone.insert(link);
      for (const LinkId link : links_of(wanted, topology))
        gone.insert(link);
      bool any_pair = false;
      for (unsigned one = 0; one < topology.hosts(); ++one) {
        for (unsigned other = one + 1; other < topology.hosts(); ++other) {
          bool any_path = false;
          for (unsigned up = 0; up < topology.uplinks_per_t0(); ++up) {
            for (unsigned t2 = 0; t2 < std::max(topology.t2_per_group(), 1U); ++t2) {
              const auto list = routing.links(one, other,
                                              {.plane = 0,
                                               .up = static_cast<std::uint16_t>(up),
                                               .t2 = static_cast<std::uint16_t>(t2)});
              bool whole = true;
              for (unsigned i = 0; i < list.count; ++i)
                whole = whole && !gone.contains(list.links[i]);
              any_path = any_path || whole;
            }
          }
          any_pair = any_pair || !any_path;
        }
      }
      EXPECT_EQ(pair_cut_off(routing, drained, std::span(&wanted, 1)).has_value(), any_pair)
          << text << " of " << topology.hosts() << " hosts";
    }
  }
}

}  // namespace
}  // namespace mrc::fabric
