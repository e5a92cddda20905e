// The EV profiles of hosts: which paths they sample.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <set>

#include "fabric/input_error.h"
#include "fabric/routing.h"
#include "fabric_samples.h"

namespace mrc::fabric {
namespace {

std::vector<Path> paths_of(const Routing& routing, const core::EvProfile& profile) {
  std::vector<Path> paths;
  for (unsigned i = 0; i < profile.size(); ++i) {
    const core::EvEntry& entry = profile.entry(EvIndex{static_cast<std::uint16_t>(i)});
    Path path;
    EXPECT_TRUE(routing.path_of(entry.entropy, path));
    EXPECT_EQ(static_cast<unsigned>(entry.port), path.plane + 1u);
    EXPECT_FALSE(entry.denied);
    paths.push_back(path);
  }
  return paths;
}

TEST(EvProfiles, HoldEveryPathWhenThereIsRoom) {
  const Topology topology(three_tier());
  const Routing routing(topology);
  EXPECT_EQ(sample_count(topology, 9), 1u);
  EXPECT_EQ(sample_count(topology, 256), 1u);
  for (const unsigned sample : {0u, 5u}) {
    std::set<std::pair<unsigned, unsigned>> ways;
    for (const Path& path : paths_of(routing, make_ev_profile(routing, 256, sample)))
      ways.insert({path.up, path.t2});
    EXPECT_EQ(ways.size(), 9u);
  }
}

TEST(EvProfiles, HaveTheSameNumberOfPathsOnEveryPlane) {
  const Topology topology({.planes = 3, .hosts = 15, .t0 = 5, .t1 = 7});
  const Routing routing(topology);
  for (unsigned evs = 3; evs <= 24; ++evs) {
    std::map<unsigned, unsigned> of_plane;
    for (const Path& path : paths_of(routing, make_ev_profile(routing, evs, 1)))
      ++of_plane[path.plane];
    ASSERT_EQ(of_plane.size(), 3u);
    const unsigned expected = std::min(evs / 3, 7u);
    for (const auto& [plane, count] : of_plane)
      ASSERT_EQ(count, expected) << "plane " << plane << " of " << evs << " EVs";
  }
}

TEST(EvProfiles, AreAsManyAsAskedForWhereSwitchesHash) {
  const Topology topology({.planes = 2, .hosts = 8, .t0 = 2, .t1 = 4});
  const core::EvProfile profile = make_hashed_profile(topology, 64);
  ASSERT_EQ(profile.size(), 64u);
  std::map<PortId, std::set<std::uint32_t>> of_port;
  for (unsigned i = 0; i < profile.size(); ++i) {
    const core::EvEntry& entry = profile.entry(EvIndex{static_cast<std::uint16_t>(i)});
    of_port[entry.port].insert(entry.entropy);
  }
  EXPECT_EQ(of_port[PortId{1}].size(), 32u);
  EXPECT_EQ(of_port[PortId{2}].size(), 32u);
  EXPECT_THROW(make_hashed_profile(topology, 1), InputError);
}

TEST(EvProfiles, TakeEveryNthT1WhereThatDividesEvenly) {
  const Topology topology({.planes = 1, .hosts = 8, .t0 = 2, .t1 = 16});
  const Routing routing(topology);
  EXPECT_EQ(sample_count(topology, 4), 4u);
  std::vector<unsigned> t1s;
  for (const Path& path : paths_of(routing, make_ev_profile(routing, 4, 3)))
    t1s.push_back(path.up);
  EXPECT_EQ(t1s, (std::vector<unsigned>{3, 7, 11, 15}));
}

TEST(EvProfiles, OfAllSamplesUseEveryPathEquallyOften) {
  for (const TopologySpec& spec : sample_fabrics()) {
    const Topology topology(spec);
    const Routing routing(topology);
    for (unsigned evs = spec.planes; evs <= spec.planes * topology.paths_per_plane(); ++evs) {
      std::map<std::uint32_t, unsigned> uses;
      const unsigned samples = sample_count(topology, evs);
      for (unsigned sample = 0; sample < samples; ++sample) {
        for (const Path& path : paths_of(routing, make_ev_profile(routing, evs, sample)))
          ++uses[routing.entropy_of(path)];
      }
      ASSERT_EQ(uses.size(), std::size_t{spec.planes} * topology.paths_per_plane());
      for (const auto& [entropy, count] : uses)
        ASSERT_EQ(count, uses.begin()->second) << entropy << " with " << evs << " EVs";
    }
  }
}

TEST(EvProfiles, ReachEveryT1OfTheirPodBeforeASecondT2) {
  const Topology topology(three_tier());
  const Routing routing(topology);
  std::set<unsigned> t1s;
  for (const Path& path : paths_of(routing, make_ev_profile(routing, 3, 2)))
    t1s.insert(path.up);
  EXPECT_EQ(t1s.size(), 3u);
}

TEST(EvProfiles, HoldTheSamePathsForPlacesThatAreEqualModuloTheSampleCount) {
  const Topology topology({.planes = 1, .hosts = 16, .t0 = 2, .t1 = 7});
  const Routing routing(topology);
  ASSERT_EQ(sample_count(topology, 3), 7u);
  const auto paths = [&](unsigned place) {
    return paths_of(routing, make_ev_profile(routing, 3, place));
  };
  EXPECT_THAT(paths(0), ::testing::UnorderedElementsAreArray(paths(7)));
  EXPECT_NE(paths(0).front(), paths(7).front()) << "from another T1 on";
  EXPECT_EQ(paths(0).front(), paths(21).front());
  EXPECT_NE(paths(2), paths(3));
}

// So that the hosts of a T0 do not meet on its uplinks while they send at the same time.
TEST(EvProfiles, GoRoundTheT1sFromThatOfThePlaceOn) {
  for (const TopologySpec& spec :
       {three_tier(), TopologySpec{.planes = 2, .hosts = 8, .t0 = 2, .t1 = 4}}) {
    const Topology topology(spec);
    const Routing routing(topology);
    const unsigned t1s = topology.uplinks_per_t0();
    for (unsigned place = 0; place < topology.hosts_per_t0(); ++place) {
      const core::EvProfile profile = make_ev_profile(routing, 256, place);
      const std::vector<Path> paths = paths_of(routing, profile);
      for (unsigned plane = 0; plane < spec.planes; ++plane) {
        unsigned turn = place;
        for (const EvIndex ev : profile.listed(plane))
          EXPECT_EQ(paths[static_cast<std::size_t>(ev)].up, turn++ % t1s);
      }
    }
  }
}

TEST(EvProfiles, NeedAnEvPerPlaneAndNoMoreThanAQueuePairCanHold) {
  const Topology topology({.planes = 4, .hosts = 8, .t0 = 2, .t1 = 512});
  const Routing routing(topology);
  EXPECT_THROW(make_ev_profile(routing, 3, 0), InputError);
  EXPECT_EQ(make_ev_profile(routing, 4, 0).size(), 4u);
  EXPECT_EQ(make_ev_profile(routing, 1024, 0).size(), 1024u);
  EXPECT_THROW(make_ev_profile(routing, 1025, 0), InputError);
}

}  // namespace
}  // namespace mrc::fabric
