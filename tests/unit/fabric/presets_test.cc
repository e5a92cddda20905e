#include "fabric/presets.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>
#include <string>

#include "fabric/input_error.h"
#include "fabric/routing.h"

namespace mrc::fabric {
namespace {

TEST(Presets, CanAllBeBuiltAndRouted) {
  std::set<std::string> names;
  for (const Preset& preset : presets()) {
    const Topology topology(preset.spec);
    const Routing routing(topology);
    EXPECT_GT(make_ev_profile(routing, 256, 0).size(), 0u) << preset.name;
    EXPECT_TRUE(names.insert(preset.name).second);
  }
}

TEST(Presets, HaveFullBandwidthAboveEveryT0) {
  for (const Preset& preset : presets()) {
    const Topology topology(preset.spec);
    EXPECT_EQ(topology.hosts_per_t0(), topology.t1_per_pod()) << preset.name;
  }
}

TEST(Presets, HoldThePublishedFabricOf131072Nics) {
  const Topology topology(find_preset("paper-131072").spec);
  EXPECT_EQ(topology.hosts(), 131'072u);
  EXPECT_EQ(topology.planes(), 8u);
  EXPECT_EQ(topology.switches(), 6'144u);
  EXPECT_EQ(topology.hosts_per_t0(), 256u);
  EXPECT_EQ(topology.paths_per_plane() * topology.planes(), 2'048u);
  EXPECT_EQ(topology.longest_hops(), 4u);
}

TEST(Presets, HoldTheFatTreeItIsComparedWith) {
  const Topology topology(find_preset("fat-tree-65536").spec);
  EXPECT_EQ(topology.hosts(), 65'536u);
  EXPECT_EQ(topology.switches(), 5'120u);
  EXPECT_EQ(topology.longest_hops(), 6u);
}

TEST(Presets, AnUnknownNameIsAnsweredWithTheKnownOnes) {
  try {
    find_preset("paper");
    FAIL() << "accepted";
  } catch (const InputError& error) {
    EXPECT_THAT(error.what(), testing::HasSubstr("no preset 'paper'; known are tiny, anchor-128"));
  }
}

}  // namespace
}  // namespace mrc::fabric
