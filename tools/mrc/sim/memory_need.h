// Whether a run fits into the memory of this machine, known before it starts.
#pragma once

#include <cstdint>

#include "sim/config.h"

namespace mrc::tool::simulator {

// About how much a run will hold at its fullest. What hosts and connections cost is found by
// building a few. Throws InputError when there is no such workload.
std::uint64_t memory_need_bytes(const sim::SimConfig& config);

// What the system says it can still give; 0 = it does not say.
std::uint64_t memory_available_bytes();

// Throws InputError when it does not fit.
void check_memory(const sim::SimConfig& config);

}  // namespace mrc::tool::simulator
