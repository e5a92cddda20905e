// The MRC_* variables that are set.
#pragma once

#include <string>
#include <vector>

namespace mrc::tool::info {

struct Variable {
  std::string name;
  std::string value;
  bool known = true;  // it means something to us
  std::string meant;  // for unknown ones: the one that looks most like it, or empty
};

// All variables of this process that begin with MRC_, sorted by name.
std::vector<Variable> environment();

}  // namespace mrc::tool::info
