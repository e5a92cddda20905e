// What becomes of a packet that an engine hands out as a struct when it travels as bytes.
#pragma once

#include <array>
#include <cstddef>
#include <span>
#include <variant>

#include "core/config.h"
#include "core/tx_packet.h"
#include "wire/codec.h"

namespace mrc::test {

// Without what the headers of its opcode do not carry: such fields mean nothing.
inline wire::Packet as_carried(wire::Packet packet) {
  if (auto* write = std::get_if<wire::Write>(&packet.body)) {
    if (!wire::has_immediate(packet.bth.opcode)) write->immediate = 0;
    if (!packet.bth.has_timestamp) write->timestamp = {};
  }
  return packet;
}

// Null where a parser reads the packet as the same, otherwise what is wrong with it.
inline const char* wire_fault(const core::TxPacket& tx) {
  // The payload's bytes are neither written nor read. On the stack they would be cleared each time.
  static thread_local std::array<std::byte, wire::kMaxTransportHeader + core::kMaxPathMtu + 4>
      bytes;
  const std::size_t header = wire::build_transport(tx.packet, bytes);
  if (header == 0) return "a packet that cannot be built";
  const std::size_t length = header + tx.payload_length + tx.packet.bth.pad;
  if (length > bytes.size()) return "a payload longer than any MTU";
  wire::Packet parsed;
  std::span<const std::byte> payload;
  const std::span<const std::byte> frame(bytes.data(), length);
  if (wire::parse_transport(frame, parsed, payload) != DropReason::kNone) {
    return "a packet that no parser accepts";
  }
  if (payload.size() != tx.payload_length || !(parsed == as_carried(tx.packet))) {
    return "a packet that reads differently on the other side";
  }
  return nullptr;
}

}  // namespace mrc::test
