// Devices by name, as people write them: "t0:3/plane:1", "t1:*".
#pragma once

#include <optional>
#include <string_view>

#include "fabric/topology.h"

namespace mrc::fabric {

// One device or, without a number, all of its kind.
struct NodeSet {
  NodeKind kind = NodeKind::kHost;
  std::optional<unsigned> number;
  std::string_view text;  // as written; not owned

  bool contains(const Node& node) const {
    return node.kind == kind && (!number || *number == node.index);
  }
};

// Devices of `kind` in one plane.
unsigned node_count(const TopologySpec& spec, NodeKind kind);

// "t1:5" or "t1:*". Throws InputError with the reason when there is no such device.
NodeSet parse_node_set(std::string_view text, const Topology& topology);

// "plane:1" or "plane:*" (nothing). Throws likewise.
std::optional<unsigned> parse_plane(std::string_view text, const Topology& topology);

// "cable:1" or "cable:*" (nothing): which of those between a T0 and a T1. Throws likewise.
std::optional<unsigned> parse_cable(std::string_view text, const Topology& topology);

// 'text', for errors.
std::string quoted(std::string_view text);

}  // namespace mrc::fabric
