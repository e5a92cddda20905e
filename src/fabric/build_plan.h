// From the figures of a plan to a fabric that can be cabled: its topology, as a file and as a list
// of cables.
#pragma once

#include <string>

#include "fabric/export.h"
#include "fabric/planner.h"
#include "fabric/topology.h"

namespace mrc::fabric {

// The two tiers of a plan, with as few T1s as divide the uplinks of a T0 evenly: where the plan's
// own number does not, there are a few more of them, with ports to spare. Likewise the hosts, which
// are rounded up to fill all T0s alike. Throws InputError where no such fabric can be built.
TopologySpec buildable(const PlanInput& input, const FabricPlan& plan);

// The keys of a topology file (topology_options.h) that give this fabric again.
std::string topology_text(const TopologySpec& spec);

// Names of the ports of hosts: prefix and first + plane.
struct HostPortNames {
  std::string prefix = "eth";
  unsigned first = 0;
};

// A line for every cable of one plane with its two ends, "from,from_port,to,to_port,plane", in the
// order of the lower switch's ports; ports of switches are those of the exports.
std::string cable_lines(const Routing& routing, unsigned plane, const PortNames& switch_ports,
                        const HostPortNames& host_ports);
inline constexpr const char* kCableColumns = "from,from_port,to,to_port,plane\n";

}  // namespace mrc::fabric
