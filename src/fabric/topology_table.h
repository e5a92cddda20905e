// A topology out of a TOML table that has already been read, for files that hold more than that.
#pragma once

#include <string>

#include "fabric/toml_file.h"
#include "fabric/topology.h"

namespace mrc::fabric {

// Refuses keys it does not know. `origin` names the file in errors.
TopologySpec read_topology_table(const toml::table& table, const std::string& origin);

}  // namespace mrc::fabric
