#include "controller/drain.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <set>

#include "controller/session.h"
#include "fabric/input_error.h"
#include "support/temporary_directory.h"
#include "unit/fabric/fabric_samples.h"

namespace mrc::controller {
namespace {

using fabric::DrainTarget;
using fabric::Path;
using fabric::Routing;
using fabric::Topology;
using node::NodeSnapshot;

bool excluded(const Routing& routing, const DrainTarget& target, unsigned source,
              unsigned destination, const Path& path) {
  std::vector<wire::Usid> way;
  for (const wire::Usid usid : routing.usids(source, destination, path))
    if (usid != wire::kNoUsid) way.push_back(usid);
  const auto exclusions = exclusions_of(routing, target, source);
  return std::any_of(exclusions.begin(), exclusions.end(), [&](const node::PathExclusion& each) {
    return node::excludes(each, static_cast<PortId>(path.plane + 1), way);
  });
}

// One way to say it for hosts, another for the fabric: they must agree on every path there is.
void compare(const Routing& routing, const char* text) {
  const Topology& topology = routing.topology();
  const DrainTarget target = fabric::parse_drain_target(text, topology);
  std::set<fabric::LinkId> gone;
  for (const fabric::LinkId link : fabric::links_of(target, topology))
    gone.insert(link);
  unsigned hits = 0;
  for (unsigned source = 0; source < topology.hosts(); ++source) {
    for (unsigned to = 0; to < topology.hosts(); ++to) {
      for (unsigned way = 0; source != to && way < topology.planes() * topology.paths_per_plane();
           ++way) {
        const unsigned ups = topology.uplinks_per_t0();
        const unsigned in_plane = way % topology.paths_per_plane();
        const Path path{.plane = static_cast<std::uint8_t>(way / topology.paths_per_plane()),
                        .up = static_cast<std::uint16_t>(in_plane % ups),
                        .t2 = static_cast<std::uint16_t>(in_plane / ups)};
        const auto links = routing.links(source, to, path);
        const bool crosses = std::any_of(links.links.begin(), links.links.begin() + links.count,
                                         [&](fabric::LinkId link) { return gone.contains(link); });
        ASSERT_EQ(excluded(routing, target, source, to, path), crosses)
            << text << ": " << source << " to " << to << ", way " << way;
        hits += crosses ? 1 : 0;
      }
    }
  }
  EXPECT_GT(hits, 0U) << text;
}

TEST(Exclusions, AreThePathsThatCrossThePart) {
  const Topology two(fabric::two_tier());
  for (const char* text :
       {"t1:3/plane:0", "t0:2/plane:1", "t0:1/t1:2/plane:1", "host:5/plane:0", "host:5", "plane:1"})
    compare(Routing(two), text);
  const Topology several({.planes = 2, .hosts = 6, .t0 = 3, .t1 = 2, .cables = 3});
  for (const char* text : {"t1:1/plane:0", "t0:2/plane:1", "t0:1/t1:1/plane:1", "host:5/plane:0",
                           "t0:1/t1:1/cable:2/plane:0", "host:5", "plane:1"})
    compare(Routing(several), text);
  const Topology three(fabric::three_tier());
  for (const char* text :
       {"t2:4/plane:0", "t1:4/plane:0", "t1:0/t2:1/plane:0", "t0:3/t1:5/plane:0"})
    compare(Routing(three), text);
}

class Drains : public testing::Test {
 protected:
  node::DeviceConfig device(unsigned host) const {
    node::DeviceConfig config;
    config.backend = node::BackendKind::kWire;
    config.planes.resize(topology_.planes());
    config.srv6_routes.resize(1);
    config.directory = folder_ / std::to_string(host);
    return config;
  }
  std::unique_ptr<FabricDrains> open() const {
    std::vector<DrainNode> nodes;
    for (unsigned host = 0; host < topology_.hosts(); ++host)
      nodes.push_back(open_drain_node(topology_, host, device(host)));
    return std::make_unique<FabricDrains>(routing_, std::move(nodes));
  }
  DrainTarget target(const char* text) const { return fabric::parse_drain_target(text, topology_); }
  std::unique_ptr<node::NodeState> state(unsigned host) const {
    std::string error;
    return node::NodeState::open(device(host).directory, error);
  }
  static std::vector<std::string> names(const FabricDrains& drains) {
    std::vector<std::string> list;
    for (const FabricDrains::Entry& entry : drains.list())
      list.push_back(entry.name);
    return list;
  }

