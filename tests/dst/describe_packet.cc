// Packets in words, for the log.
#include <cinttypes>
#include <cstdio>
#include <string>

#include "dst/trace.h"

namespace mrc::dst {
namespace {

const char* opcode_name(wire::Opcode opcode) {
  using wire::Opcode;
  switch (opcode) {
    case Opcode::kWriteFirst:
      return "WRITE_FIRST";
    case Opcode::kWriteMiddle:
      return "WRITE_MIDDLE";
    case Opcode::kWriteLast:
      return "WRITE_LAST";
    case Opcode::kWriteLastImm:
      return "WRITE_LAST_IMM";
    case Opcode::kWriteOnly:
      return "WRITE_ONLY";
    case Opcode::kWriteOnlyImm:
      return "WRITE_ONLY_IMM";
    case Opcode::kAck:
      return "ACK";
    case Opcode::kEndpointRequest:
      return "ENDPOINT_REQUEST";
    case Opcode::kEndpointResponse:
      return "ENDPOINT_RESPONSE";
    case Opcode::kSack:
      return "SACK";
    case Opcode::kNack:
      return "NACK";
    case Opcode::kProbe:
      return "PROBE";
  }
  return "?";
}

template <typename... Arguments>
std::string format(const char* pattern, Arguments... arguments) {
  char text[256];
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
  std::snprintf(text, sizeof text, pattern, arguments...);
#pragma GCC diagnostic pop
  return text;
}

std::string words(const wire::Write& write) {
  return format(" msn %u rqmsn %u va %#" PRIx64 " key %#x len %u imm %#x", write.msn,
                write.receive_msn, write.address, static_cast<unsigned>(write.key),
                write.message_length, write.immediate);
}

std::string words(const wire::Ack& ack) {
  return format(" syndrome %#x msn %u", ack.syndrome, ack.msn);
}

std::string words(const wire::Sack& sack) {
  return format(" cack %06x mark %u %s %d ev %08x mpr %u bits %+d:%016" PRIx64
                " ooo %u units %u pen %u%s",
                sack.cumulative.value(), static_cast<unsigned>(sack.mark),
                sack.probe_answer ? "probe" : "trigger", sack.trigger_offset(), sack.entropy,
                sack.window_units, sack.bitmap_offset, sack.bitmap, sack.out_of_order_count,
                sack.received_units, sack.window_penalty, sack.restore_window ? " restore" : "");
}

std::string words(const wire::Nack& nack) {
  return format(" reason %#x psn %06x ev %08x", static_cast<unsigned>(nack.reason),
                nack.psn.value(), nack.entropy);
}

std::string words(const wire::Probe& probe) { return format(" id %u", probe.probe_id); }

std::string words(const wire::EndpointRequest& request) {
  return format(" op %u ports %#x", static_cast<unsigned>(request.op), request.port_status);
}

std::string words(const wire::EndpointResponse& response) {
  return format(" op %u", static_cast<unsigned>(response.op));
}

}  // namespace

std::string describe(const wire::Packet& packet) {
  const wire::Bth& bth = packet.bth;
  return format("%s qp %06x psn %06x%s%s%s", opcode_name(bth.opcode),
                static_cast<unsigned>(bth.destination), bth.psn.value(),
                bth.retransmission ? " rtx" : "", bth.ack_request ? " ar" : "",
                bth.has_timestamp ? " ts" : "") +
         std::visit([](const auto& body) { return words(body); }, packet.body);
}

}  // namespace mrc::dst
