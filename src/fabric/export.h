// The static table of a switch in the words of systems that can run it.
//
// Linux: a shell script of `ip` commands (iproute2 6.1 and kernel 6.1, the first with NEXT-CSID),
// and one of `tc` commands for the queues. FRR: a configuration file (static SIDs need FRR 10.3;
// one for FRR 8.4 leaves them to `ip`). SONiC: a part of config_db.json (static SIDs of bgpcfgd,
// release 202505), queues included. All say the same: an own uSID is End with NEXT-CSID, and every
// neighbour is a static /48, one for every cable to it.
//
// A device has the same link-local address on all its ports, fe80:: and its uSID, so that next hops
// need no configuration of their own.
#pragma once

#include <string>
#include <string_view>

#include "fabric/routing.h"

namespace mrc::fabric {

enum class ExportFormat : std::uint8_t { kLinux, kTc, kFrr, kFrr8, kSonic };

// Port p of a switch, counted from 0 in the order of its table, is `prefix` and first + p * step.
struct PortNames {
  std::string prefix;
  unsigned first = 0;
  unsigned step = 1;
};
// swp1, swp2, ... or, for SONiC, Ethernet0, Ethernet1, ...
PortNames default_port_names(ExportFormat format);

struct ExportOptions {
  ExportFormat format = ExportFormat::kLinux;
  PortNames ports = default_port_names(ExportFormat::kLinux);
  // Linux and FRR 8: the device that carries the own uSID; a dummy device of that name is made.
  // Without a name it is the first port, and goes away with it.
  std::string sid_device;
  bool trims = true;  // whether the switch is to trim, where it can
};

// Throws InputError when the names in it cannot be those of ports.
void check_export(const ExportOptions& options);

// The whole configuration, ending in a newline.
std::string export_switch(const Routing& routing, const Node& at, const ExportOptions& options);

// "plane0-t0-3.sh", ".tc.sh", ".conf", ".frr8.conf" or ".json".
std::string export_file_name(const Node& at, ExportFormat format);

// Reads "t0:3/plane:0"; the plane may be left out where there is only one. Throws InputError when
// there is no such switch.
Node parse_switch(std::string_view text, const Topology& topology);

}  // namespace mrc::fabric