  const mrc::test::TemporaryDirectory folder_;
  const Topology topology_{fabric::TopologySpec{.planes = 2, .hosts = 4, .t0 = 2, .t1 = 4}};
  const Routing routing_{topology_};
};

using Names = std::vector<std::string>;

TEST_F(Drains, StayOnAllNodesUntilTheyAreUndone) {
  open()->drain(target("t1:3/plane:0"), node::DrainedBy::kCommand);
  open()->drain(target("plane:1"), node::DrainedBy::kWatch);
  const auto drains = open();
  EXPECT_EQ(names(*drains), (Names{"plane:1", "t1:3/plane:0"}));
  for (const FabricDrains::Entry& entry : drains->list())
    EXPECT_EQ(entry.nodes, 4U);
  EXPECT_EQ(drains->list()[0].by, node::DrainedBy::kWatch);
  drains->undrain("plane:1");
  EXPECT_EQ(names(*open()), Names{"t1:3/plane:0"});
}

TEST_F(Drains, TakingBackLeavesWhatWasDrainedBefore) {
  const auto drains = open();
  // One that was interrupted half-way.
  ASSERT_EQ(state(1)->update([&](NodeSnapshot& s) {
    s.drained["t1:3/plane:0"].exclusions = exclusions_of(routing_, target("t1:3/plane:0"), 1);
    return 0;
  }),
            0);
  EXPECT_EQ(drains->list()[0].nodes, 1U);
  drains->drain(target("t1:3/plane:0"), node::DrainedBy::kCommand);
  EXPECT_EQ(drains->list()[0].nodes, 4U);
  drains->take_back();
  EXPECT_EQ(drains->list()[0].nodes, 1U);
}

TEST_F(Drains, ANodeThatRefusesLeavesAllAsTheyWere) {
  const auto drains = open();
  ASSERT_EQ(state(2)->update([&](NodeSnapshot& s) {
    for (std::size_t i = 0; i < node::kMaxDrainedParts; ++i)
      s.drained["x" + std::to_string(i)] = {};
    return 0;
  }),
            0);
  EXPECT_THROW(drains->drain(target("t1:3/plane:0"), node::DrainedBy::kCommand), CtlError);
  for (const FabricDrains::Entry& entry : drains->list())
    EXPECT_NE(entry.name, "t1:3/plane:0");
}

TEST_F(Drains, WaitForProcessesThatFollowAnOlderState) {
  const auto process = state(2);
  process->note_applied(process->snapshot()->version, 0);
  const auto drains = open();
  drains->drain(target("t1:3/plane:0"), node::DrainedBy::kCommand);
  auto progress = drains->progress();
  ASSERT_EQ(progress.behind.size(), 1U);
  EXPECT_EQ(progress.behind[0].host, 2U);
  EXPECT_EQ(progress.behind[0].pid, static_cast<std::uint64_t>(getpid()));
  process->note_applied(process->snapshot()->version, 0);
  progress = drains->progress();
  EXPECT_TRUE(progress.behind.empty());
  EXPECT_FALSE(progress.stranded);
}

TEST_F(Drains, TellQueuePairsThatLoseTheirLastPathFromThoseThatHadNone) {
  const auto process = state(2);
  process->note_applied(process->snapshot()->version, 3);
  const auto drains = open();
  drains->drain(target("t1:3/plane:0"), node::DrainedBy::kCommand);
  process->note_applied(process->snapshot()->version, 3);
  EXPECT_FALSE(drains->progress().stranded);
  process->note_applied(process->snapshot()->version, 4);
  ASSERT_TRUE(drains->progress().stranded);
  EXPECT_EQ(drains->progress().stranded->queue_pairs, 1U);
}

TEST_F(Drains, CountDisabledPortsAsOutOfUse) {
  const auto drains = open();
  EXPECT_FALSE(drains->would_cut_off(target("plane:1")));
  ASSERT_EQ(state(3)->update([](NodeSnapshot& s) {
    s.ports_enabled = s.ports_enabled.without(PortId{1});
    return 0;
  }),
            0);
  const auto pair = drains->would_cut_off(target("plane:1"));
  ASSERT_TRUE(pair);
  EXPECT_EQ(pair->other, 3U);
}

TEST_F(Drains, PartsOfAnotherFabricAreSaidAndCanBeGivenBack) {
  ASSERT_EQ(state(0)->update([](NodeSnapshot& s) {
    s.drained["t1:9/plane:0"] = {};
    return 0;
  }),
            0);
  const auto drains = open();
  EXPECT_THROW(drains->would_cut_off(target("plane:1")), CtlError);
  drains->undrain("t1:9/plane:0");
  EXPECT_FALSE(drains->would_cut_off(target("plane:1")));
}

TEST_F(Drains, NeedDevicesThatChooseTheWayOfTheirPackets) {
  node::DeviceConfig config = device(0);
  config.planes.resize(1);
  EXPECT_THROW(open_drain_node(topology_, 0, config), fabric::InputError);
  config = device(0);
  config.srv6_routes.clear();
  EXPECT_THROW(open_drain_node(topology_, 0, config), fabric::InputError);
  config = device(0);
  config.backend = node::BackendKind::kUdp;
  EXPECT_THROW(open_drain_node(topology_, 0, config), fabric::InputError);
}

}  // namespace
}  // namespace mrc::controller
