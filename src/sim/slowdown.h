// Completion times over those of the same flow alone, by the length of the flow.
#pragma once

#include <cstdint>
#include <vector>

#include "sim/ideal.h"
#include "sim/result.h"
#include "sim/workload.h"

namespace mrc::sim {

struct SlowdownClass {
  std::uint64_t up_to_bytes = 0;  // and above the class before; 0: all that are longer
  std::uint64_t flows = 0;
  double mean = 0;
  double p50 = 0;
  double p99 = 0;
  double max = 0;
};

// Classes without a completed flow are left out.
std::vector<SlowdownClass> slowdown_by_size(const Workload& workload, const SimResult& result,
                                            const IdealTimes& ideal);

}  // namespace mrc::sim
