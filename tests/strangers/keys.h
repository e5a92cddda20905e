// Memory keys that are wrong: random ones, and live ones for what they do not allow.
#pragma once

#include <cstdint>

#include "strangers/tally.h"

namespace mrc::strangers {

// So many writes with a key that does not fit, each at the place that is awaited; one in eight
// shows a live key, for bytes outside its region, without the right, of another domain, or
// withdrawn.
void try_keys(std::uint64_t packets, std::uint64_t seed, Tally& tally);

}  // namespace mrc::strangers
