#include "fabric/build_plan.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <set>

#include "fabric/input_error.h"
#include "fabric/topology_file.h"
#include "fabric_samples.h"

namespace mrc::fabric {
namespace {

using testing::HasSubstr;

TopologySpec built(const PlanInput& input) {
  return buildable(input, plan_fabric(input).multi_plane);
}

std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = text.find('\n', at);
    lines.push_back(text.substr(at, end - at));
    at = end + 1;
  }
  return lines;
}

TEST(BuildPlan, TheLargestPlanIsThePresetOfTheSameName) {
  const TopologySpec spec = built({});
  EXPECT_EQ(spec.hosts, 131'072u);
  EXPECT_EQ(spec.t0, 512u);
  EXPECT_EQ(spec.t1, 256u);
  EXPECT_EQ(spec.cables, 1u);
  EXPECT_EQ(spec.host_link.bits_per_second, 100'000'000'000u);
}

TEST(BuildPlan, ASmallerOneHasSeveralCablesBetweenTwoSwitches) {
  const TopologySpec spec = built({.nics = 4'096});
  EXPECT_EQ(spec.t0, 16u);
  EXPECT_EQ(spec.t1, 8u);
  EXPECT_EQ(spec.cables, 32u);
  EXPECT_EQ(Topology(spec).paths_per_plane(), 256u);
}

TEST(BuildPlan, WhatDoesNotDivideIsRoundedUp) {
  const TopologySpec spec = built({.nics = 1'500});  // 6 T0s, and 3 T1s for 256 uplinks
  EXPECT_EQ(spec.t0, 6u);
  EXPECT_EQ(spec.t1, 4u);
  EXPECT_EQ(spec.cables, 64u);
  EXPECT_EQ(spec.hosts, 1'500u);
  EXPECT_EQ(built({.nics = 1'501}).hosts, 1'506u);
  EXPECT_EQ(built({.nics = 3}).hosts, 3u);
}

TEST(BuildPlan, OnlyTwoTiersOfOnePortPerPlaneAreBuilt) {
  const PlanInput input;
  const FabricComparison plans = plan_fabric(input);
  EXPECT_THROW(buildable(input, plans.three_tier), InputError);
}

TEST(BuildPlan, TheFileGivesTheSameFabricAgain) {
  std::vector<TopologySpec> specs = sample_fabrics();
  specs.push_back(built({.nics = 4'096}));
  specs.push_back(three_tier());
  specs.back().t0_t1_link = {.bits_per_second = 25'000'000'000, .delay_ps = 1'500'000};
  specs.back().t1_t2_link = {.bits_per_second = 2'500'000'000, .delay_ps = 2};
  for (const TopologySpec& spec : specs)
    EXPECT_EQ(parse_topology(topology_text(spec), "f.toml"), spec) << topology_text(spec);
}

TEST(BuildPlan, EveryCableIsListedOnceAndEveryPortUsedOnce) {
  for (const TopologySpec& spec : sample_fabrics()) {
    const Topology topology(spec);
    const Routing routing(topology);
    std::set<std::string> ends;
    std::size_t cables = 0;
    for (unsigned plane = 0; plane < spec.planes; ++plane) {
      const std::string list =
          cable_lines(routing, plane, default_port_names(ExportFormat::kLinux), {});
      for (const std::string& line : lines_of(list)) {
        const std::size_t second = line.find(',', line.find(',') + 1);
        const std::size_t last = line.rfind(',');
        const std::string in_plane = line.substr(last);
        EXPECT_TRUE(ends.insert(line.substr(0, second) + in_plane).second) << line;
        EXPECT_TRUE(ends.insert(line.substr(second + 1, last - second - 1) + in_plane).second)
            << line;
        ++cables;
      }
    }
    EXPECT_EQ(2 * cables, topology.link_count());
  }
}

TEST(BuildPlan, CablesJoinThePortsOfTheExports) {
  const Topology topology({.planes = 2, .hosts = 4, .t0 = 2, .t1 = 2, .cables = 2});
  const Routing routing(topology);
  const std::string list = cable_lines(routing, 1, {"Ethernet", 0, 8}, {"eth", 1});
  EXPECT_THAT(list, HasSubstr("host:3,eth2,t0:1,Ethernet8,1\n"));
  EXPECT_THAT(list, HasSubstr("t0:1,Ethernet16,t1:0,Ethernet16,1\n"));
  EXPECT_THAT(list, HasSubstr("t0:1,Ethernet40,t1:1,Ethernet24,1\n"));
}

}  // namespace
}  // namespace mrc::fabric
