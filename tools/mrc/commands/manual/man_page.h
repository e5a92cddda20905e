// Manual pages (troff with the man macros) from what commands declare.
#pragma once

#include <string>
#include <vector>

#include "commands/manual/command_text.h"

namespace mrc::tool::manual {

// The name of the page of a command, as in "mrc-lab".
std::string page_name(const CommandText& command);

// The page of `command` with all below it; `also` are the names of pages to refer to. With
// `commands_in_short` the commands below are named and have pages of their own.
struct PageInput {
  std::string version;
  std::vector<std::string> also;
  bool commands_in_short = false;
};
std::string man_page(const CommandText& command, const PageInput& input);

// Text as troff shall print it, letter by letter, also at the beginning of a line.
std::string troff_text(const std::string& text);

}  // namespace mrc::tool::manual
