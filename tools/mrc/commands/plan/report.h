// What `mrc plan` prints.
#pragma once

#include "fabric/planner.h"

namespace mrc::tool::plan {

void print_text(const fabric::PlanInput& input, const fabric::FabricComparison& plans);
void print_json(const fabric::PlanInput& input, const fabric::FabricComparison& plans);

}  // namespace mrc::tool::plan
