// How much goodput a fault cost and for how long, read off the series of delivered bytes.
#pragma once

#include "sim/result.h"
#include "sim/series.h"

namespace mrc::sim {

// Between these times every flow was running, so that a lower level means lost goodput and not less
// work: from the fault until `busy_until`, when the first flow had all its bytes acknowledged.
struct DipSpan {
  Time fault_at = 0;
  Time busy_until = 0;
};

// The level is a mean over as many bins as make single packets vanish in it. Not valid when the
// fault came before any data, or too late to see anything.
Dip measure_dip(const Series& series, const DipSpan& span);

}  // namespace mrc::sim
