// A program in a host of a lab.
#pragma once

#include <string>
#include <vector>

#include "exit_code.h"
#include "lab/directory.h"

namespace mrc::tool::lab_tool {

// Runs it with the host's device and waits for it. It ends with the lab, and when this process is
// killed. The result is that of the program; 128 and the signal's number when one ended it.
ExitCode execute(const lab::Directory& directory, const std::string& host,
                 const std::vector<std::string>& command);

}  // namespace mrc::tool::lab_tool
