// Packets as a hostile peer would send them: well formed, with a valid checksum, and wrong in
// everything else. Sequence numbers stay near the edges where mistakes live.
#pragma once

#include <array>
#include <cstdint>

#include "core/endpoint.h"
#include "fuzz/engine_model.h"
#include "fuzz/fuzz_support.h"
#include "wire/packet.h"

namespace mrc::fuzz {

// A PSN near one of the edges of both windows, or any.
inline Psn near_psn(Input& in, const core::QpStatus& status, std::uint32_t window) {
  const auto pick = in.u8();
  const std::uint32_t offset = static_cast<std::uint32_t>(static_cast<std::int8_t>(in.u8())) / 8;
  switch (pick % 8) {
    case 0:
    case 1:
    case 2:
      return status.expected_psn + (in.u8() % 16U);
    case 3:
      return status.expected_psn + window + offset;
    case 4:
      return status.expected_psn + 2 * window + offset;
    case 5:
      return status.oldest_unacknowledged + offset;
    case 6:
      return status.next_psn + offset;
    default:
      return Psn(in.u32());
  }
}

inline std::uint32_t some_length(Input& in, std::uint32_t mtu) {
  const std::array<std::uint32_t, 8> choices{mtu, mtu, 0, 1, mtu - 1, 4, mtu + 4, in.u16()};
  return choices[in.u8() % choices.size()];
}

// Both ends have the same number. One packet in eight names another; else nothing would be seen
// behind that check.
template <typename Body>
void name_ends(Body& body, unsigned qp, bool wrong) {
  body.source_context = static_cast<std::uint16_t>(kQpNumbers[qp]);
  body.destination_context = static_cast<std::uint16_t>(kQpNumbers[qp]);
  if (wrong) ++body.source_context;
}

inline wire::Packet forge_write(Input& in, const Side& side, unsigned qp, const Shape& shape,
                                std::uint32_t& payload_length) {
  const core::QpStatus status = side.status(qp);
  wire::Packet packet;
  const std::uint8_t flags = in.u8();
  packet.bth.opcode = static_cast<wire::Opcode>(0xC6 + in.u8() % 6);
  packet.bth.destination = kQpNumbers[qp];
  packet.bth.psn = near_psn(in, status, shape.window_units * core::kWindowUnitPsns);
  packet.bth.solicited = (flags & 1) != 0;
  packet.bth.ack_request = (flags & 2) != 0;
  packet.bth.retransmission = (flags & 4) != 0;
  packet.bth.has_timestamp = (flags & 8) != 0;
  payload_length = some_length(in, shape.mtu);
  packet.bth.pad = wire::pad_length(payload_length);
  const Region& region = side.region(in.u8());
  wire::Write write;
  write.receive_msn = static_cast<std::uint16_t>(status.counters.immediates + in.u8() % 8);
  write.msn = in.u8();
  write.timestamp = {in.u16(), (flags & 16) != 0};
  write.address = region.memory.address;
  if ((flags & 32) != 0) write.address += region.memory.length;
  write.address += static_cast<std::uint64_t>(static_cast<std::int8_t>(in.u8())) * 64;
  write.key = (flags & 64) != 0 ? Rkey{in.u32()} : region.key;
  write.message_length = payload_length;
  if (!wire::starts_message(packet.bth.opcode) || !wire::ends_message(packet.bth.opcode)) {
    write.message_length += shape.mtu * (1U + in.u8() % 4);
  }
  if ((flags & 128) != 0) write.message_length = in.u32();
  write.immediate = in.u8();
  packet.body = write;
  return packet;
}

inline wire::Packet forge_sack(Input& in, const Side& side, unsigned qp, std::uint32_t entropy) {
  const core::QpStatus status = side.status(qp);
  const std::uint8_t flags = in.u8();
  wire::Sack sack;
  sack.mark = static_cast<wire::PathMark>(flags % 3);
  sack.probe_answer = (flags & 4) != 0;
  sack.entropy = entropy;
  const std::uint32_t open =
      static_cast<std::uint32_t>(status.next_psn.distance_from(status.oldest_unacknowledged));
  sack.cumulative = (flags & 8) != 0 ? near_psn(in, status, 128)
                                     : status.oldest_unacknowledged + in.u8() % (open + 1) - 1;
  sack.offset_or_probe_id = (flags & 16) != 0 ? in.u16() : in.u8() % 16;
  sack.bitmap_offset = static_cast<std::int16_t>((flags & 32) != 0 ? in.u16() : in.u8() % 64);
  sack.bitmap = (flags & 64) != 0 ? in.u64() : in.u8();
  sack.timestamp_ticks = in.u16();
  sack.window_units = (flags & 128) != 0 ? in.u8() : 0;
  const std::uint8_t more = in.u8();
  name_ends(sack, qp, more % 8 == 7);
  sack.restore_window = (more & 1) != 0;
  sack.window_penalty = (more & 2) != 0 ? in.u8() & 0x7F : 0;
  sack.out_of_order_count = more & 0x0F;
  sack.received_units = (more & 4) != 0 ? in.u32() & 0xFF'FFFF : more;
  wire::Packet packet;
  packet.bth = {
      .opcode = wire::Opcode::kSack, .destination = kQpNumbers[qp], .psn = sack.cumulative};
  packet.body = sack;
  return packet;
}

inline wire::Packet forge_nack(Input& in, const Side& side, unsigned qp, std::uint32_t entropy) {
  using enum wire::NackReason;
  constexpr std::array kReasons{kTrimmed,    kTrimmedLastHop, kNoBitmap,       kNoPacketBuffer,
                                kNoResource, kPsnOutOfWindow, kUnexpectedEvent};
  const core::QpStatus status = side.status(qp);
  wire::Nack nack;
  // The fatal one is rare, or nothing else would ever be seen.
  const std::uint8_t pick = in.u8();
  nack.reason = pick == 0xFF ? kUnexpectedEvent : kReasons[pick % (kReasons.size() - 1)];
  nack.entropy = entropy;
  nack.psn = near_psn(in, status, 128);
  nack.timestamp_ticks = in.u16();
  name_ends(nack, qp, nack.timestamp_ticks % 8 == 7);
  wire::Packet packet;
  packet.bth = {.opcode = wire::Opcode::kNack, .destination = kQpNumbers[qp], .psn = nack.psn};
  packet.body = nack;
  return packet;
}

inline wire::Packet forge_ack(Input& in, const Side& side, unsigned qp) {
  constexpr std::array<std::uint8_t, 6> kNaks{
      wire::kSyndromeNakInvalidRequest,    wire::kSyndromeNakRemoteAccess,
      wire::kSyndromeNakRemoteOperation,   wire::kSyndromeNakImmediateLimit,
      wire::kSyndromeNakReceiveQueueEmpty, 0x7F};
  const core::QpStatus status = side.status(qp);
  const std::uint8_t pick = in.u8();
  wire::Ack ack;
  ack.syndrome = pick < 0xF0 ? wire::kSyndromeAck : kNaks[pick % kNaks.size()];
  ack.msn = static_cast<std::uint32_t>(status.counters.messages_completed) + in.u8() % 8 - 2;
  ack.msn &= 0xFF'FFFF;
  wire::Packet packet;
  packet.bth = {.opcode = wire::Opcode::kAck,
                .destination = kQpNumbers[qp],
                .psn = near_psn(in, status, 128)};
  packet.body = ack;
  return packet;
}

inline wire::Packet forge_probe(Input& in, unsigned qp) {
  wire::Packet packet;
  packet.bth = {.opcode = wire::Opcode::kProbe, .destination = kQpNumbers[qp]};
  wire::Probe probe{.probe_id = in.u16(), .timestamp = {in.u16(), in.u8() % 2 == 0}};
  name_ends(probe, qp, probe.timestamp.ticks % 8 == 7);
  packet.body = probe;
  return packet;
}

inline wire::Packet forge_endpoint_operation(Input& in) {
  const std::uint8_t flags = in.u8();
  const auto op =
      (flags & 1) != 0 ? wire::EndpointOp::kEvProbe : wire::EndpointOp::kPortStatusUpdate;
  wire::Packet packet;
  packet.bth.destination = kEndpointQp;
  packet.bth.psn = Psn(in.u16());
  if ((flags & 2) != 0) {
    packet.bth.opcode = wire::Opcode::kEndpointResponse;
    packet.body = wire::EndpointResponse{.op = op, .timestamp_ticks = in.u16()};
  } else {
    packet.bth.opcode = wire::Opcode::kEndpointRequest;
    packet.body = wire::EndpointRequest{
        .op = op, .port_status = (flags & 4) != 0 ? in.u32() : in.u8(), .timestamp = {in.u16()}};
  }
  return packet;
}

}  // namespace mrc::fuzz
