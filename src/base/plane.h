// What people are told of planes: programs count the ports of a device from 1, as verbs do, but a
// fabric counts its planes from 0. What hangs on port p is plane p - 1.
#pragma once

#include "base/types.h"

namespace mrc {

constexpr unsigned plane_of(PortId port) { return static_cast<unsigned>(port) - 1; }

}  // namespace mrc
