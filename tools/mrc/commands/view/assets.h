// The files of the page, part of this program. Made from pages/ when it was built.
#pragma once

#include <string_view>

namespace mrc::tool::view_tool {

struct Asset {
  std::string_view name;
  std::string_view type;
  std::string_view bytes;
};

// Null: there is no such file.
const Asset* find_asset(std::string_view name);
// False where the build had no compiler for the page's scripts.
bool has_page();

}  // namespace mrc::tool::view_tool
