// What a program in a lab has to know: the configuration of its host's device, and the variables
// that lead it there.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "fabric/routing.h"
#include "lab/directory.h"
#include "lab/netns_plan.h"

namespace mrc::lab {

// A queue pair without a profile draws entropy values at random, and the lab gives each of them a
// path of its own (see TunnelPaths). More paths than this are used in part.
inline constexpr unsigned kMaxEvsPerPort = 64;

struct LabSwitches {
  SwitchKind kind = SwitchKind::kProcess;
  bool trim = false;  // rather than drop
};

// The text of mrc.toml: one device `mrc0` with a cable in every plane. In a namespace the cables
// are interfaces, and the device writes its SRv6 headers itself.
std::string host_config(const fabric::Routing& routing, const Directory& directory,
                        LabSwitches switches, unsigned host);
// Writes it for all hosts. Throws std::runtime_error.
void write_host_configs(const fabric::Routing& routing, const Directory& directory,
                        LabSwitches switches);

struct HostEnvironment {
  std::vector<std::pair<std::string, std::string>> set;
  std::vector<std::string> unset;  // would beat the configuration
};
HostEnvironment host_environment(const Directory& directory, unsigned host,
                                 SwitchKind switches = SwitchKind::kProcess);

}  // namespace mrc::lab
