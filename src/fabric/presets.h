// Fabrics with a name, so that results can be compared without repeating a dozen numbers.
#pragma once

#include <span>
#include <string_view>

#include "fabric/topology.h"

namespace mrc::fabric {

struct Preset {
  const char* name;
  const char* summary;  // half a line for people
  TopologySpec spec;
};

// In the order in which lists show them.
std::span<const Preset> presets();

// Throws InputError with the known names when there is no such preset.
const Preset& find_preset(std::string_view name);

}  // namespace mrc::fabric
