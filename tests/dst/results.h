// What a run of many seeds has to show, fault kinds included.
#pragma once

#include "dst/run_seed.h"
#include "support/results.h"

namespace mrc::dst {

test::ResultLines result_lines(const Totals& totals);

}  // namespace mrc::dst
