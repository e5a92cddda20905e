// The end of a run: queue pairs are failed, reset and destroyed with work outstanding, and late
// packets arrive for what is no longer there.
#pragma once

namespace mrc::dst {

struct World;

// Throws CheckFailed when something is reported that must not be, or not reported that must be.
void tear_down(World& world);

}  // namespace mrc::dst
