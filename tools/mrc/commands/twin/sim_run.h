// The same scenario in the simulator.
#pragma once

#include "commands/twin/scenario.h"
#include "commands/twin/side.h"
#include "terminal.h"

namespace mrc::tool::twin {

Side run_in_simulator(const sim::SimConfig& config, const Terminal& terminal);

}  // namespace mrc::tool::twin
