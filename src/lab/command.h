// Programs of the system that do what has no better interface: `ip`, `tc`, a shell.
#pragma once

#include <string>
#include <vector>

namespace mrc::lab {

// Runs `words` with `input` on its standard input and waits. Throws std::runtime_error, one line
// with what the program said, when it cannot be started or does not end well.
void run_command(const std::vector<std::string>& words, const std::string& input = {});

}  // namespace mrc::lab
