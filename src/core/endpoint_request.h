// The packets of operations between endpoints (QPN 2), the same whoever sends them: the engine of
// its own accord, or a caller for a controller.
#pragma once

#include <cstdint>

#include "base/types.h"
#include "core/rtt.h"
#include "wire/packet.h"

namespace mrc::core {

struct EndpointOperation {
  wire::EndpointOp op = wire::EndpointOp::kEvProbe;
  std::uint16_t id = 0;  // comes back with the answer
  PortMask ports;        // usable ones of the sender, with kPortStatusUpdate
  std::uint8_t vendor_info = 0;
};

// Stamped with `now`, from which the answer's round trip follows.
inline void build_endpoint_request(TimeNs now, const EndpointOperation& operation,
                                   wire::Packet& packet) {
  packet.bth = {.opcode = wire::Opcode::kEndpointRequest,
                .destination = kEndpointQp,
                .psn = Psn(operation.id)};
  packet.body = wire::EndpointRequest{.op = operation.op,
                                      .vendor_info = operation.vendor_info,
                                      .port_status = operation.ports.bits(),
                                      .timestamp = {.ticks = ticks_at(now)}};
}

}  // namespace mrc::core
