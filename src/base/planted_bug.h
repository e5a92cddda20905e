// Planted bugs: a test of the tests. In the mutants build one named small bug can be switched on at
// run time, and the test world must catch it. In every other build MRC_BUG(name) is the constant
// false.
#pragma once

#include <cstdint>

namespace mrc {

// One line per planted bug: MRC_PLANTED(name, what it does).
enum class PlantedBug : std::uint8_t {
  kNone,
#define MRC_PLANTED(name, what) name,
#include "base/planted_bugs.inc"
#undef MRC_PLANTED
  kCount,
};

struct PlantedBugInfo {
  const char* name;
  const char* what;
};
inline constexpr PlantedBugInfo kPlantedBugs[] = {
    {"kNone", "nothing is planted"},
#define MRC_PLANTED(name, what) {#name, what},
#include "base/planted_bugs.inc"
#undef MRC_PLANTED
};

#ifdef MRC_PLANTED_BUGS
inline PlantedBug active_planted_bug = PlantedBug::kNone;
#define MRC_BUG(name) (::mrc::active_planted_bug == ::mrc::PlantedBug::name)
#else
#define MRC_BUG(name) false
#endif

}  // namespace mrc
