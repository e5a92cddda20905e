#include "fabric/drain.h"

#include <algorithm>

#include "fabric/input_error.h"
#include "fabric/node_text.h"

namespace mrc::fabric {
namespace {

[[noreturn]] void fail(const std::string& why) { throw InputError(why); }

std::vector<std::string_view> split_parts(std::string_view text) {
  std::vector<std::string_view> parts;
  for (;;) {
    const std::size_t slash = text.find('/');
    parts.push_back(text.substr(0, slash));
    if (slash == std::string_view::npos) return parts;
    text.remove_prefix(slash + 1);
  }
}

// One device; a star stands for several, which are not drained at once.
Node read_node(std::string_view text, const Topology& topology) {
  const NodeSet set = parse_node_set(text, topology);
  if (!set.number) fail(quoted(text) + " names several; one part is drained at a time");
  return {.kind = set.kind, .plane = 0, .index = *set.number};
}

unsigned read_plane(std::string_view text, const Topology& topology) {
  const std::optional<unsigned> plane = parse_plane(text, topology);
  if (!plane) fail(quoted(text) + " names several; one part is drained at a time");
  return *plane;
}

// Nothing where there is only one, which needs no number to be told apart.
std::optional<unsigned> read_cable(std::string_view text, const Topology& topology) {
  const std::optional<unsigned> cable = parse_cable(text, topology);
  if (!cable) fail(quoted(text) + " names several; leave it out for all cables between the two");
  return topology.cables() > 1 ? cable : std::nullopt;
}

std::string plain_name(const Node& node) {
  return std::string(node_kind_name(node.kind)) + ":" + std::to_string(node.index);
}

DrainTarget port_of(const Node& host, const std::string& plane) {
  return {.kind = DrainKind::kPort,
          .node = host,
          .lower = {},
          .cable = {},
          .plane = host.plane,
          .name = plain_name(host) + plane};
}

DrainTarget cable_of(Node one, Node other, std::optional<unsigned> cable, const std::string& plane,
                     std::string_view text, const Topology& topology) {
  if (topology.find(one, other, cable.value_or(0)) == kNoLink)
    fail("no cable is called " + quoted(text));
  if (one.kind > other.kind) std::swap(one, other);
  if (one.kind == NodeKind::kHost) return port_of(one, plane);
  return {.kind = DrainKind::kCable,
          .node = other,
          .lower = one,
          .cable = cable,
          .plane = one.plane,
          .name = plain_name(one) + "/" + plain_name(other) +
                  (cable ? "/cable:" + std::to_string(*cable) : "") + plane};
}

// Which links are out of use, by number.
using LinkMarks = std::vector<bool>;

void mark(const Topology& topology, std::span<const DrainTarget> targets, LinkMarks& marks) {
  for (const DrainTarget& target : targets)
    for (const LinkId link : links_of(target, topology))
      marks[index(link)] = true;
}

// Hosts at one T0 whose ports are in use on the same planes have the same ways to everybody.
struct HostGroup {
  PortMask planes;  // plane 0 is port 1
  unsigned first = 0;
  unsigned second = 0;  // another one of them; as `first` when there is none
};

PortId port_of_plane(unsigned plane) { return static_cast<PortId>(plane + 1); }

// Questions about a fabric without some of its links.
class Remainder {
 public:
  Remainder(const Routing& routing, const LinkMarks& marks) : routing_(&routing), marks_(&marks) {}

  PortMask planes_of(unsigned host) const {
    PortMask planes;
    for (unsigned plane = 0; plane < topology().planes(); ++plane)
      if (!(*marks_)[index(topology().host_up(plane, host))])
        planes = planes.with(port_of_plane(plane));
    return planes;
  }

  bool any_path(unsigned one, unsigned other) const {
    for (const PortId port : planes_of(one) & planes_of(other))
      if (crosses(one, other, static_cast<unsigned>(port) - 1)) return true;
    return false;
  }

 private:
  const Topology& topology() const { return routing_->topology(); }

  bool crosses(unsigned one, unsigned other, unsigned plane) const {
    const unsigned t2s = std::max(topology().t2_per_group(), 1U);
    for (unsigned way = 0; way < topology().paths_per_plane(); ++way) {
      const Path path{.plane = static_cast<std::uint8_t>(plane),
                      .up = static_cast<std::uint16_t>(way / t2s),
                      .t2 = static_cast<std::uint16_t>(way % t2s)};
      const Routing::LinkList list = routing_->links(one, other, path);
      const auto links = std::span(list.links).first(list.count);
      if (std::none_of(links.begin(), links.end(),
                       [&](LinkId link) { return (*marks_)[index(link)]; }))
        return true;
    }
    return false;
  }

