// Topologies from TOML files: the keys of TopologyOptions, and `preset` for what they start from.
//
//   preset = "anchor-128"
//   planes = 4
//   gbps = 100
//
// Everything that is wrong is an InputError that begins with the file and, where it can, the line.
#pragma once

#include <string>
#include <string_view>

#include "fabric/topology.h"

namespace mrc::fabric {

// `origin` names the text in errors.
TopologySpec parse_topology(std::string_view text, const std::string& origin);
TopologySpec load_topology(const std::string& path);

// What people give as a topology: the name of a preset, or a file, which has a slash in its name or
// ends in .toml. The default fabric without either.
TopologySpec find_topology(const std::string& preset_or_file);

}  // namespace mrc::fabric
