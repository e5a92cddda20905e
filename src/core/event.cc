#include "core/event.h"

namespace mrc::core {

const char* ev_state_name(EvState state) {
  using enum EvState;
  switch (state) {
    case kGood:
      return "good";
    case kSkip:
      return "skip";
    case kAssumedBad:
      return "assumed_bad";
    case kDenied:
      return "denied";
  }
  return "unknown";
}

const char* event_kind_name(EventKind kind) {
  using enum EventKind;
  switch (kind) {
    case kQpError:
      return "qp_error";
    case kEvState:
      return "ev_state";
    case kEvFloorReached:
      return "ev_floor_reached";
    case kPlaneLost:
      return "plane_lost";
    case kPlaneBack:
      return "plane_back";
    case kLocalPort:
      return "local_port";
    case kRemotePorts:
      return "remote_ports";
    case kEndpointAnswer:
      return "endpoint_answer";
    case kAccessRefused:
      return "access_refused";
  }
  return "unknown";
}

}  // namespace mrc::core
