// Compares memory that a peer wrote with what it should hold.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "perf/memory.h"
#include "perf/pattern.h"

namespace mrc::tool::perf {

// Before a measurement: every byte that messages of this layout may reach gets the guard value.
void prepare_area(std::span<std::byte> area, const Layout& layout);

// After it: `counts` messages came per queue pair, so each place holds the last one that belongs
// there, places never used and the bytes between places are untouched. Empty when all is well, else
// the first thing that is wrong.
std::string check_area(std::span<const std::byte> area, const Layout& layout,
                       const Pattern& expected, const std::vector<std::uint64_t>& counts);

}  // namespace mrc::tool::perf
