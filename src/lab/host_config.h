// What a program in a lab has to know: the configuration of its host's device, and the variables
// that lead it there.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "fabric/topology.h"
#include "lab/directory.h"

namespace mrc::lab {

// The text of mrc.toml: one device `mrc0` with a cable in every plane.
std::string host_config(const fabric::Topology& topology, const Directory& directory,
                        unsigned host);
// Writes it for all hosts. Throws std::runtime_error.
void write_host_configs(const fabric::Topology& topology, const Directory& directory);

struct HostEnvironment {
  std::vector<std::pair<std::string, std::string>> set;
  std::vector<std::string> unset;  // would beat the configuration
};
HostEnvironment host_environment(const Directory& directory, unsigned host);

}  // namespace mrc::lab
