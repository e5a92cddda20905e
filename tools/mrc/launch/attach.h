// The way to a running lab.
#pragma once

#include "lab/control.h"
#include "lab/directory.h"

namespace mrc::tool::lab_tool {

// Connects to the lab's control socket. Throws std::runtime_error that says what is the matter and
// the way out when there is no lab, or a dead one.
void attach(const lab::Directory& directory, lab::ControlClient& client);

}  // namespace mrc::tool::lab_tool
