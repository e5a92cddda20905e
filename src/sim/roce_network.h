// How the switches of a RoCEv2 fabric are set up: ECMP, ECN marks on every port, PFC.
#pragma once

#include "sim/config.h"
#include "sim/network.h"

namespace mrc::sim {

// Changes what MRC and RoCEv2 want differently from a network. plane_bdp_bytes is set already.
// Throws InputError for options that make no sense.
void set_up_for_roce(const SimConfig& config, const fabric::Topology& topology,
                     NetworkConfig& network);

// Bytes that may still come in on any link after its receiver decided to pause it.
std::uint64_t pfc_headroom_bytes(const SimConfig& config, const fabric::Topology& topology);

// The way ECMP gives the packets of a flow that leave a host on this plane.
fabric::Path ecmp_path(const fabric::Routing& routing, const PacketHead& head, unsigned plane);

}  // namespace mrc::sim
