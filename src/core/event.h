// Things a controller or a log wants to know, as a stream. A full stream drops and counts, never
// blocks.
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/types.h"
#include "core/work.h"

namespace mrc::core {

// SKIP is internal to load balancing; the other three are what the OCP API shows.
enum class EvState : std::uint8_t { kGood, kSkip, kAssumedBad, kDenied };
inline constexpr std::size_t kEvStateCount = 4;
const char* ev_state_name(EvState state);

enum class EventKind : std::uint8_t {
  kQpError,         // qp, status
  kEvState,         // qp, ev, port, ev_state, drop_count since the previous event of that EV
  kEvFloorReached,  // qp, ev, port: too few good paths, a bad one stays in use
  kPlaneLost,       // qp, port: no usable path left on this plane
  kPlaneBack,       // qp, port
  kLocalPort,       // port, up
  kRemotePorts,     // peer, ports: the peer told which of its ports are usable
  kEndpointAnswer,  // peer, request_id, rtt_ns, ok (false: no answer in time)
  kAccessRefused,   // qp: a peer's write was refused by the memory table
};
const char* event_kind_name(EventKind kind);

struct Event {
  TimeNs time = 0;
  EventKind kind = EventKind::kQpError;
  QpNumber qp{};
  EvIndex ev = kNoEv;
  PortId port = kNoPort;
  EvState ev_state = EvState::kGood;
  CompletionStatus status = CompletionStatus::kSuccess;
  std::uint32_t drop_count = 0;
  PortMask ports{};
  bool ok = true;  // up, answered
  Address peer{};
  std::uint16_t request_id = 0;
  DurationNs rtt_ns = 0;
};

}  // namespace mrc::core
