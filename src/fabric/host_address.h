// The addresses of hosts in labs and planned fabrics: fd00:<plane>::<host>/64, both counted from 1.
// The host part is the same on all planes, so a peer's address on a plane follows from its GID, the
// address on plane 1.
#pragma once

#include <optional>

#include "wire/ip_address.h"

namespace mrc::fabric {

inline constexpr unsigned kHostPrefixBits = 64;

// `plane` and `host` count from 0, as everywhere in the code.
wire::IpAddress host_address(unsigned plane, unsigned host);
// Nothing when it is the address of no host, neither on that plane nor its GID, by which a NIC may
// name a host on every plane.
std::optional<unsigned> host_of_address(unsigned plane, const wire::IpAddress& address);

}  // namespace mrc::fabric
