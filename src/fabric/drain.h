// Parts of a fabric that are taken out of use on purpose: their names, the links that go with them,
// and which pairs of hosts are left without a path. Pure functions.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "fabric/routing.h"
#include "fabric/topology.h"

namespace mrc::fabric {

enum class DrainKind : std::uint8_t { kSwitch, kCable, kPort, kHost, kPlane };

// Only the fields that its kind needs mean something.
struct DrainTarget {
  DrainKind kind = DrainKind::kSwitch;
  Node node;   // the switch, the upper end of the cable, the host (of kPort with the plane)
  Node lower;  // the lower end of a cable
  std::optional<unsigned> cable;  // which of those between the two; none: all
  unsigned plane = 0;
  std::string name;  // one for each part, however it was written
};

// "t1:3/plane:0", "t0:0/t1:2/plane:1" (where there are several cables all of them, or one:
// "t0:0/t1:2/cable:3/plane:1"), "host:2/plane:1" (the NIC port with its cable), "host:2",
// "plane:1". The plane may be left out where there is only one. Throws InputError for a part that
// the fabric does not have.
DrainTarget parse_drain_target(std::string_view text, const Topology& topology);

// Both directions of every cable that goes out of use with it, in the order of the numbers.
std::vector<LinkId> links_of(const DrainTarget& target, const Topology& topology);

struct HostPair {
  unsigned one = 0;
  unsigned other = 0;
};
// Two hosts that have a path without the parts in `drained`, and none without those in `wanted` in
// addition; none when there is no such pair.
std::optional<HostPair> pair_cut_off(const Routing& routing, std::span<const DrainTarget> drained,
                                     std::span<const DrainTarget> wanted);

}  // namespace mrc::fabric
