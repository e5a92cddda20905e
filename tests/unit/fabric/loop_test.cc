#include "fabric/loop.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

#include "fabric_samples.h"
#include "wire/srv6.h"

namespace mrc::fabric {
namespace {

// The links a packet with this carrier takes, by the static tables of the switches.
std::vector<LinkId> follow(const Routing& routing, const Loop& loop) {
  const Topology& topology = routing.topology();
  wire::IpAddress carrier = loop_carrier(routing, loop);
  std::vector<LinkId> links{topology.host_up(loop.path.plane, loop.host)};
  while (links.size() < 10) {
    const Node at = topology.describe(links.back()).to;
    if (at.kind == NodeKind::kHost) break;
    const wire::Usid own = wire::active_usid(carrier);
    carrier = wire::shift_carrier(carrier);
    links.push_back(routing.next_by_usid(at, own, wire::active_usid(carrier)));
    if (links.back() == kNoLink) break;
  }
  return links;
}

std::set<std::string> names_of(const std::vector<Crossing>& crossed) {
  std::set<std::string> names;
  for (const Crossing& crossing : crossed)
    names.insert(part_name(crossing.part));
  return names;
}

TEST(Loop, LeadsBackToItsHostOverThePartsItNames) {
  for (const TopologySpec& spec : sample_fabrics()) {
    const Topology topology(spec);
    const Routing routing(topology);
    for (unsigned host = 0; host < topology.hosts(); ++host) {
      for (const Loop& loop : loops_of(topology, host, true)) {
        ASSERT_TRUE(exists(topology, loop));
        const std::vector<LinkId> links = follow(routing, loop);
        ASSERT_NE(links.back(), kNoLink);
        const Node end = topology.describe(links.back()).to;
        EXPECT_EQ(end, (Node{NodeKind::kHost, loop.path.plane, host}));
        EXPECT_EQ(links.size(), 2 * static_cast<unsigned>(loop.turn));
        std::set<std::string> crossed;
        for (const LinkId id : links) {
          const Link link = topology.describe(id);
          const bool up =
              static_cast<unsigned>(link.from.kind) < static_cast<unsigned>(link.to.kind);
          const Node& upper = up ? link.to : link.from;
          const bool several = link.tier == LinkTier::kT0T1 && topology.cables() > 1;
          crossed.insert(part_name({upper, up ? link.from : link.to, true,
                                    several ? std::optional(link.cable) : std::nullopt}));
          crossed.insert(part_name({upper, {}, false, {}}));
        }
        EXPECT_EQ(crossed, names_of(crossings(topology, loop)));
      }
    }
  }
}

TEST(Loop, CountsTheAnswerOverTheT0) {
  const Topology topology(two_tier());
  const Loop loop{.host = 5, .turn = NodeKind::kT1, .path = {.plane = 1, .up = 2}};
  const std::vector<Crossing> crossed = crossings(topology, loop);
  ASSERT_EQ(crossed.size(), 4u);
  EXPECT_EQ(part_name(crossed[0].part), "host:5/plane:1");
  EXPECT_EQ(crossed[0].times, 4u);
  EXPECT_EQ(part_name(crossed[1].part), "t0:1/plane:1");
  EXPECT_EQ(crossed[1].times, 3u);
  EXPECT_EQ(part_name(crossed[2].part), "t0:1/t1:2/plane:1");
  EXPECT_EQ(crossed[2].times, 2u);
  EXPECT_EQ(part_name(crossed[3].part), "t1:2/plane:1");
  EXPECT_EQ(crossed[3].times, 1u);
}

TEST(Loop, OfSeveralCablesCrossesTheOneOfItsUplink) {
  const Topology topology({.planes = 1, .hosts = 4, .t0 = 2, .t1 = 2, .cables = 3});
  const Routing routing(topology);
  const Loop loop{.host = 2, .turn = NodeKind::kT1, .path = {.up = 5}};
  EXPECT_EQ(part_name(crossings(topology, loop)[2].part), "t0:1/t1:1/cable:2/plane:0");
  EXPECT_EQ(part_name(crossings(topology, loop)[3].part), "t1:1/plane:0");
  EXPECT_EQ(wire::format_address(loop_carrier(routing, loop)).view(),
            "fc00:1:1003:8005:1005:100::");
  EXPECT_FALSE(exists(topology, {.host = 0, .turn = NodeKind::kT1, .path = {.up = 6}}));
}

TEST(Loop, SamplesOfTheHostsOfAT0CoverAllT1s) {
  for (const unsigned t1s : {1u, 3u, 4u, 7u, 32u, 100u}) {
    const Topology topology({.planes = 2, .hosts = 16, .t0 = 2, .t1 = t1s});
    std::set<std::pair<unsigned, unsigned>> covered;
    for (unsigned host = 8; host < 16; ++host) {
      const std::vector<Loop> loops = loops_of(topology, host, false);
      EXPECT_LE(loops.size(), 2 * (1 + std::max(4u, (t1s + 7) / 8)));
      for (const Loop& loop : loops)
        if (loop.turn == NodeKind::kT1) covered.insert({loop.path.plane, loop.path.up});
    }
    EXPECT_EQ(covered.size(), 2 * t1s);
  }
}

TEST(Loop, KnowsWhatTheFabricLacks) {
  const Topology topology(two_tier());
  EXPECT_FALSE(exists(topology, {.host = 16}));
  EXPECT_FALSE(exists(topology, {.host = 0, .path = {.plane = 2}}));
  EXPECT_FALSE(exists(topology, {.host = 0, .turn = NodeKind::kT1, .path = {.up = 4}}));
  EXPECT_FALSE(exists(topology, {.host = 0, .turn = NodeKind::kT2}));
  EXPECT_FALSE(exists(topology, {.host = 0, .turn = NodeKind::kHost}));
}

}  // namespace
}  // namespace mrc::fabric
