// A packet on its way out of the engine: transport headers, where it goes, and where its payload
// lies.
#pragma once

#include <cstdint>

#include "base/types.h"
#include "core/ev_profile.h"
#include "wire/packet.h"

namespace mrc::core {

// Queueing class of an outgoing packet; the caller turns it into a DSCP.
enum class TrafficClass : std::uint8_t { kControl, kTrimmable, kTrimmableRetransmission, kNoTrim };

struct TxPacket {
  wire::Packet packet;
  Address destination;
  PortId port{1};
  std::uint32_t entropy = 0;
  EvIndex ev = kNoEv;  // position in `profile`, kNoEv without one
  const EvProfile* profile = nullptr;
  TrafficClass traffic_class = TrafficClass::kControl;
  // Whose packet it is, and whose path it takes; kEndpointQp for EV probes and their answers, which
  // name a path themselves. Port status goes to QPN 2 on a path of a queue pair.
  QpNumber local_qp{};
  std::uint64_t local_address = 0;  // of the payload, as given in the SendRequest
  std::uint32_t payload_length = 0;
  // So many packets are to be sent: this one and those that continue it (wire::move_on), with the
  // payload that follows on this one's.
  unsigned run = 1;
};

}  // namespace mrc::core
