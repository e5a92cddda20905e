// The bytes that a packet of the simulator would have on a link.
#pragma once

#include <cstddef>
#include <vector>

#include "fabric/routing.h"
#include "sim/config.h"
#include "sim/packet.h"

namespace mrc::sim {

// Everything as a switch would see it on this link: the carrier shifted as often as the packet has
// been forwarded, code point and ECN bits, trimmed if it was; a corrupt packet has a wrong ICRC.
// The payload is the pattern of `--verify` where config says so, zeros otherwise. Without the
// Ethernet check sequence, which captures never hold.
std::vector<std::byte> frame_on_link(const SimConfig& config, const fabric::Routing& routing,
                                     fabric::LinkId link, const PacketHead& head,
                                     const PacketBody& body);

}  // namespace mrc::sim
