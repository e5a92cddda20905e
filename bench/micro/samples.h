// Packets to parse and build: one full write and the SACK that answers it.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <span>
#include <vector>

#include "wire/codec.h"
#include "wire/packet.h"

namespace mrc::bench {

inline wire::Packet sample_write() {
  wire::Packet packet;
  packet.bth = {.opcode = wire::Opcode::kWriteMiddle,
                .has_timestamp = true,
                .destination = QpNumber{0x1234},
                .psn = Psn(0x5678)};
  packet.body = wire::Write{.msn = 9,
                            .timestamp = {.ticks = 77},
                            .address = 0x1000'0000,
                            .key = Rkey{0xABCD},
                            .message_length = 1 << 20};
  return packet;
}

inline wire::Packet sample_sack() {
  wire::Packet packet;
  packet.bth = {.opcode = wire::Opcode::kSack, .destination = QpNumber{0x1234}, .psn = Psn(0x5678)};
  packet.body = wire::Sack{.offset_or_probe_id = 12,
                           .entropy = 0x4004,
                           .cumulative = Psn(0x5678),
                           .bitmap_offset = 1,
                           .bitmap = 0xFFF0'FF00'1234'5678,
                           .timestamp_ticks = 77,
                           .out_of_order_count = 40,
                           .received_units = 0x1234};
  return packet;
}

// The transport part of `packet` as bytes, followed by a payload of zeros.
inline std::vector<std::byte> to_bytes(const wire::Packet& packet, std::size_t payload_length) {
  std::vector<std::byte> bytes(wire::kMaxTransportHeader + payload_length);
  const std::size_t header = wire::build_transport(packet, bytes);
  if (header == 0) std::abort();
  bytes.resize(header);
  bytes.resize(header + payload_length);
  return bytes;
}

}  // namespace mrc::bench
