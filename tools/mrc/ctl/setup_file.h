// A TOML file with everything a controller sets on a node.
#pragma once

#include <string>
#include <vector>

#include "ctl/profiles.h"

namespace mrc::tool::ctl {

struct Setup {
  std::vector<unsigned> disabled_ports;
  std::vector<FormatSpec> formats;
  std::vector<EvSpec> ev_profiles;
  std::vector<CcSpec> cc_profiles;
};

// InputError with file and position.
Setup read_setup(const std::string& path);

}  // namespace mrc::tool::ctl
