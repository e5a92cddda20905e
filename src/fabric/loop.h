// Loops: probes that a host sends to itself, up to a switch and back the same way.
//
// A loop needs nobody's help: the path of the probe is exact (it is written into the carrier), and
// the answer goes by way of the host's own T0, the only way there is. What a loop crosses is known
// to the last cable, which is what makes it possible to say which one is broken (diagnosis.h).
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "fabric/routing.h"
#include "fabric/topology.h"
#include "wire/ip_address.h"

namespace mrc::fabric {

struct Loop {
  unsigned host = 0;
  NodeKind turn = NodeKind::kT0;  // the kind of switch at which it turns
  Path path;                      // `up` from a turn at a T1 on, `t2` at a T2
  friend bool operator==(const Loop&, const Loop&) = default;
};

// What can break: a cable, or a switch as a whole.
struct Part {
  Node upper;  // the switch, or the upper end of the cable
  Node lower;  // the lower end of a cable
  bool cable = false;
  std::optional<unsigned> number;  // of the cable, where there are several between the two
  friend bool operator==(const Part&, const Part&) = default;
};
// As `mrc lab` and fault plans call it: "t0:0/t1:2/plane:1", "host:3/plane:1" (a NIC port with its
// cable), "t1:2/plane:0", "t0:0/t1:2/cable:3/plane:1".
std::string part_name(const Part& part);

// A part and how many times a probe and its answer cross it.
struct Crossing {
  Part part;
  unsigned times = 0;
};
// From the host upwards: cable, switch, cable, switch, ...
std::vector<Crossing> crossings(const Topology& topology, const Loop& loop);

// The address that takes a packet of this host round the loop and back to it.
wire::IpAddress loop_carrier(const Routing& routing, const Loop& loop);

// What a host looks at: its T0 in every plane, and T1s (with three tiers T2s behind them). Without
// `all` each host takes a share of the uplinks, such that the hosts of a T0 together see all of
// them, and one T2 behind each.
std::vector<Loop> loops_of(const Topology& topology, unsigned host, bool all);

// Whether the fabric has such a loop; results may come from elsewhere.
bool exists(const Topology& topology, const Loop& loop);

}  // namespace mrc::fabric
