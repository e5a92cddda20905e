#include "fabric/planner.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "fabric/input_error.h"
#include "fabric/presets.h"

namespace mrc::fabric {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

std::string objection(const PlanInput& input) {
  try {
    plan_fabric(input);
    return "";
  } catch (const InputError& error) {
    return error.what();
  }
}

TEST(Planner, ReproducesThePublishedFiguresFor131072Nics) {
  const FabricComparison plans = plan_fabric({});
  EXPECT_EQ(plans.multi_plane.switches, 6'144u);
  EXPECT_EQ(plans.three_tier.switches, 10'240u);
  EXPECT_EQ(plans.multi_plane.optics * 3, plans.three_tier.optics * 2);
  EXPECT_NEAR(plans.multi_plane.lost_with_t0_uplink, 0.004, 0.0002);
  EXPECT_NEAR(plans.three_tier.lost_with_t0_uplink, 0.03, 0.002);
  EXPECT_EQ(plans.multi_plane.lost_with_nic_link, 0.125);
  EXPECT_EQ(plans.three_tier.lost_with_nic_link, 1.0);
  EXPECT_EQ(plans.multi_plane.longest_path_switches, 3u);
  EXPECT_EQ(plans.three_tier.longest_path_switches, 5u);
  EXPECT_EQ(plans.multi_plane.nics_per_t0, 256u);
  EXPECT_EQ(plans.three_tier.nics_per_t0, 32u);
  EXPECT_EQ(plans.multi_plane.paths, 2'048u);
}

TEST(Planner, CountsTheSwitchesOfEveryTier) {
  const FabricComparison plans = plan_fabric({});
  EXPECT_THAT(plans.multi_plane.switches_per_tier, ElementsAre(4'096, 2'048));
  EXPECT_THAT(plans.three_tier.switches_per_tier, ElementsAre(4'096, 4'096, 2'048));
}

TEST(Planner, AgreesWithThePresets) {
  const Topology planes(find_preset("paper-131072").spec);
  EXPECT_EQ(plan_fabric({}).multi_plane.switches, planes.switches());
  EXPECT_EQ(plan_fabric({}).multi_plane.links, planes.link_count() / 2);
  const Topology tree(find_preset("fat-tree-65536").spec);
  const FabricPlan three = plan_fabric({.nics = 65'536}).three_tier;
  EXPECT_EQ(three.switches, tree.switches());
  EXPECT_EQ(three.links, tree.link_count() / 2);
  EXPECT_EQ(three.max_nics, tree.hosts());
  EXPECT_EQ(three.paths, tree.paths_per_plane());
}

TEST(Planner, SaysWhenThreeTiersDoNotJoinAllNics) {
  const FabricComparison fits = plan_fabric({.nics = 65'536});
  EXPECT_EQ(fits.three_tier.islands, 1u);
  EXPECT_FALSE(fits.four_tier.has_value());
  const FabricComparison splits = plan_fabric({.nics = 65'537});
  EXPECT_EQ(splits.three_tier.islands, 2u);
  ASSERT_TRUE(splits.four_tier.has_value());
  EXPECT_EQ(plan_fabric({}).four_tier->switches, 131'072u * 7 / 64);
  EXPECT_EQ(plan_fabric({}).four_tier->longest_path_switches, 7u);
}

TEST(Planner, KnowsTheOtherPublishedSizes) {
  const auto holds = [](double nic_gbps, unsigned planes, double switch_tbps) {
    return plan_fabric(
               {.nics = 1, .nic_gbps = nic_gbps, .planes = planes, .switch_tbps = switch_tbps})
        .multi_plane.max_nics;
  };
  EXPECT_EQ(holds(800, 4, 51.2), 32'768u);
  EXPECT_EQ(holds(400, 4, 51.2), 131'072u);
  EXPECT_EQ(holds(800, 8, 102.4), 524'288u);
}

TEST(Planner, ASmallFabricTakesPartOfItsSwitches) {
  const FabricPlan plan = plan_fabric({.nics = 1'000}).multi_plane;
  EXPECT_THAT(plan.switches_per_tier, ElementsAre(8 * 4, 8 * 2));
  // 256 uplinks of a T0 on two T1s.
  EXPECT_EQ(plan.lost_with_t1, 0.5);
  EXPECT_EQ(plan.lost_with_t0_uplink, 1.0 / 256);
  EXPECT_EQ(plan.links, 8u * (1'000 + 4 * 256));
}

TEST(Planner, ANicMayTakeSeveralPortsOfOnePlane) {
  const FabricPlan plan = plan_fabric({.nics = 1'024, .port_gbps = 400}).three_tier;
  EXPECT_EQ(plan.ports_per_switch, 128u);
  EXPECT_EQ(plan.ports_per_nic, 2u);
  EXPECT_EQ(plan.nics_per_t0, 32u);
  EXPECT_EQ(plan.lost_with_nic_link, 0.5);
  EXPECT_EQ(plan.lost_with_t0, 1.0);
  // The capacity, and with it the number of switches, is that of full-speed ports.
  EXPECT_EQ(plan.switches, plan_fabric({.nics = 1'024}).three_tier.switches);
}

TEST(Planner, PortsAreLimitedByTheSwitch) {
  const FabricPlan plan = plan_fabric({.nics = 1'000, .max_ports = 256}).multi_plane;
  EXPECT_EQ(plan.ports_per_switch, 256u);
  EXPECT_EQ(plan.max_nics, 32'768u);
}

TEST(Planner, PowerIsThatOfSwitchesAndOptics) {
  PlanInput input;
  EXPECT_FALSE(plan_fabric(input).multi_plane.watts.has_value());
  input.switch_watts = 1'000;
  EXPECT_FALSE(plan_fabric(input).multi_plane.watts.has_value());
  input.optic_watts = 15;
  EXPECT_EQ(plan_fabric(input).multi_plane.watts, 6'144 * 1'000.0 + 524'288 * 15.0);
}

TEST(Planner, TransceiversMayCarrySeveralPorts) {
  PlanInput input;
  const std::uint64_t wide = plan_fabric(input).multi_plane.optics;
  input.optic_gbps = 400;
  EXPECT_EQ(plan_fabric(input).multi_plane.optics, 2 * wide);
}

TEST(Planner, NumbersThatMakeNoFabricAreRefused) {
  EXPECT_THAT(objection({.nics = 0}), HasSubstr("number of NICs"));
  EXPECT_THAT(objection({.nics = 131'073}), HasSubstr("hold at most 131072 NICs"));
  EXPECT_THAT(objection({.planes = 0}), HasSubstr("planes must be 1 to 16, not 0"));
  EXPECT_THAT(objection({.planes = 17}), HasSubstr("not 17"));
  EXPECT_THAT(objection({.nic_gbps = 0}), HasSubstr("speed of a NIC"));
  EXPECT_THAT(objection({.nic_gbps = -1}), HasSubstr("speed of a NIC"));
  EXPECT_THAT(objection({.switch_tbps = 0}), HasSubstr("capacity of a switch"));
  EXPECT_THAT(objection({.nics = 4, .switch_tbps = 1.6}), HasSubstr("only 2 ports of 800 Gb/s"));
  EXPECT_THAT(objection({.nics = 4, .max_ports = 2}), HasSubstr("at least 4 ports"));
  EXPECT_THAT(objection({.nics = 4, .port_gbps = 10, .max_ports = 64}),
              HasSubstr("takes 80 ports, a T0 switch has only 32"));
  EXPECT_THAT(objection({.port_gbps = 0}), HasSubstr("speed of a port"));
  EXPECT_THAT(objection({.optic_gbps = 0}), HasSubstr("speed of a transceiver"));
  EXPECT_THAT(objection({.switch_watts = -1}), HasSubstr("watts"));
}

}  // namespace
}  // namespace mrc::fabric
