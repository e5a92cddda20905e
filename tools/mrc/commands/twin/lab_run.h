// A scenario in a lab of its own: real processes, real frames.
#pragma once

#include "commands/twin/scenario.h"
#include "commands/twin/side.h"
#include "terminal.h"

namespace mrc::tool::twin {

struct LabResult {
  Side side;
  LabTraits traits;
};

// Throws Failure when the lab does not come up or a host fails.
LabResult run_in_lab(const Scenario& scenario, const Terminal& terminal);

}  // namespace mrc::tool::twin