  const Routing* routing_;
  const LinkMarks* marks_;
};

// Of each T0.
std::vector<HostGroup> groups_of(const Topology& topology, const Remainder& before,
                                 const Remainder& after, unsigned t0) {
  std::vector<HostGroup> groups;
  std::vector<PortMask> earlier;
  for (unsigned place = 0; place < topology.hosts_per_t0(); ++place) {
    const unsigned host = t0 * topology.hosts_per_t0() + place;
    if (host >= topology.hosts()) break;
    const PortMask planes = after.planes_of(host);
    const PortMask had = before.planes_of(host);
    std::size_t at = 0;
    while (at < groups.size() && !(groups[at].planes == planes && earlier[at] == had))
      ++at;
    if (at < groups.size()) {
      groups[at].second = host;
      continue;
    }
    groups.push_back({.planes = planes, .first = host, .second = host});
    earlier.push_back(had);
  }
  return groups;
}

}  // namespace

DrainTarget parse_drain_target(std::string_view text, const Topology& topology) {
  std::vector<std::string_view> parts = split_parts(text);
  if (parts.size() == 1 && parts[0].starts_with("plane:")) {
    const unsigned plane = read_plane(parts[0], topology);
    return {.kind = DrainKind::kPlane,
            .node = {},
            .lower = {},
            .cable = {},
            .plane = plane,
            .name = "plane:" + std::to_string(plane)};
  }
  unsigned plane = 0;
  const bool has_plane = parts.size() > 1 && parts.back().starts_with("plane:");
  if (has_plane) {
    plane = read_plane(parts.back(), topology);
    parts.pop_back();
  }
  std::optional<unsigned> cable;
  if (parts.size() == 3 && parts.back().starts_with("cable:")) {
    cable = read_cable(parts.back(), topology);
    parts.pop_back();
  }
  if (parts.size() > 2) fail(quoted(text) + " names no part; write a switch, a cable or a port");
  Node first = read_node(parts[0], topology);
  if (parts.size() == 1 && !has_plane && first.kind == NodeKind::kHost) {
    return {.kind = DrainKind::kHost,
            .node = first,
            .lower = {},
            .cable = {},
            .plane = 0,
            .name = plain_name(first)};
  }
  if (!has_plane && topology.planes() > 1) fail(quoted(text) + " names no plane; add /plane:N");
  const std::string suffix = "/plane:" + std::to_string(plane);
  first.plane = static_cast<std::uint8_t>(plane);
  if (parts.size() == 2) {
    Node second = read_node(parts[1], topology);
    second.plane = first.plane;
    return cable_of(first, second, cable, suffix, text, topology);
  }
  if (first.kind == NodeKind::kHost) return port_of(first, suffix);
  return {.kind = DrainKind::kSwitch,
          .node = first,
          .lower = {},
          .cable = {},
          .plane = plane,
          .name = plain_name(first) + suffix};
}

std::vector<LinkId> links_of(const DrainTarget& target, const Topology& topology) {
  const auto goes = [&](const Link& link) {
    switch (target.kind) {
      case DrainKind::kSwitch:
      case DrainKind::kPort:
        return link.from == target.node || link.to == target.node;
      case DrainKind::kCable:
        return (!target.cable || *target.cable == link.cable) &&
               ((link.from == target.node && link.to == target.lower) ||
                (link.from == target.lower && link.to == target.node));
      case DrainKind::kHost:
        return (link.from.kind == NodeKind::kHost && link.from.index == target.node.index) ||
               (link.to.kind == NodeKind::kHost && link.to.index == target.node.index);
      case DrainKind::kPlane:
        return link.from.plane == target.plane;
    }
    return false;
  };
  std::vector<LinkId> links;
  for (std::uint32_t i = 0; i < topology.link_count(); ++i)
    if (goes(topology.describe(LinkId{i}))) links.push_back(LinkId{i});
  return links;
}

std::optional<HostPair> pair_cut_off(const Routing& routing, std::span<const DrainTarget> drained,
                                     std::span<const DrainTarget> wanted) {
  const Topology& topology = routing.topology();
  LinkMarks marks_before(topology.link_count());
  mark(topology, drained, marks_before);
  LinkMarks marks_after = marks_before;
  mark(topology, wanted, marks_after);
  const Remainder before(routing, marks_before);
  const Remainder after(routing, marks_after);
  std::vector<HostGroup> all;
  for (unsigned t0 = 0; t0 < topology.spec().t0; ++t0) {
    const auto groups = groups_of(topology, before, after, t0);
    all.insert(all.end(), groups.begin(), groups.end());
  }
  for (auto one = all.begin(); one != all.end(); ++one) {
    for (auto other = one; other != all.end(); ++other) {
      const unsigned a = one->first;
      const unsigned b = one == other ? other->second : other->first;
      if (a == b) continue;  // the only one of its kind
      if (!after.any_path(a, b) && before.any_path(a, b)) return HostPair{a, b};
    }
  }
  return std::nullopt;
}

}  // namespace mrc::fabric
