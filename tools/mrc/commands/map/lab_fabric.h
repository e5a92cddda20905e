// The fabric of a running lab.
#pragma once

#include "fabric/topology.h"
#include "lab/directory.h"

namespace mrc::tool::map {

// Its shape, without rates. Throws std::runtime_error when there is no such lab.
fabric::TopologySpec lab_fabric(const lab::Directory& directory);

}  // namespace mrc::tool::map
