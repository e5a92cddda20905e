// A TOML file with everything a controller sets on a node.
#pragma once

#include <string>
#include <vector>

#include "controller/profiles.h"

namespace mrc::controller {

// EVs that must not be used, in the words of select_evs().
struct DenySpec {
  std::uint64_t profile = 0;
  std::string place{};
  std::vector<std::string> evs;
};

struct Setup {
  std::vector<unsigned> disabled_ports;
  std::vector<FormatSpec> formats;
  std::vector<EvSpec> ev_profiles;
  std::vector<CcSpec> cc_profiles;
  std::vector<DenySpec> denies;
};

// InputError with file and position. Ids are unique, and what is referred to is in the file.
Setup read_setup(const std::string& path);
// The same of a text; `path` names it.
Setup parse_setup(const std::string& text, const std::string& path);

}  // namespace mrc::controller
