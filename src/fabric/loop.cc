#include "fabric/loop.h"

#include <algorithm>
#include <array>
#include <span>

namespace mrc::fabric {
namespace {

// A host looks at no fewer uplinks than this in each plane, if there are as many.
constexpr unsigned kLeastSample = 4;

struct Way {
  Node host;
  Node t0;
  Node t1;
  Node t2;
};

Way way_of(const Topology& topology, const Loop& loop) {
  const unsigned t0 = topology.t0_of(loop.host);
  const unsigned in_pod = topology.t1_of_uplink(loop.path.up);
  const unsigned t1 = topology.pod_of_t0(t0) * topology.t1_per_pod() + in_pod;
  const unsigned t2 = in_pod * topology.t2_per_group() + loop.path.t2;
  const std::uint8_t plane = loop.path.plane;
  return {{NodeKind::kHost, plane, loop.host},
          {NodeKind::kT0, plane, t0},
          {NodeKind::kT1, plane, t1},
          {NodeKind::kT2, plane, t2}};
}

unsigned height(NodeKind turn) { return static_cast<unsigned>(turn); }

}  // namespace

std::string part_name(const Part& part) {
  const std::string plane = "/plane:" + std::to_string(part.upper.plane);
  const auto name = [](const Node& node) {
    return std::string(node_kind_name(node.kind)) + ":" + std::to_string(node.index);
  };
  if (!part.cable) return name(part.upper) + plane;
  if (part.lower.kind == NodeKind::kHost) return name(part.lower) + plane;
  const std::string which = part.number ? "/cable:" + std::to_string(*part.number) : "";
  return name(part.lower) + "/" + name(part.upper) + which + plane;
}

std::vector<Crossing> crossings(const Topology& topology, const Loop& loop) {
  const Way way = way_of(topology, loop);
  const std::array<Node, 4> nodes = {way.host, way.t0, way.t1, way.t2};
  std::vector<Crossing> list;
  for (unsigned tier = 1; tier <= height(loop.turn); ++tier) {
    // The answer turns at the T0 whatever the probe did.
    const unsigned answer = tier == 1 ? 1 : 0;
    const unsigned visits = tier == height(loop.turn) ? 1 : 2;
    std::optional<unsigned> number;
    if (nodes[tier].kind == NodeKind::kT1 && topology.cables() > 1)
      number = topology.cable_of_uplink(loop.path.up);
    list.push_back({{nodes[tier], nodes[tier - 1], true, number}, 2 + 2 * answer});
    list.push_back({{nodes[tier], {}, false, {}}, visits + answer});
  }
  return list;
}

wire::IpAddress loop_carrier(const Routing& routing, const Loop& loop) {
  const Way way = way_of(routing.topology(), loop);
  const unsigned cable = routing.topology().cable_of_uplink(loop.path.up);
  std::vector<wire::Usid> usids;
  usids.push_back(routing.usid_of(way.t0));
  if (height(loop.turn) >= height(NodeKind::kT1)) usids.push_back(routing.usid_of(way.t1, cable));
  if (loop.turn == NodeKind::kT2) {
    usids.push_back(routing.usid_of(way.t2));
    usids.push_back(routing.usid_of(way.t1, cable));
  }
  if (loop.turn != NodeKind::kT0) usids.push_back(routing.usid_of(way.t0, cable));
  usids.push_back(routing.usid_of(way.host));
  return wire::build_carrier(routing.block_of(loop.path.plane), usids).value();
}

std::vector<Loop> loops_of(const Topology& topology, unsigned host, bool all) {
  const unsigned ups = topology.uplinks_per_t0();
  const unsigned hosts = topology.hosts_per_t0();
  const unsigned place = topology.place_at_t0(host);
  const unsigned share = std::max(kLeastSample, (ups + hosts - 1) / hosts);
  const unsigned count = all ? ups : std::min(ups, share);
  std::vector<Loop> loops;
  for (unsigned plane = 0; plane < topology.planes(); ++plane) {
    Loop loop{.host = host};
    loop.path.plane = static_cast<std::uint8_t>(plane);
    loops.push_back(loop);
    for (unsigned i = 0; i < count; ++i) {
      loop.turn = NodeKind::kT1;
      loop.path.up = static_cast<std::uint16_t>((place * count + i) % ups);
      loop.path.t2 = 0;
      loops.push_back(loop);
      loop.turn = NodeKind::kT2;
      const unsigned t2s = topology.t2_per_group();
      for (unsigned t2 = 0; t2 < t2s; ++t2) {
        if (!all && t2 != place % t2s) continue;
        loop.path.t2 = static_cast<std::uint16_t>(t2);
        loops.push_back(loop);
      }
    }
  }
  return loops;
}

bool exists(const Topology& topology, const Loop& loop) {
  const Path& path = loop.path;
  if (loop.host >= topology.hosts() || path.plane >= topology.planes()) return false;
  switch (loop.turn) {
    case NodeKind::kHost:
      return false;
    case NodeKind::kT0:
      return path.up == 0 && path.t2 == 0;
    case NodeKind::kT1:
      return path.up < topology.uplinks_per_t0() && path.t2 == 0;
    case NodeKind::kT2:
      return path.up < topology.uplinks_per_t0() && path.t2 < topology.t2_per_group();
  }
  return false;
}

}  // namespace mrc::fabric
