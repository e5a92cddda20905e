// Completion scripts for shells from what commands declare.
#pragma once

#include <string>

#include "commands/manual/command_text.h"

namespace mrc::tool::manual {

// Commands, options, and values where all are known; everything else is left to the shell, which
// takes it for files.
std::string bash_completion(const CommandText& program);
std::string zsh_completion(const CommandText& program);

}  // namespace mrc::tool::manual
