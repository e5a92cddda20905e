// A plane may be without its address for a while: its interface is not there, or has none.
#pragma once

#include "node/config.h"

namespace mrc::node {

// Without one all of the address is zero but the IP version, and the interface is followed.
inline bool has_address(const PlaneConfig& plane) {
  return plane.address != wire::IpAddress{.is_v4 = plane.address.is_v4};
}

}  // namespace mrc::node
