#include "dst/trace.h"

#include <cinttypes>
#include <cstdarg>

namespace mrc::dst {
namespace {

std::uint64_t digest(const wire::Write& write) {
  return write.address * 31 + write.msn + (std::uint64_t{write.receive_msn} << 16) +
         (std::uint64_t{write.timestamp.ticks} << 32) + std::uint64_t{write.immediate} * 7;
}
std::uint64_t digest(const wire::Ack& ack) { return ack.msn + (std::uint64_t{ack.syndrome} << 32); }
std::uint64_t digest(const wire::Sack& sack) {
  return sack.bitmap * 31 + sack.cumulative.value() + (std::uint64_t{sack.entropy} << 24) +
         sack.offset_or_probe_id * std::uint64_t{131} +
         (std::uint64_t{sack.timestamp_ticks} << 40) + static_cast<std::uint64_t>(sack.mark) +
         (std::uint64_t{sack.received_units} << 8);
}
std::uint64_t digest(const wire::Nack& nack) {
  return nack.psn.value() + (static_cast<std::uint64_t>(nack.reason) << 32) + nack.entropy;
}
std::uint64_t digest(const wire::Probe& probe) { return probe.probe_id; }
std::uint64_t digest(const wire::EndpointRequest& request) {
  return request.port_status + (static_cast<std::uint64_t>(request.op) << 32);
}
std::uint64_t digest(const wire::EndpointResponse& response) { return response.timestamp_ticks; }

const char* trim_name(core::TrimState trim) {
  switch (trim) {
    case core::TrimState::kWhole:
      return "";
    case core::TrimState::kTrimmed:
      return "trimmed ";
    case core::TrimState::kTrimmedLastHop:
      return "trimmed at the last hop ";
  }
  return "?";
}

std::string route(const Flight& flight) {
  char text[96];
  std::snprintf(text, sizeof text, "port %u ev %08x %s%s%s%s", static_cast<unsigned>(flight.port),
                flight.entropy, flight.provenance == Provenance::kForged ? "forged " : "",
                flight.marked ? "marked " : "", flight.corrupt ? "corrupt " : "",
                trim_name(flight.trim));
  return text;
}

}  // namespace

void Trace::fold_packet(TimeNs now, const Flight& flight) {
  const wire::Bth& bth = flight.packet.bth;
  fold(static_cast<std::uint64_t>(now));
  fold((std::uint64_t{flight.from} << 48) | (std::uint64_t{flight.to} << 32) | flight.entropy);
  fold((static_cast<std::uint64_t>(bth.destination) << 32) | bth.psn.value());
  fold((static_cast<std::uint64_t>(bth.opcode) << 32) | (std::uint64_t{bth.retransmission} << 1) |
       std::uint64_t{bth.ack_request});
  fold(std::visit([](const auto& body) { return digest(body); }, flight.packet.body));
  fold(flight.payload_length);
}

void Trace::sent(TimeNs now, const Flight& flight) {
  ++packets_;
  fold_packet(now, flight);
  if (!logging()) return;
  line(now, "host " + std::to_string(flight.from) + " -> " + std::to_string(flight.to) + " " +
                route(flight) + describe(flight.packet) + " payload " +
                std::to_string(flight.payload_length));
}

void Trace::arrived(TimeNs now, const Flight& flight, const core::RxResult& result) {
  fold_packet(now, flight);
  fold(static_cast<std::uint64_t>(result.drop));
  fold(result.placement.address + result.placement.length);
  if (!logging()) return;
  line(now, "host " + std::to_string(flight.to) + " <- " + std::to_string(flight.from) + " " +
                route(flight) + describe(flight.packet) + " : " + drop_reason_name(result.drop) +
                " placed " + std::to_string(result.placement.length));
}

void Trace::completed(TimeNs now, unsigned host, const core::Completion& completion) {
  fold(static_cast<std::uint64_t>(now));
  fold(completion.id);
  fold((static_cast<std::uint64_t>(completion.status) << 32) | completion.immediate);
  say(now, "host %u completion qp %06x %s id %#" PRIx64 " %s length %u imm %#x", host,
      static_cast<unsigned>(completion.qp),
      completion.kind == core::CompletionKind::kSend ? "send" : "receive", completion.id,
      core::completion_status_name(completion.status), completion.length, completion.immediate);
}

void Trace::event(TimeNs now, unsigned host, const core::Event& event) {
  fold(static_cast<std::uint64_t>(now));
  fold((static_cast<std::uint64_t>(event.kind) << 32) | static_cast<std::uint64_t>(event.qp));
  fold((static_cast<std::uint64_t>(event.ev) << 8) | static_cast<std::uint64_t>(event.ev_state));
  say(now, "host %u event %s qp %06x ev %d port %u state %s status %s drops %u ports %#x %s", host,
      core::event_kind_name(event.kind), static_cast<unsigned>(event.qp),
      event.ev == kNoEv ? -1 : static_cast<int>(event.ev), static_cast<unsigned>(event.port),
      core::ev_state_name(event.ev_state), core::completion_status_name(event.status),
      event.drop_count, event.ports.bits(), event.ok ? "ok" : "not ok");
}

void Trace::fault(TimeNs now, const Flight& flight, Fault kind) {
  if (!logging()) return;
  line(now, std::string("fault ") + fault_name(kind) + ": " + std::to_string(flight.from) + " -> " +
                std::to_string(flight.to) + " " + describe(flight.packet));
}

void Trace::say(TimeNs now, const char* format, ...) {
  if (!logging()) return;
  char text[512];
  va_list arguments;
  va_start(arguments, format);
  std::vsnprintf(text, sizeof text, format, arguments);
  va_end(arguments);
  line(now, text);
}

void Trace::line(TimeNs now, const std::string& text) {
  std::fprintf(log_, "%9" PRId64 ".%03d us  %s\n", now / kMicrosecondNs,
               static_cast<int>(now % kMicrosecondNs), text.c_str());
  std::fflush(log_);
}

}  // namespace mrc::dst
