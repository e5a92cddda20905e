// How a lab begins and ends.
#pragma once

#include "exit_code.h"
#include "lab/cluster.h"
#include "lab/directory.h"

namespace mrc::tool::lab_tool {

// Starts the daemon and returns when hosts can connect; with `foreground` becomes it. Removes what
// a dead lab of that name left behind.
ExitCode start_lab(lab::Directory& directory, const lab::ClusterOptions& options, bool foreground);

// Ends the lab, whatever state it is in, and removes everything of it.
ExitCode end_lab(lab::Directory& directory);

}  // namespace mrc::tool::lab_tool
