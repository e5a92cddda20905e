#include "wire/drop_reason.h"

namespace mrc {

const char* drop_reason_name(DropReason reason) {
  using enum DropReason;
  switch (reason) {
    case kNone:
      return "none";
    case kTruncated:
      return "truncated";
    case kBadEtherType:
      return "bad_ether_type";
    case kBadIpVersion:
      return "bad_ip_version";
    case kBadIpHeader:
      return "bad_ip_header";
    case kBadIpChecksum:
      return "bad_ip_checksum";
    case kBadNextHeader:
      return "bad_next_header";
    case kBadUdpLength:
      return "bad_udp_length";
    case kBadUdpPort:
      return "bad_udp_port";
    case kBadTransportVersion:
      return "bad_transport_version";
    case kUnknownOpcode:
      return "unknown_opcode";
    case kBadHeaderField:
      return "bad_header_field";
    case kBadPayloadLength:
      return "bad_payload_length";
    case kBadIcrc:
      return "bad_icrc";
    case kUnknownQp:
      return "unknown_qp";
    case kQpNotReady:
      return "qp_not_ready";
    case kWrongSource:
      return "wrong_source";
    case kBadPort:
      return "bad_port";
    case kPortOff:
      return "port_off";
    case kDuplicate:
      return "duplicate";
    case kOutOfWindow:
      return "out_of_window";
    case kFarOutOfWindow:
      return "far_out_of_window";
    case kTrimmed:
      return "trimmed";
    case kNoBuffer:
      return "no_buffer";
    case kAccessDenied:
      return "access_denied";
    case kWrongMessage:
      return "wrong_message";
    case kImmediateLimit:
      return "immediate_limit";
    case kReceiveQueueEmpty:
      return "receive_queue_empty";
    case kStaleFeedback:
      return "stale_feedback";
    case kUnknownProbe:
      return "unknown_probe";
    case kQueueFull:
      return "queue_full";
    case kCount:
      break;
  }
  return "unknown";
}

}  // namespace mrc
