// The transport part of an MRC packet, decoded: BTH plus the headers its opcode calls for.
//
// This struct is what the protocol engine consumes and produces. Bytes are the business of codec.h;
// a simulator may carry the struct alone. Layouts: see docs/wire.md.
#pragma once

#include <cstddef>
#include <cstdint>
#include <variant>

#include "base/types.h"

namespace mrc::wire {

enum class Opcode : std::uint8_t {
  kWriteFirst = 0xC6,
  kWriteMiddle = 0xC7,
  kWriteLast = 0xC8,
  kWriteLastImm = 0xC9,
  kWriteOnly = 0xCA,
  kWriteOnlyImm = 0xCB,
  kAck = 0xD1,
  kEndpointRequest = 0xD8,
  kEndpointResponse = 0xD9,
  kSack = 0xDC,
  kNack = 0xDD,
  kProbe = 0xDE,
};

constexpr bool is_write(Opcode op) {
  return op >= Opcode::kWriteFirst && op <= Opcode::kWriteOnlyImm;
}
constexpr bool has_immediate(Opcode op) {
  return op == Opcode::kWriteLastImm || op == Opcode::kWriteOnlyImm;
}
constexpr bool starts_message(Opcode op) {
  return op == Opcode::kWriteFirst || op == Opcode::kWriteOnly || op == Opcode::kWriteOnlyImm;
}
constexpr bool ends_message(Opcode op) {
  return op != Opcode::kWriteFirst && op != Opcode::kWriteMiddle && is_write(op);
}

// Base transport header.
struct Bth {
  Opcode opcode = Opcode::kWriteOnly;
  bool solicited = false;
  bool migration = false;
  std::uint8_t pad = 0;  // bytes of padding after the payload, 0..3
  bool ack_request = false;
  bool retransmission = false;  // rtx
  bool has_timestamp = false;   // ts: a TSETH follows METH (write packets only)
  // Whoever sent this takes packets whose check covers their headers alone; see wire/icrc.h.
  bool takes_header_check = false;
  std::uint16_t partition_key = 0xFFFF;
  QpNumber destination{};
  Psn psn{};
  friend bool operator==(const Bth&, const Bth&) = default;
};

// A 16-bit sender clock reading: 128 ns ticks, or 1 us ticks when `microseconds` is set.
struct Timestamp {
  std::uint16_t ticks = 0;
  bool microseconds = false;
  friend bool operator==(const Timestamp&, const Timestamp&) = default;
};

// METH, TSETH, RETH and ImmDt of a write packet. `timestamp` means something only with
// Bth::has_timestamp, `immediate` only with an opcode that has one.
struct Write {
  std::uint16_t receive_msn = 0;  // RQMSN: counts messages with an immediate
  std::uint16_t msn = 0;          // counts all messages of the requester
  Timestamp timestamp;
  std::uint64_t address = 0;  // where this packet's payload goes
  Rkey key{};
  std::uint32_t message_length = 0;  // of the whole message, in every packet
  std::uint32_t immediate = 0;
  friend bool operator==(const Write&, const Write&) = default;
};

// AETH: the RDMA transport acknowledgement. Its BTH carries the cumulative PSN, or in a NAK the PSN
// of the packet that was refused.
struct Ack {
  std::uint8_t syndrome = 0;
  std::uint32_t msn = 0;  // 24 bits: how many messages are complete, so the first ACK says 1
  friend bool operator==(const Ack&, const Ack&) = default;
};
inline constexpr std::uint8_t kSyndromeAck = 0x1F;
inline constexpr std::uint8_t kSyndromeNakInvalidRequest = 0x61;
inline constexpr std::uint8_t kSyndromeNakRemoteAccess = 0x62;
inline constexpr std::uint8_t kSyndromeNakRemoteOperation = 0x63;
inline constexpr std::uint8_t kSyndromeNakImmediateLimit = 0x65;     // our choice of value
inline constexpr std::uint8_t kSyndromeNakReceiveQueueEmpty = 0x66;  // our choice of value

// rcvd_bytes counts in units of 256 B modulo this plus one.
inline constexpr std::uint32_t kReceivedUnitsMask = 0xFF'FFFF;

// What a SACK tells about the path of the packet it answers.
enum class PathMark : std::uint8_t { kNone = 0, kSkipOnce = 1, kAlwaysSkip = 2, kReserved = 3 };

// SETH and CC_STATE.
struct Sack {
  PathMark mark = PathMark::kNone;
  bool probe_answer = false;              // pr
  std::uint16_t offset_or_probe_id = 0;   // signed offset of the trigger from cack, or probe id
  std::uint32_t entropy = 0;              // of the packet being answered
  std::uint16_t source_context = 0;       // spdcid
  std::uint16_t destination_context = 0;  // dpdcid
  Psn cumulative;                         // cack_psn
  std::uint8_t cc_type = 0;               // 4 bits
  std::uint8_t cc_flags = 0;              // 4 bits
  std::uint8_t window_units = 0;          // mpr, units of 128 PSNs; 0 = dynamic MPR off
  std::int16_t bitmap_offset = 0;         // PSN of bit 0 minus cack_psn
  std::uint64_t bitmap = 0;               // bit i: PSN cack + bitmap_offset + i has arrived
  std::uint16_t timestamp_ticks = 0;      // reflected
  std::uint16_t out_of_order_count = 0;   // 15 bits
  bool restore_window = false;
  std::uint8_t window_penalty = 0;   // 7 bits
  std::uint32_t received_units = 0;  // 24 bits, units of 256 B
  std::int16_t trigger_offset() const { return static_cast<std::int16_t>(offset_or_probe_id); }
  friend bool operator==(const Sack&, const Sack&) = default;
};

enum class NackReason : std::uint8_t {
  kTrimmed = 0x01,
  kTrimmedLastHop = 0x02,
  kNoBitmap = 0x06,
  kNoPacketBuffer = 0x07,
  kNoResource = 0x0A,
  kPsnOutOfWindow = 0x0B,
  kUnexpectedEvent = 0x19,
};

// NETH.
struct Nack {
  NackReason reason = NackReason::kTrimmed;
  std::uint8_t vendor_info = 0;
  std::uint32_t entropy = 0;
  std::uint16_t source_context = 0;
  std::uint16_t destination_context = 0;
  Psn psn{};
  std::uint8_t cc_type = 2;
  std::uint8_t cc_flags = 0;
  std::uint16_t timestamp_ticks = 0;
  friend bool operator==(const Nack&, const Nack&) = default;
};

// PETH: a reliability probe, answered by a SACK with `probe_answer` set.
struct Probe {
  std::uint8_t vendor_info = 0;
  std::uint16_t probe_id = 0;
  std::uint16_t source_context = 0;
  std::uint16_t destination_context = 0;
  Timestamp timestamp;
  friend bool operator==(const Probe&, const Probe&) = default;
};

enum class EndpointOp : std::uint8_t { kPortStatusUpdate = 0, kEvProbe = 1 };

// ERTH. The request id is PSN[15:0] of the BTH.
struct EndpointRequest {
  EndpointOp op = EndpointOp::kPortStatusUpdate;
  std::uint8_t vendor_info = 0;
  std::uint32_t port_status = 0;  // bit n-1: port n usable
  Timestamp timestamp;
  friend bool operator==(const EndpointRequest&, const EndpointRequest&) = default;
};

// EETH. The request id is echoed in PSN[15:0] of the BTH.
struct EndpointResponse {
  EndpointOp op = EndpointOp::kPortStatusUpdate;
  std::uint16_t timestamp_ticks = 0;  // reflected
  friend bool operator==(const EndpointResponse&, const EndpointResponse&) = default;
};

// The alternative held by `body` always agrees with bth.opcode: all write opcodes hold Write.
struct Packet {
  Bth bth;
  std::variant<Write, Ack, Sack, Nack, Probe, EndpointRequest, EndpointResponse> body;
  friend bool operator==(const Packet&, const Packet&) = default;
};

// Packets in a row of one message that differ in PSN and address only are a run. They are from its
// middle, so all of the same size. Makes of a packet the one that stands `count` further on.
inline void move_on(Packet& packet, unsigned count, std::uint32_t payload_length) {
  packet.bth.psn = packet.bth.psn + count;
  std::get_if<Write>(&packet.body)->address += std::uint64_t{count} * payload_length;
}

// Bytes from BTH to the last extension header, without payload, padding and ICRC. The opcode
// decides; wire.md has the tables.
constexpr std::size_t header_length(Opcode opcode, bool has_timestamp) {
  constexpr std::size_t kBth = 12;
  switch (opcode) {
    case Opcode::kAck:
      return kBth + 4;
    case Opcode::kSack:
      return kBth + 28 + 8;
    case Opcode::kNack:
      return kBth + 20;
    case Opcode::kProbe:
    case Opcode::kEndpointRequest:
      return kBth + 16;
    case Opcode::kEndpointResponse:
      return kBth + 36;
    default:  // METH, TSETH, RETH, ImmDt
      return kBth + 4 + (has_timestamp ? 4 : 0) + 16 + (has_immediate(opcode) ? 4 : 0);
  }
}
constexpr std::size_t header_length(const Packet& packet) {
  return header_length(packet.bth.opcode, packet.bth.has_timestamp);
}

// The size congestion control counts (UDP length + 40): UDP header, transport headers, payload,
// padding, ICRC, and a nominal 40 bytes for IP.
constexpr std::uint32_t nominal_size(const Packet& packet, std::uint32_t payload_length) {
  constexpr std::uint32_t kIpUdpAndIcrc = 40 + 8 + 4;
  const std::uint32_t padded = (payload_length + 3) & ~std::uint32_t{3};
  return kIpUdpAndIcrc + static_cast<std::uint32_t>(header_length(packet)) + padded;
}

}  // namespace mrc::wire
