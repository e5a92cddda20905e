// What a lab says about itself, for people and for programs.
#pragma once

#include <string>

namespace mrc::tool::lab_tool {

// `status` is the daemon's answer: lines of words separated by tabs (lab/daemon.h).
void print_status(const std::string& status, bool json);

}  // namespace mrc::tool::lab_tool
