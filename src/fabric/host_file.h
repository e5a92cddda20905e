// The configuration of a host of a fabric: its devices choose the paths of their packets
// themselves.
#pragma once

#include <string>

#include "fabric/build_plan.h"
#include "fabric/routing.h"

namespace mrc::fabric {

// Where packets of a host to another go, in the words of `srv6_route`: all paths in one text. With
// two tiers only: one choice is what a route can hold.
std::string route_text(const Routing& routing, unsigned source, unsigned destination);
// The srv6_routes of the host to all hosts, of device mrc0.
std::string route_tables(const Routing& routing, unsigned host);

// A whole mrc.toml for device mrc0 on the interfaces of a host.
std::string host_file(const Routing& routing, unsigned host, const HostPortNames& ports);

}  // namespace mrc::fabric
