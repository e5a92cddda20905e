// Helpers shared by the wire tests: hex text and random packets.
#pragma once

#include <cstddef>
#include <cstdint>
#include <random>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "wire/codec.h"
#include "wire/packet.h"

namespace mrc::wire::test {

using Bytes = std::vector<std::byte>;
using Random = std::mt19937_64;

// Bytes from hex digits; blanks and bars between them are for the reader.
inline Bytes hex(std::string_view text) {
  Bytes bytes;
  unsigned value = 0;
  bool half = false;
  for (const char c : text) {
    if (c == ' ' || c == '|' || c == '\n') continue;
    const auto digit = static_cast<unsigned>(c <= '9' ? c - '0' : c - 'a' + 10);
    value = value << 4 | digit;
    if (half) bytes.push_back(static_cast<std::byte>(value & 0xFF));
    half = !half;
  }
  return bytes;
}

inline std::string to_hex(std::span<const std::byte> bytes) {
  std::string text;
  for (const std::byte b : bytes) {
    text += "0123456789abcdef"[std::to_integer<unsigned>(b) >> 4];
    text += "0123456789abcdef"[std::to_integer<unsigned>(b) & 0x0F];
  }
  return text;
}

// Bytes that tell their position, so that misplaced or swapped data shows.
inline Bytes numbered_bytes(std::size_t count) {
  Bytes bytes(count);
  for (std::size_t i = 0; i < count; ++i)
    bytes[i] = static_cast<std::byte>((i * 7 + i / 256) & 0xFF);
  return bytes;
}

inline constexpr Opcode kAllOpcodes[] = {
    Opcode::kWriteFirst,       Opcode::kWriteMiddle,  Opcode::kWriteLast, Opcode::kWriteLastImm,
    Opcode::kWriteOnly,        Opcode::kWriteOnlyImm, Opcode::kAck,       Opcode::kEndpointRequest,
    Opcode::kEndpointResponse, Opcode::kSack,         Opcode::kNack,      Opcode::kProbe};

inline constexpr NackReason kAllNackReasons[] = {
    NackReason::kTrimmed,        NackReason::kTrimmedLastHop, NackReason::kNoBitmap,
    NackReason::kNoPacketBuffer, NackReason::kNoResource,     NackReason::kPsnOutOfWindow,
    NackReason::kUnexpectedEvent};

template <typename T>
T draw(Random& random) {
  return static_cast<T>(random());
}
inline bool flip(Random& random) { return (random() & 1) != 0; }

inline Timestamp random_timestamp(Random& random) {
  return {.ticks = draw<std::uint16_t>(random), .microseconds = flip(random)};
}

inline Write random_write(Random& random, const Bth& bth, std::uint32_t payload_length) {
  Write write;
  write.receive_msn = draw<std::uint16_t>(random);
  write.msn = draw<std::uint16_t>(random);
  if (bth.has_timestamp) write.timestamp = random_timestamp(random);
  write.address = random();
  write.key = Rkey{draw<std::uint32_t>(random)};
  const bool whole = starts_message(bth.opcode) && ends_message(bth.opcode);
  write.message_length = payload_length + (whole ? 0 : 1 + draw<std::uint16_t>(random));
  if (has_immediate(bth.opcode)) write.immediate = draw<std::uint32_t>(random);
  return write;
}

inline Sack random_sack(Random& random) {
  return {.mark = static_cast<PathMark>(random() % 3),
          .probe_answer = flip(random),
          .offset_or_probe_id = draw<std::uint16_t>(random),
          .entropy = draw<std::uint32_t>(random),
          .source_context = draw<std::uint16_t>(random),
          .destination_context = draw<std::uint16_t>(random),
          .cumulative = Psn(draw<std::uint32_t>(random)),
          .cc_type = 0,
          .cc_flags = static_cast<std::uint8_t>(random() & 0x0F),
          .window_units = draw<std::uint8_t>(random),
          .bitmap_offset = draw<std::int16_t>(random),
          .bitmap = random(),
          .timestamp_ticks = draw<std::uint16_t>(random),
          .out_of_order_count = static_cast<std::uint16_t>(random() & 0x7FFF),
          .restore_window = flip(random),
          .window_penalty = static_cast<std::uint8_t>(random() & 0x7F),
          .received_units = static_cast<std::uint32_t>(random() & 0xFF'FFFF)};
}

inline Nack random_nack(Random& random) {
  return {.reason = kAllNackReasons[random() % std::size(kAllNackReasons)],
          .vendor_info = draw<std::uint8_t>(random),
          .entropy = draw<std::uint32_t>(random),
          .source_context = draw<std::uint16_t>(random),
          .destination_context = draw<std::uint16_t>(random),
          .psn = Psn(draw<std::uint32_t>(random)),
          .cc_type = 2,
          .cc_flags = static_cast<std::uint8_t>(random() & 0x0F),
          .timestamp_ticks = draw<std::uint16_t>(random)};
}

inline void fill_random_body(Random& random, Packet& packet, std::uint32_t payload_length) {
  switch (packet.bth.opcode) {
    case Opcode::kAck:
      packet.body = Ack{.syndrome = flip(random) ? kSyndromeAck : kSyndromeNakRemoteAccess,
                        .msn = static_cast<std::uint32_t>(random() & 0xFF'FFFF)};
      break;
    case Opcode::kSack:
      packet.body = random_sack(random);
      break;
    case Opcode::kNack:
      packet.body = random_nack(random);
      break;
    case Opcode::kProbe:
      packet.body = Probe{.vendor_info = draw<std::uint8_t>(random),
                          .probe_id = draw<std::uint16_t>(random),
                          .source_context = draw<std::uint16_t>(random),
                          .destination_context = draw<std::uint16_t>(random),
                          .timestamp = random_timestamp(random)};
      break;
    case Opcode::kEndpointRequest:
      packet.body = EndpointRequest{.op = static_cast<EndpointOp>(random() & 1),
                                    .vendor_info = draw<std::uint8_t>(random),
                                    .port_status = draw<std::uint32_t>(random),
                                    .timestamp = random_timestamp(random)};
      break;
    case Opcode::kEndpointResponse:
      packet.body = EndpointResponse{.op = static_cast<EndpointOp>(random() & 1),
                                     .timestamp_ticks = draw<std::uint16_t>(random)};
      break;
    default:
      packet.body = random_write(random, packet.bth, payload_length);
      break;
  }
}

// A packet that the codec must carry unchanged, for a payload of that length. Control packets
// ignore the length, which is then zero.
inline Packet random_packet(Random& random, Opcode opcode, std::uint32_t payload_length) {
  Packet packet;
  Bth& bth = packet.bth;
  bth.opcode = opcode;
  bth.solicited = flip(random);
  bth.migration = flip(random);
  bth.pad = is_write(opcode) ? pad_length(payload_length) : std::uint8_t{0};
  bth.ack_request = flip(random);
  bth.retransmission = flip(random);
  bth.has_timestamp = is_write(opcode) && flip(random);
  bth.takes_header_check = flip(random);
  bth.partition_key = draw<std::uint16_t>(random);
  const bool endpoint = opcode == Opcode::kEndpointRequest || opcode == Opcode::kEndpointResponse;
  const auto qp = static_cast<std::uint32_t>(random() & kQpNumberMask);
  bth.destination = endpoint ? kEndpointQp : QpNumber{qp};
  bth.psn = Psn(draw<std::uint32_t>(random));
  fill_random_body(random, packet, payload_length);
  return packet;
}

// A payload length the opcode allows.
inline std::uint32_t random_payload_length(Random& random, Opcode opcode) {
  if (!is_write(opcode)) return 0;
  const bool whole = starts_message(opcode) && ends_message(opcode);
  return static_cast<std::uint32_t>(random() % 300) + (whole ? 0 : 1);
}

// The transport part as bytes: headers, payload, padding.
inline Bytes transport_bytes(const Packet& packet, std::span<const std::byte> payload) {
  Bytes bytes(header_length(packet) + payload.size() + packet.bth.pad);
  const std::size_t headers = build_transport(packet, bytes);
  for (std::size_t i = 0; i < payload.size(); ++i)
    bytes[headers + i] = payload[i];
  return bytes;
}

}  // namespace mrc::wire::test
