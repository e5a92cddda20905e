#include "wire/drop_reason.h"

#include <array>

namespace mrc {
namespace {

// In the order of the enumeration.
constexpr std::array kNames = {
    "none",
    "truncated",
    "bad_ether_type",
    "bad_ip_version",
    "bad_ip_header",
    "bad_ip_checksum",
    "bad_next_header",
    "bad_udp_length",
    "bad_udp_port",
    "bad_transport_version",
    "unknown_opcode",
    "bad_header_field",
    "bad_payload_length",
    "bad_icrc",
    "plain_packet",
    "sealed_packet",
    "bad_seal",
    "unknown_qp",
    "qp_not_ready",
    "wrong_source",
    "wrong_context",
    "bad_port",
    "port_off",
    "duplicate",
    "out_of_window",
    "far_out_of_window",
    "trimmed",
    "no_buffer",
    "access_denied",
    "wrong_message",
    "wrong_number",
    "immediate_limit",
    "receive_queue_empty",
    "stale_feedback",
    "unknown_probe",
    "unproven",
    "queue_full",
};
static_assert(kNames.size() == kDropReasonCount);

}  // namespace

const char* drop_reason_name(DropReason reason) {
  const auto index = static_cast<std::size_t>(reason);
  return index < kNames.size() ? kNames[index] : "unknown";
}

}  // namespace mrc
