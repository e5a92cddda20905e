// What the parts of an EnginePump work on together: the protocol, the back end, the tables, and a
// few facts about the round that is under way. Under the engine lock.
#pragma once

#include <cstdint>
#include <memory>

#include "core/endpoint.h"
#include "nic/endpoint_requests.h"
#include "nic/engine/engine_group.h"
#include "nic/engine/engine_telemetry.h"
#include "nic/engine/port_gate.h"
#include "nic/engine/qp_table.h"
#include "nic/io/backend.h"
#include "nic/peer_table.h"

namespace mrc::nic {

struct PumpState {
  // Of the engine, for good.
  std::unique_ptr<core::Endpoint> endpoint;
  std::unique_ptr<Backend> backend;
  EngineGroup& group;
  unsigned index = 0;  // in the group
  unsigned udp_port = 0;
  wire::Dialect dialect;
  // What our endpoint requests carry as vendor information.
  std::uint8_t vendor_info() const {
    return peer_name(dialect, {}, backend->process_number()).process;
  }

  QpTable qps;
  PeerTable peers;
  EndpointRequests requests;
  PortGate gate;
  EngineTelemetry telemetry;
  std::uint64_t packets_under_way = 0;  // of sends taken and not completed

  // Of the round.
  TimeNs now = 0;
  bool more_work = false;        // another round must follow at once
  bool program_sees_it = false;  // bytes were placed or a completion reported
  unsigned moved = 0;            // packets in and out; EnginePump::much_to_do() starts it anew
};

}  // namespace mrc::nic
