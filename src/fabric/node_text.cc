#include "fabric/node_text.h"

#include <array>
#include <string>

#include "base/quantity.h"
#include "fabric/input_error.h"

namespace mrc::fabric {
namespace {

constexpr std::array kNodeKinds{NodeKind::kHost, NodeKind::kT0, NodeKind::kT1, NodeKind::kT2};

// The number behind the colon, nothing for a star.
std::optional<unsigned> parse_index(std::string_view name, unsigned count) {
  const std::size_t colon = name.find(':');
  const std::string kind(name.substr(0, colon));
  const std::string_view index = name.substr(colon + 1);
  if (count == 0) throw InputError("there is no " + std::string(name) + ", the fabric has none");
  if (index == "*") return std::nullopt;
  const std::optional<unsigned> number = parse_number(index);
  if (!number) throw InputError(quoted(name) + " needs a number or * behind the colon");
  if (*number >= count) {
    const std::string last =
        count == 1 ? " alone" : " to " + kind + ":" + std::to_string(count - 1);
    throw InputError("there is no " + std::string(name) + ", the fabric has " + kind + ":0" + last);
  }
  return number;
}

}  // namespace

std::string quoted(std::string_view text) { return "'" + std::string(text) + "'"; }

unsigned node_count(const TopologySpec& spec, NodeKind kind) {
  switch (kind) {
    case NodeKind::kHost:
      return spec.hosts;
    case NodeKind::kT0:
      return spec.t0;
    case NodeKind::kT1:
      return spec.t1;
    case NodeKind::kT2:
      return spec.t2;
  }
  return 0;
}

NodeSet parse_node_set(std::string_view text, const Topology& topology) {
  const std::size_t colon = text.find(':');
  for (const NodeKind kind : kNodeKinds) {
    if (colon == std::string_view::npos || text.substr(0, colon) != node_kind_name(kind)) continue;
    return {kind, parse_index(text, node_count(topology.spec(), kind)), text};
  }
  throw InputError(quoted(text) + " names no device; write host:N, t0:N, t1:N or t2:N");
}

std::optional<unsigned> parse_plane(std::string_view text, const Topology& topology) {
  if (!text.starts_with("plane:")) throw InputError(quoted(text) + " is no plane; write plane:N");
  return parse_index(text, topology.planes());
}

std::optional<unsigned> parse_cable(std::string_view text, const Topology& topology) {
  if (!text.starts_with("cable:")) throw InputError(quoted(text) + " is no cable; write cable:N");
  return parse_index(text, topology.cables());
}

}  // namespace mrc::fabric
