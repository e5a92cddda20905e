// Whether a run fits into the memory of this machine, known before it starts.
#pragma once

#include "sim/config.h"

namespace mrc::tool::simulator {

// About how much a run will hold at its fullest is found by building a few hosts and connections.
// Throws InputError when that does not fit, or when there is no such workload.
void check_memory(const sim::SimConfig& config);

}  // namespace mrc::tool::simulator
