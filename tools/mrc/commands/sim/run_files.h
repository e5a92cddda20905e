// What the settings of a run have to do with files. The playground, which has none, brings its own.
#pragma once

#include <string>

#include "commands/sim/run_options.h"
#include "fabric/topology.h"

namespace mrc::tool::simulator {

// Throws InputError when the file cannot be read.
std::string read_text(const std::string& path);

// Throws for everything that can be wrong with the outputs, before hours are spent on the run:
// std::runtime_error for files that cannot be written, else InputError.
void check_outputs(const RunOptions& options, const fabric::Topology& topology);

}  // namespace mrc::tool::simulator
