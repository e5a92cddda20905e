#include "fabric/topology.h"

#include <algorithm>
#include <utility>

#include "base/assert.h"
#include "fabric/input_error.h"

namespace mrc::fabric {
namespace {

std::string number(std::uint64_t n) { return std::to_string(n); }

void require(bool holds, const std::string& what) {
  if (!holds) throw InputError("topology: " + what);
}

}  // namespace

const char* node_kind_name(NodeKind kind) {
  switch (kind) {
    case NodeKind::kHost:
      return "host";
    case NodeKind::kT0:
      return "t0";
    case NodeKind::kT1:
      return "t1";
    case NodeKind::kT2:
      return "t2";
  }
  return "?";
}

Topology::Topology(const TopologySpec& spec) : spec_(spec) {
  check();
  hosts_per_t0_ = spec_.hosts / spec_.t0;
  t0_per_pod_ = spec_.t0 / spec_.pods;
  t1_per_pod_ = spec_.t1 / spec_.pods;
  t2_per_group_ = spec_.t2 / t1_per_pod_;
  t0_up_ = 2 * spec_.hosts;
  t1_down_ = t0_up_ + spec_.t0 * uplinks_per_t0();
  t1_up_ = t1_down_ + spec_.t1 * t0_per_pod_ * spec_.cables;
  t2_down_ = t1_up_ + spec_.t1 * t2_per_group_;
  links_per_plane_ = t2_down_ + spec_.t2 * (three_tier() ? spec_.pods : 0);
}

void Topology::check() const {
  const TopologySpec& s = spec_;
  require(s.planes >= 1 && s.planes <= kMaxPorts,
          "planes must be 1 to 16, not " + number(s.planes));
  require(s.hosts >= 1, "at least one host is needed");
  require(s.t0 >= 1, "at least one T0 switch is needed");
  require(s.t1 >= 1, "at least one T1 switch is needed");
  require(s.cables >= 1 && s.cables <= 65'536,
          "cables must be 1 to 65536, not " + number(s.cables));
  require(s.cables == 1 || s.t2 == 0, "several cables between two switches need two tiers");
  require(s.hosts % s.t0 == 0,
          number(s.hosts) + " hosts cannot be spread evenly over " + number(s.t0) + " T0 switches");
  require(s.pods >= 1, "at least one pod is needed");
  require(s.t2 > 0 || s.pods == 1, "pods need a third tier (t2)");
  require(s.t0 % s.pods == 0 && s.t1 % s.pods == 0,
          number(s.t0) + " T0 and " + number(s.t1) + " T1 switches cannot be spread evenly over " +
              number(s.pods) + " pods");
  require(s.t2 == 0 || (s.t1 >= s.pods && s.t2 % (s.t1 / s.pods) == 0),
          number(s.t2) + " T2 switches cannot be shared evenly by the " + number(s.t1 / s.pods) +
              " T1s of a pod");
  for (const LinkClass& link : {s.host_link, s.t0_t1_link, s.t1_t2_link}) {
    require(link.bits_per_second >= 1'000'000 && link.bits_per_second <= 10'000'000'000'000,
            "a link rate must be between 1 Mb/s and 10 Tb/s");
    require(link.delay_ps >= 1 && link.delay_ps <= 1'000'000'000'000,
            "a link delay must be between 1 ps and 1 s");
  }
  const std::uint64_t pairs = std::uint64_t{s.t0} * s.t1 / s.pods;
  require(pairs < 0x4000'0000, "too many links");
  const std::uint64_t cables =
      std::uint64_t{s.hosts} + pairs * s.cables + std::uint64_t{s.t2} * s.pods;
  require(2 * cables * s.planes < 0x4000'0000, "too many links");
}

const LinkClass& Topology::link_class(LinkTier tier) const {
  switch (tier) {
    case LinkTier::kHost:
      return spec_.host_link;
    case LinkTier::kT0T1:
      return spec_.t0_t1_link;
    case LinkTier::kT1T2:
      return spec_.t1_t2_link;
  }
  return spec_.host_link;
}

Link Topology::describe(LinkId id) const {
  MRC_ASSERT(index(id) < link_count());
  const auto plane = static_cast<std::uint8_t>(index(id) / links_per_plane_);
  std::uint32_t n = index(id) % links_per_plane_;
  const auto node = [plane](NodeKind kind, std::uint32_t i) { return Node{kind, plane, i}; };
  if (n < spec_.hosts)
    return {node(NodeKind::kHost, n), node(NodeKind::kT0, t0_of(n)), LinkTier::kHost};
  if (n < t0_up_) {
    n -= spec_.hosts;
    return {node(NodeKind::kT0, t0_of(n)), node(NodeKind::kHost, n), LinkTier::kHost};
  }
  if (n < t1_down_) {
    n -= t0_up_;
    const std::uint32_t t0 = n / uplinks_per_t0();
    const std::uint32_t up = n % uplinks_per_t0();
    const std::uint32_t t1 = pod_of_t0(t0) * t1_per_pod_ + t1_of_uplink(up);
    return {node(NodeKind::kT0, t0), node(NodeKind::kT1, t1), LinkTier::kT0T1, cable_of_uplink(up)};
  }
  if (n < t1_up_) {
    n -= t1_down_;
    const std::uint32_t cable = n % spec_.cables;
    n /= spec_.cables;
    const std::uint32_t t1 = n / t0_per_pod_;
    const std::uint32_t t0 = t1 / t1_per_pod_ * t0_per_pod_ + n % t0_per_pod_;
    return {node(NodeKind::kT1, t1), node(NodeKind::kT0, t0), LinkTier::kT0T1, cable};
  }
  if (n < t2_down_) {
    n -= t1_up_;
    const std::uint32_t t1 = n / t2_per_group_;
    const std::uint32_t t2 = t1 % t1_per_pod_ * t2_per_group_ + n % t2_per_group_;
    return {node(NodeKind::kT1, t1), node(NodeKind::kT2, t2), LinkTier::kT1T2};
  }
  n -= t2_down_;
  const std::uint32_t t2 = n / spec_.pods;
  const std::uint32_t t1 = n % spec_.pods * t1_per_pod_ + t2 / t2_per_group_;
  return {node(NodeKind::kT2, t2), node(NodeKind::kT1, t1), LinkTier::kT1T2};
}

LinkId Topology::reverse(LinkId id) const {
  const Link l = describe(id);
  return find(l.to, l.from, l.cable);
}

LinkId Topology::find(const Node& from, const Node& to, unsigned cable) const {
  using enum NodeKind;
  if (from.plane != to.plane || from.plane >= spec_.planes) return kNoLink;
  const unsigned plane = from.plane;
  const auto exists = [this](const Node& n) {
    const unsigned count[] = {spec_.hosts, spec_.t0, spec_.t1, spec_.t2};
    return n.index < count[static_cast<unsigned>(n.kind)];
  };
  if (!exists(from) || !exists(to)) return kNoLink;
  const bool may_be_several =
      std::min(from.kind, to.kind) == kT0 && std::max(from.kind, to.kind) == kT1;
  if (cable >= (may_be_several ? spec_.cables : 1)) return kNoLink;
  if (from.kind == kHost && to.kind == kT0)
    return t0_of(from.index) == to.index ? host_up(plane, from.index) : kNoLink;
  if (from.kind == kT0 && to.kind == kHost)
    return t0_of(to.index) == from.index ? host_down(plane, to.index) : kNoLink;
  if (from.kind == kT0 && to.kind == kT1)
    return pod_of_t0(from.index) == to.index / t1_per_pod_
               ? t0_up(plane, from.index, to.index % t1_per_pod_ * spec_.cables + cable)
               : kNoLink;
  if (from.kind == kT1 && to.kind == kT0)
    return pod_of_t0(to.index) == from.index / t1_per_pod_
               ? t1_down(plane, from.index, to.index % t0_per_pod_, cable)
               : kNoLink;
  if (from.kind == kT1 && to.kind == kT2)
    return to.index / t2_per_group_ == from.index % t1_per_pod_
               ? t1_up(plane, from.index, to.index % t2_per_group_)
               : kNoLink;
  if (from.kind == kT2 && to.kind == kT1)
    return from.index / t2_per_group_ == to.index % t1_per_pod_
               ? t2_down(plane, from.index, to.index / t1_per_pod_)
               : kNoLink;
  return kNoLink;
}

unsigned Topology::hops(unsigned source, unsigned destination) const {
  if (t0_of(source) == t0_of(destination)) return 2;
  return pod_of_t0(t0_of(source)) == pod_of_t0(t0_of(destination)) ? 4 : 6;
}

unsigned Topology::longest_hops() const {
  if (spec_.t0 == 1) return 2;
  return three_tier() && spec_.pods > 1 ? 6 : 4;
}

unsigned Topology::paths_per_plane() const {
  return uplinks_per_t0() * (three_tier() ? t2_per_group_ : 1);
}

std::vector<Node> all_switches(const Topology& topology) {
  const TopologySpec& spec = topology.spec();
  const std::pair<NodeKind, unsigned> tiers[] = {
      {NodeKind::kT0, spec.t0}, {NodeKind::kT1, spec.t1}, {NodeKind::kT2, spec.t2}};
  std::vector<Node> nodes;
  nodes.reserve(topology.switches());
  for (unsigned plane = 0; plane < spec.planes; ++plane) {
    for (const auto& [kind, count] : tiers) {
      for (unsigned i = 0; i < count; ++i)
        nodes.push_back({kind, static_cast<std::uint8_t>(plane), i});
    }
  }
  return nodes;
}

std::string node_name(const Node& node) {
  return std::string(node_kind_name(node.kind)) + ":" + number(node.index) +
         "/plane:" + number(node.plane);
}

std::string link_name(const Topology& topology, LinkId id) {
  const Link l = topology.describe(id);
  const bool several = l.tier == LinkTier::kT0T1 && topology.cables() > 1;
  return std::string(node_kind_name(l.from.kind)) + ":" + number(l.from.index) + ">" +
         node_kind_name(l.to.kind) + ":" + number(l.to.index) +
         (several ? "/cable:" + number(l.cable) : "") + "/plane:" + number(l.to.plane);
}

}  // namespace mrc::fabric
