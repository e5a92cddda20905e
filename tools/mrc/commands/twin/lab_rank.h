// A host of the lab: sends and receives its part of a workload over a device, from a moment that
// all hosts agree on, and tells on standard output what came of it.
#pragma once

#include "collective/placement.h"
#include "commands/twin/scenario.h"

namespace mrc::tool::twin {

// Lines that a rank writes, each a JSON object: rank 0 one with `start_ns` (CLOCK_MONOTONIC) and
// what LabTraits has before it begins; every rank one with `flows`, `counters` and `points` at its
// end. Throws Failure.
void run_rank(const Scenario& scenario, const collective::Placement& place);

}  // namespace mrc::tool::twin
