#include "commands/info/environment.h"

#include <unistd.h>

#include <algorithm>
#include <string_view>

#include "node/known_variables.h"

namespace mrc::tool::info {

std::vector<Variable> environment() {
  std::vector<Variable> found;
  for (char** entry = environ; *entry != nullptr; ++entry) {
    const std::string_view text(*entry);
    const std::size_t equals = text.find('=');
    if (!text.starts_with("MRC_") || equals == std::string_view::npos) continue;
    Variable variable;
    variable.name = text.substr(0, equals);
    variable.value = text.substr(equals + 1);
    variable.known = node::is_known_variable(variable.name);
    if (!variable.known) variable.meant = node::nearest_variable(variable.name);
    found.push_back(std::move(variable));
  }
  std::ranges::sort(found, {}, &Variable::name);
  return found;
}

}  // namespace mrc::tool::info
