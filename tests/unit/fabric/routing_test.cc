#include "fabric/routing.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <set>

#include "fabric/input_error.h"
#include "fabric_samples.h"

namespace mrc::fabric {
namespace {

std::vector<Path> all_paths(const Topology& topology) {
  std::vector<Path> paths;
  const unsigned t2_choices = std::max(topology.t2_per_group(), 1u);
  for (unsigned plane = 0; plane < topology.planes(); ++plane) {
    for (unsigned way = 0; way < topology.paths_per_plane(); ++way) {
      paths.push_back({static_cast<std::uint8_t>(plane),
                       static_cast<std::uint16_t>(way / t2_choices),
                       static_cast<std::uint16_t>(way % t2_choices)});
    }
  }
  return paths;
}

// Follows a packet from its host; `next` decides at each switch. Stops at a host, at a drop (then
// the last link is kNoLink) and after ten hops.
template <typename Next>
std::vector<LinkId> walk(const Topology& topology, unsigned plane, unsigned source, Next&& next) {
  std::vector<LinkId> links{topology.host_up(plane, source)};
  while (links.size() < 10) {
    const Node at = topology.describe(links.back()).to;
    if (at.kind == NodeKind::kHost) break;
    links.push_back(next(at));
    if (links.back() == kNoLink) break;
  }
  return links;
}

// What real switches do with the carrier address: compare, shift, look up.
std::vector<LinkId> walk_carrier(const Routing& routing, unsigned plane, unsigned source,
                                 wire::IpAddress carrier) {
  return walk(routing.topology(), plane, source, [&](const Node& at) {
    const wire::Usid active = wire::active_usid(carrier);
    const wire::Usid next = wire::usid_at(carrier, 1);
    carrier = wire::shift_carrier(carrier);
    return routing.next_by_usid(at, active, next);
  });
}

std::vector<LinkId> as_vector(const Routing::LinkList& list) {
  return {list.links.begin(), list.links.begin() + list.count};
}

template <typename Check>
void for_every_path(const Check& check) {
  for (const TopologySpec& spec : sample_fabrics()) {
    const Topology topology(spec);
    const Routing routing(topology);
    for (unsigned source = 0; source < spec.hosts; ++source) {
      for (unsigned destination = 0; destination < spec.hosts; ++destination) {
        if (source == destination) continue;
        for (const Path& path : all_paths(topology))
          check(routing, source, destination, path);
      }
    }
  }
}

TEST(Routing, UsidsLeadHopByHopAlongTheLinksOfThePath) {
  for_every_path([](const Routing& routing, unsigned source, unsigned destination, Path path) {
    const std::vector<LinkId> links = as_vector(routing.links(source, destination, path));
    const wire::IpAddress carrier = routing.carrier(source, destination, path);
    ASSERT_EQ(walk_carrier(routing, path.plane, source, carrier), links);
    ASSERT_EQ(links.size(), routing.topology().hops(source, destination));
    ASSERT_EQ(routing.topology().describe(links.back()).to,
              (Node{NodeKind::kHost, path.plane, destination}));
  });
}

TEST(Routing, ALinkFollowsWhereTheLastOneEnded) {
  for_every_path([](const Routing& routing, unsigned source, unsigned destination, Path path) {
    const Topology& topology = routing.topology();
    Node at{NodeKind::kHost, path.plane, source};
    for (const LinkId link : as_vector(routing.links(source, destination, path))) {
      ASSERT_EQ(topology.describe(link).from, at);
      at = topology.describe(link).to;
    }
  });
}

TEST(Routing, DifferentPathsAcrossTheFabricShareNoLinkInTheMiddle) {
  const Topology topology(three_tier());
  const Routing routing(topology);
  std::map<LinkId, unsigned> uses;
  for (const Path& path : all_paths(topology)) {
    for (const LinkId link : as_vector(routing.links(0, 23, path)))
      ++uses[link];
  }
  // Nine ways, each with its own T2; three of them share the cable to their T1.
  EXPECT_EQ(uses[topology.host_up(0, 0)], 9u);
  EXPECT_EQ(uses[topology.t0_up(0, 0, 1)], 3u);
  EXPECT_EQ(uses[topology.t1_up(0, 1, 2)], 1u);
  EXPECT_EQ(uses.size(), 1u + 3 + 9 + 9 + 3 + 1);
}

TEST(Routing, ACarrierIsReadBackAsThePathThatWroteIt) {
  for_every_path([](const Routing& routing, unsigned source, unsigned destination, Path path) {
    const Topology& topology = routing.topology();
    const wire::IpAddress carrier = routing.carrier(source, destination, path);
    unsigned source_t0 = 0;
    unsigned host = 0;
    Path read;
    ASSERT_TRUE(routing.read_carrier(carrier, source_t0, host, read));
    ASSERT_EQ(source_t0, topology.t0_of(source));
    ASSERT_EQ(host, destination);
    // Of the path only what the packet meets is in the carrier.
    const unsigned hops = topology.hops(source, destination);
    ASSERT_EQ(read.plane, path.plane);
    ASSERT_EQ(read.up, hops > 2 ? path.up : 0);
    ASSERT_EQ(read.t2, hops > 4 ? path.t2 : 0);
  });
}

TEST(Routing, CarriersThatNoHostSendsAreNotRead) {
  const Topology topology(three_tier());
  const Routing routing(topology);
  const auto reads = [&routing](std::string_view text) {
    unsigned source_t0 = 0;
    unsigned host = 0;
    Path path;
    return routing.read_carrier(wire::parse_address(text).value(), source_t0, host, path);
  };
  EXPECT_TRUE(reads("fc00:1:1000:100::"));
  EXPECT_TRUE(reads("fc00:1:1000:8000:1001:100::"));
  EXPECT_TRUE(reads("fc00:1:1000:8001:c005:8004:1005:103"));
  EXPECT_FALSE(reads("fc00:2:1000:100::")) << "a plane that does not exist";
  EXPECT_FALSE(reads("fc00:101:1000:100::")) << "a plane 256 further on";
  EXPECT_FALSE(reads("::")) << "no uSID";
  EXPECT_FALSE(reads("fc00:1:1000::")) << "no host";
  EXPECT_FALSE(reads("fc00:1:1000:8000:100::")) << "three uSIDs";
  EXPECT_FALSE(reads("fc00:1:1000:104::")) << "fifth host of a T0 that has four";
  EXPECT_FALSE(reads("fc00:1:1006:100::")) << "seventh T0 of six";
  EXPECT_FALSE(reads("fc00:1:1000:8000:1000:100::")) << "to its own T0 by way of a T1";
  EXPECT_FALSE(reads("fc00:1:1000:8003:1001:100::")) << "a T1 of another pod";
  EXPECT_FALSE(reads("fc00:1:1000:8000:1003:100::")) << "to another pod without a T2";
  EXPECT_FALSE(reads("fc00:1:1000:8000:c003:8003:1003:100")) << "a T2 of another group";
  EXPECT_FALSE(reads("fc00:1:1000:8000:c000:8004:1003:100")) << "down through another group";
  EXPECT_FALSE(reads("fc00:1:1000:100:0:1::")) << "something behind the end";
}

TEST(Routing, EntropyAndPathAreTwoNamesForOneThing) {
  for (const TopologySpec& spec : sample_fabrics()) {
    const Topology topology(spec);
    const Routing routing(topology);
    std::set<std::uint32_t> seen;
    for (const Path& path : all_paths(topology)) {
      const std::uint32_t entropy = routing.entropy_of(path);
      seen.insert(entropy);
      Path read;
      ASSERT_TRUE(routing.path_of(entropy, read));
      ASSERT_EQ(read, path);
    }
    ASSERT_EQ(seen.size(), std::size_t{topology.planes()} * topology.paths_per_plane());
    unsigned known = 0;
    for (std::uint32_t entropy = 0; entropy < (spec.planes + 2) << 16; ++entropy) {
      Path path;
      if (routing.path_of(entropy, path)) ++known;
    }
    ASSERT_EQ(known, seen.size());
  }
}

TEST(Routing, TheBitsOfAnEntropyValueAreT1ThenT2ThenPlane) {
  const Topology topology(three_tier());  // three T1s: two bits
  const Routing routing(topology);
  EXPECT_EQ(routing.entropy_of({.plane = 0, .up = 2, .t2 = 1}), 0x0001'0006u);
  const Topology wide(two_tier());
  EXPECT_EQ(Routing(wide).entropy_of({.plane = 1, .up = 3}), 0x0002'0003u);
}

TEST(Routing, ATableHoldsTheNeighboursAndNothingElse) {
  for (const TopologySpec& spec : sample_fabrics()) {
    const Topology topology(spec);
    const Routing routing(topology);
    for (const Node& at : all_switches(topology)) {
      std::map<wire::Usid, LinkId> table;
      for (const Route& route : routing.table(at)) {
        ASSERT_EQ(topology.describe(route.link).from, at);
        ASSERT_EQ(topology.describe(route.link).to, route.next);
        ASSERT_TRUE(table.emplace(route.usid, route.link).second);
      }
      const wire::Usid own = routing.usid_of(at);
      for (unsigned usid = 0; usid <= 0xFFFF; ++usid) {
        const wire::Usid next{static_cast<std::uint16_t>(usid)};
        const auto known = table.find(next);
        ASSERT_EQ(routing.next_by_usid(at, own, next),
                  known == table.end() ? kNoLink : known->second);
      }
    }
  }
}

TEST(Routing, ASwitchForwardsOnlyWhatNamesItFirst) {
  const Topology topology(three_tier());
  const Routing routing(topology);
  for (const Node& at : all_switches(topology)) {
    const wire::Usid next = routing.table(at).front().usid;
    for (const Node& other : all_switches(topology)) {
      const LinkId link = routing.next_by_usid(at, routing.usid_of(other), next);
      ASSERT_EQ(link == kNoLink, !(at == other));
    }
    EXPECT_EQ(routing.next_by_usid(at, wire::kNoUsid, next), kNoLink);
  }
  EXPECT_EQ(routing.next_by_usid({NodeKind::kHost, 0, 0}, wire::Usid{0x100}, wire::Usid{0x1000}),
            kNoLink);
}

TEST(Routing, AStructuredEvTakesThePathItNames) {
  for_every_path([](const Routing& routing, unsigned source, unsigned destination, Path path) {
    const std::uint32_t entropy = routing.entropy_of(path);
    const auto taken = walk(routing.topology(), path.plane, source, [&](const Node& at) {
      return routing.next_by_structured_ev(at, destination, entropy);
    });
    ASSERT_EQ(taken, as_vector(routing.links(source, destination, path)));
  });
}

TEST(Routing, AStructuredEvOfNoPathIsDroppedOnTheWayUp) {
  const Topology topology(three_tier());
  const Routing routing(topology);
  EXPECT_EQ(routing.next_by_structured_ev({NodeKind::kT0, 0, 0}, 23, 0x1'0003), kNoLink);
  EXPECT_EQ(routing.next_by_structured_ev({NodeKind::kT1, 0, 0}, 23, 0x1'000C), kNoLink);
  EXPECT_EQ(routing.next_by_structured_ev({NodeKind::kHost, 0, 0}, 23, 0x1'0000), kNoLink);
  EXPECT_EQ(routing.next_by_structured_ev({NodeKind::kT1, 0, 3}, 23, 0x1'000F),
            topology.t1_down(0, 3, 2, 0));
}

TEST(Routing, AHashedPacketArrivesWhateverItsEntropy) {
  for (const TopologySpec& spec : sample_fabrics()) {
    const Topology topology(spec);
    const Routing routing(topology);
    for (unsigned destination = 1; destination < spec.hosts; ++destination) {
      for (std::uint32_t entropy = 0; entropy < 32; ++entropy) {
        const auto taken = walk(topology, 0, 0, [&](const Node& at) {
          return routing.next_by_hash(at, 0, destination, entropy);
        });
        ASSERT_EQ(taken.size(), topology.hops(0, destination));
        ASSERT_EQ(taken.back(), topology.host_down(0, destination));
      }
    }
  }
}

TEST(Routing, TheHashSpreadsEntropyValuesEvenlyAtEveryTier) {
  const Topology topology({.planes = 1, .hosts = 64, .t0 = 16, .t1 = 32, .pods = 4, .t2 = 64});
  const Routing routing(topology);
  std::map<LinkId, unsigned> uses;
  constexpr unsigned kPackets = 64'000;
  for (std::uint32_t entropy = 0; entropy < kPackets; ++entropy) {
    const auto taken = walk(
        topology, 0, 3, [&](const Node& at) { return routing.next_by_hash(at, 3, 60, entropy); });
    ++uses[taken[2]];
  }
  // 8 T1s with 8 T2s each: 1,000 packets on every way, give or take five standard deviations.
  EXPECT_EQ(uses.size(), 64u);
  for (const auto& [link, count] : uses) {
    EXPECT_GT(count, 840u) << link_name(topology, link);
    EXPECT_LT(count, 1160u) << link_name(topology, link);
  }
}

TEST(Routing, TheHashDependsOnSourceDestinationAndSwitch) {
  const Topology topology({.planes = 2, .hosts = 64, .t0 = 4, .t1 = 64});
  const Routing routing(topology);
  const Node at{NodeKind::kT0, 0, 0};
  std::set<LinkId> by_source, by_destination;
  unsigned alike = 0;
  for (unsigned i = 0; i < 16; ++i) {
    by_source.insert(routing.next_by_hash(at, i, 63, 7));
    by_destination.insert(routing.next_by_hash(at, 0, 48 + i, 7));
    const LinkId here = routing.next_by_hash(at, i, 63, 7);
    const LinkId there = routing.next_by_hash({NodeKind::kT0, 1, 0}, i, 63, 7);
    if (topology.describe(here).to.index == topology.describe(there).to.index) ++alike;
  }
  EXPECT_GT(by_source.size(), 8u);
  EXPECT_GT(by_destination.size(), 8u);
  EXPECT_LT(alike, 4u);
}

TEST(Routing, FabricsBeyondTheNumberPlanAreRefused) {
  const auto objection = [](const TopologySpec& spec, const wire::UsidPlan& plan) {
    const Topology topology(spec);
    try {
      const Routing routing(topology, plan);
      return std::string();
    } catch (const InputError& error) {
      return std::string(error.what());
    }
  };
  using testing::HasSubstr;
  EXPECT_THAT(objection({.hosts = 4000, .t0 = 1, .t1 = 1}, {}),
              HasSubstr("4000 hosts per T0 but only 3840 uSIDs"));
  EXPECT_THAT(objection({.hosts = 30000, .t0 = 30000, .t1 = 1}, {}), HasSubstr("T0 switches"));
  EXPECT_THAT(objection({.hosts = 1, .t0 = 1, .t1 = 20000}, {}), HasSubstr("T1 switches"));
  EXPECT_THAT(objection({.hosts = 1, .t0 = 1, .t1 = 1, .t2 = 9000}, {}), HasSubstr("T2 switches"));
  EXPECT_THAT(objection({.hosts = 1, .t0 = 1, .t1 = 257, .t2 = 129 * 257},
                        {.host_port = {1, 9}, .t0 = {10, 9}, .t1 = {20, 257}, .t2 = {300, 60000}}),
              HasSubstr("33153 paths per plane do not fit"));
  EXPECT_THAT(objection(two_tier(), {.t0 = {0, 5}}), HasSubstr("uSID plan"));
  EXPECT_EQ(objection(two_tier(), {}), "");
}

}  // namespace
}  // namespace mrc::fabric
