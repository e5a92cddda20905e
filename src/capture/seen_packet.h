// A packet of MRC as it was seen on the way, before anybody says in which dialect it was meant.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "capture/capture_file.h"
#include "wire/ip_address.h"
#include "wire/packet.h"

namespace mrc::capture {

struct SeenPacket {
  wire::IpAddress source;  // in a tunnel the inner ones
  wire::IpAddress destination;
  std::uint16_t source_port = 0;
  std::uint16_t destination_port = 0;
  bool tunnel = false;
  std::uint16_t inner_label = 0;  // low 16 bits of the flow labels; IPv4 has none
  std::uint16_t outer_label = 0;
  // What the ICRC covers; neither where the frame was cut or has another one.
  bool icrc_plain = false;  // the header in front of UDP
  bool icrc_outer = false;  // that of the tunnel
  bool whole = false;       // all of the frame is there, so that an ICRC could be looked at
  // BTH to the last byte before the ICRC, or as far as it was captured.
  std::span<const std::byte> transport;

  bool verified() const { return icrc_plain || icrc_outer; }
  wire::Opcode opcode() const {
    return static_cast<wire::Opcode>(std::to_integer<std::uint8_t>(transport[0]));
  }
};

enum class Seen : std::uint8_t {
  kOther,  // no UDP over IP, or in a form that MRC never has
  kUdp,    // UDP that does not look like MRC; ports are set
  kMrc,    // what follows UDP begins like a packet of MRC; it may be chance unless verified()
};
[[nodiscard]] Seen look_at(const CapturedFrame& frame, SeenPacket& out);

}  // namespace mrc::capture
