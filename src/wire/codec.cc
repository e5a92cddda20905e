#include "wire/codec.h"

#include <bit>
#include <cstring>
#include <memory>
#include <type_traits>
#include <utility>
#include <variant>

#include "base/assert.h"
#include "wire/reader.h"
#include "wire/writer.h"

namespace mrc::wire {
namespace {

constexpr std::uint8_t kTransportVersion = 0;
constexpr std::uint16_t kTimestampType = 1;  // ftype
constexpr std::uint8_t kSackCcType = 0;
constexpr std::uint8_t kNackCcType = 2;
constexpr std::uint8_t kSyndromeKindMask = 0x60;
constexpr std::uint8_t kSyndromeKindNak = 0x60;
constexpr std::uint32_t kAckMsnMask = 0xFF'FFFF;
// In the BTH.
constexpr std::byte kPadBits{0x30};  // of byte 1
constexpr std::size_t kFlagsOffset = 8;
constexpr std::byte kTimestampFlag{0x10};
constexpr std::size_t kPsnOffset = 9;

constexpr unsigned solicited_bit(const Dialect& dialect) {
  return static_cast<unsigned>(dialect.bth_order);
}
constexpr unsigned migration_bit(const Dialect& dialect) {
  return kBthOrderBits ^ static_cast<unsigned>(dialect.bth_order);
}

// From our entropy to the EV that is echoed and back: the halves change places or stay.
constexpr std::uint32_t turned(std::uint32_t entropy, const Dialect& dialect) {
  return std::rotl(entropy, static_cast<int>(dialect.ev_order));
}

// How much the AETH's number is above ours, which counts complete messages.
constexpr std::uint32_t ack_msn_base(const Dialect& dialect) {
  return dialect.first_msn + static_cast<std::uint32_t>(dialect.ack_msn) - 1;
}

DropReason parse_bth(ByteReader& reader, Bth& bth, const Dialect& dialect) {
  const std::uint8_t opcode = reader.u8();
  const std::uint8_t flags = reader.u8();
  bth.partition_key = reader.u16();
  reader.skip(1);
  bth.destination = QpNumber{reader.u24()};
  const std::uint8_t more_flags = reader.u8();
  bth.psn = Psn(reader.u24());
  if (reader.failed()) return DropReason::kTruncated;
  if ((flags & 0x0F) != kTransportVersion) return DropReason::kBadTransportVersion;
  if (!is_known_opcode(opcode)) return DropReason::kUnknownOpcode;

  bth.opcode = static_cast<Opcode>(opcode);
  bth.solicited = (flags & solicited_bit(dialect)) != 0;
  bth.migration = (flags & migration_bit(dialect)) != 0;
  bth.pad = static_cast<std::uint8_t>((flags >> 4) & 0x03);
  bth.ack_request = (more_flags & 0x80) != 0;
  bth.retransmission = (more_flags & 0x20) != 0;
  // No TSETH is defined outside write packets, so there the bit says nothing.
  bth.has_timestamp = (more_flags & 0x10) != 0 && is_write(bth.opcode);
  bth.takes_header_check = (more_flags & 0x01) != 0;
  return DropReason::kNone;
}

// The 32-bit word of TSETH, which PETH and ERTH end with as well.
DropReason parse_timestamp(ByteReader& reader, Timestamp& timestamp) {
  timestamp.ticks = reader.u16();
  const std::uint16_t low = reader.u16();
  timestamp.microseconds = (low & 0x8000) != 0;
  if (reader.failed()) return DropReason::kTruncated;
  return (low & 0x000F) == kTimestampType ? DropReason::kNone : DropReason::kBadHeaderField;
}

// METH and, if announced, TSETH.
DropReason parse_write_start(ByteReader& reader, const Bth& bth, Write& write,
                             const Dialect& dialect) {
  write.receive_msn = static_cast<std::uint16_t>(reader.u16() - dialect.first_rqmsn);
  write.msn = static_cast<std::uint16_t>(reader.u16() - dialect.first_msn);
  if (reader.failed()) return DropReason::kTruncated;
  return bth.has_timestamp ? parse_timestamp(reader, write.timestamp) : DropReason::kNone;
}

DropReason parse_write(ByteReader& reader, const Bth& bth, Write& write, const Dialect& dialect) {
  const DropReason start = parse_write_start(reader, bth, write, dialect);
  if (start != DropReason::kNone) return start;
  write.address = reader.u64();
  write.key = Rkey{reader.u32()};
  write.message_length = reader.u32();
  if (has_immediate(bth.opcode)) write.immediate = reader.u32();
  return reader.failed() ? DropReason::kTruncated : DropReason::kNone;
}

bool is_known_nak(std::uint8_t syndrome) {
  return syndrome == kSyndromeNakInvalidRequest || syndrome == kSyndromeNakRemoteAccess ||
         syndrome == kSyndromeNakRemoteOperation || syndrome == kSyndromeNakImmediateLimit ||
         syndrome == kSyndromeNakReceiveQueueEmpty;
}

DropReason parse_ack(ByteReader& reader, Ack& ack, const Dialect& dialect) {
  ack.syndrome = reader.u8() & 0x7F;
  ack.msn = (reader.u24() - ack_msn_base(dialect)) & kAckMsnMask;
  if (reader.failed()) return DropReason::kTruncated;
  // There are no credits and no receiver-not-ready: either the plain ACK or some NAK.
  const bool nak = (ack.syndrome & kSyndromeKindMask) == kSyndromeKindNak;
  if (nak && dialect.unknown_nak == UnknownNak::kAct && !is_known_nak(ack.syndrome)) {
    ack.syndrome = kSyndromeNakRemoteOperation;
  }
  return nak || ack.syndrome == kSyndromeAck ? DropReason::kNone : DropReason::kBadHeaderField;
}

DropReason parse_sack(ByteReader& reader, Sack& sack, const Dialect& dialect) {
  const std::uint16_t flags = reader.u16();
  sack.mark = static_cast<PathMark>((flags >> 5) & 0x03);
  sack.probe_answer = (flags & 0x0002) != 0;
  sack.offset_or_probe_id = reader.u16();
  sack.entropy = turned(reader.u32(), dialect);
  sack.source_context = reader.u16();
  sack.destination_context = reader.u16();
  reader.skip(1);
  sack.cumulative = Psn(reader.u24());
  const std::uint8_t cc = reader.u8();
  sack.cc_type = static_cast<std::uint8_t>(cc >> 4);
  sack.cc_flags = cc & 0x0F;
  sack.window_units = reader.u8();
  sack.bitmap_offset = static_cast<std::int16_t>(reader.u16());
  sack.bitmap = reader.u64();
  sack.timestamp_ticks = reader.u16();
  sack.out_of_order_count = reader.u16() & 0x7FFF;
  const std::uint8_t penalty = reader.u8();
  sack.restore_window = (penalty & 0x80) != 0;
  sack.window_penalty = penalty & 0x7F;
  sack.received_units = reader.u24();
  if (reader.failed()) return DropReason::kTruncated;
  const bool allowed = sack.mark != PathMark::kReserved && sack.cc_type == kSackCcType;
  return allowed ? DropReason::kNone : DropReason::kBadHeaderField;
}

bool is_known_nack_reason(std::uint8_t value) {
  using enum NackReason;
  switch (static_cast<NackReason>(value)) {
    case kTrimmed:
    case kTrimmedLastHop:
    case kNoBitmap:
    case kNoPacketBuffer:
    case kNoResource:
    case kPsnOutOfWindow:
    case kUnexpectedEvent:
      return true;
  }
  return false;
}

DropReason parse_nack(ByteReader& reader, Nack& nack, const Dialect& dialect) {
  reader.skip(2);
  const std::uint8_t reason = reader.u8();
  nack.vendor_info = reader.u8();
  nack.entropy = turned(reader.u32(), dialect);
  nack.source_context = reader.u16();
  nack.destination_context = reader.u16();
  reader.skip(1);
  nack.psn = Psn(reader.u24());
  const std::uint8_t cc = reader.u8();
  nack.cc_type = static_cast<std::uint8_t>(cc >> 4);
  nack.cc_flags = cc & 0x0F;
  reader.skip(1);
  nack.timestamp_ticks = reader.u16();
  if (reader.failed()) return DropReason::kTruncated;
  nack.reason = static_cast<NackReason>(reason);
  if (!is_known_nack_reason(reason)) {
    if (dialect.unknown_nak == UnknownNak::kDrop) return DropReason::kBadHeaderField;
    nack.reason = NackReason::kNoResource;
  }
  return nack.cc_type == kNackCcType ? DropReason::kNone : DropReason::kBadHeaderField;
}

DropReason parse_probe(ByteReader& reader, Probe& probe) {
  reader.skip(3);
  probe.vendor_info = reader.u8();
  probe.probe_id = reader.u16();
  reader.skip(2);
  probe.source_context = reader.u16();
  probe.destination_context = reader.u16();
  return parse_timestamp(reader, probe.timestamp);
}

DropReason parse_endpoint_op(const Bth& bth, unsigned value, EndpointOp& op) {
  if (bth.destination != kEndpointQp) return DropReason::kBadHeaderField;
  if (value > static_cast<unsigned>(EndpointOp::kEvProbe)) return DropReason::kBadHeaderField;
  op = static_cast<EndpointOp>(value);
  return DropReason::kNone;
}

DropReason parse_endpoint_request(ByteReader& reader, const Bth& bth, EndpointRequest& request,
                                  const Dialect& dialect) {
  const std::uint16_t flags = reader.u16();
  reader.skip(1);
  request.vendor_info = reader.u8();
  request.port_status = reader.u32() >> dialect.port_bit;
  reader.skip(4);
  const DropReason stamp = parse_timestamp(reader, request.timestamp);
  if (stamp != DropReason::kNone) return stamp;
  return parse_endpoint_op(bth, flags & 0x03u, request.op);
}

DropReason parse_endpoint_response(ByteReader& reader, const Bth& bth, EndpointResponse& response,
                                   const Dialect& dialect) {
  const std::uint16_t flags = reader.u16();
  reader.skip(26);
  response.timestamp_ticks = reader.u16();
  reader.skip(6);
  if (reader.failed()) return DropReason::kTruncated;
  return parse_endpoint_op(bth, (flags >> static_cast<unsigned>(dialect.eeth_op)) & 0x03u,
                           response.op);
}

// A body of this type with its defaults, in the place of the one before, which has nothing to
// release. emplace() looks again at what it has just written, and g++ keeps the throw behind that
// on x86-64 although nothing calls it.
template <typename T>
T& begin_body(Packet& packet) {
  using Body = decltype(packet.body);
  static_assert(std::is_trivially_destructible_v<Body>);
  return *std::get_if<T>(std::construct_at(&packet.body, std::in_place_type<T>));
}

DropReason parse_control(ByteReader& reader, const Bth& bth, Packet& out, const Dialect& dialect) {
  switch (bth.opcode) {
    case Opcode::kAck:
      return parse_ack(reader, begin_body<Ack>(out), dialect);
    case Opcode::kSack:
      return parse_sack(reader, begin_body<Sack>(out), dialect);
    case Opcode::kNack:
      return parse_nack(reader, begin_body<Nack>(out), dialect);
    case Opcode::kProbe:
      return parse_probe(reader, begin_body<Probe>(out));
    case Opcode::kEndpointRequest:
      return parse_endpoint_request(reader, bth, begin_body<EndpointRequest>(out), dialect);
    case Opcode::kEndpointResponse:
      return parse_endpoint_response(reader, bth, begin_body<EndpointResponse>(out), dialect);
    default:
      return DropReason::kUnknownOpcode;
  }
}

// Whether a write packet may carry this much payload of a message that long. How long a packet of
// the middle must be depends on the path MTU, which the queue pair knows.
bool payload_fits_message(Opcode opcode, std::size_t payload_length, std::uint32_t message_length) {
  if (starts_message(opcode) && ends_message(opcode)) return payload_length == message_length;
  return payload_length > 0 && payload_length < message_length;
}

void build_bth(ByteWriter& writer, const Bth& bth, const Dialect& dialect) {
  unsigned flags = (bth.pad & 0x03u) << 4 | kTransportVersion;
  if (bth.solicited) flags |= solicited_bit(dialect);
  if (bth.migration) flags |= migration_bit(dialect);
  unsigned more_flags = 0;
  if (bth.ack_request) more_flags |= 0x80;
  if (bth.retransmission) more_flags |= 0x20;
  if (bth.has_timestamp && is_write(bth.opcode)) more_flags |= 0x10;
  if (bth.takes_header_check) more_flags |= 0x01;

  writer.u8(static_cast<std::uint8_t>(bth.opcode));
  writer.u8(static_cast<std::uint8_t>(flags));
  writer.u16(bth.partition_key);
  writer.u8(0);
  writer.u24(static_cast<std::uint32_t>(bth.destination));
  writer.u8(static_cast<std::uint8_t>(more_flags));
  writer.u24(bth.psn.value());
}

void build_timestamp(ByteWriter& writer, const Timestamp& timestamp) {
  writer.u16(timestamp.ticks);
  writer.u16(static_cast<std::uint16_t>((timestamp.microseconds ? 0x8000 : 0) | kTimestampType));
}

void build_write(ByteWriter& writer, const Bth& bth, const Write& write, const Dialect& dialect) {
  writer.u16(static_cast<std::uint16_t>(write.receive_msn + dialect.first_rqmsn));
  writer.u16(static_cast<std::uint16_t>(write.msn + dialect.first_msn));
  if (bth.has_timestamp) build_timestamp(writer, write.timestamp);
  writer.u64(write.address);
  writer.u32(static_cast<std::uint32_t>(write.key));
  writer.u32(write.message_length);
  if (has_immediate(bth.opcode)) writer.u32(write.immediate);
}

void build_ack(ByteWriter& writer, const Ack& ack, const Dialect& dialect) {
  writer.u8(ack.syndrome & 0x7F);
  writer.u24((ack.msn + ack_msn_base(dialect)) & kAckMsnMask);
}

std::uint8_t cc_byte(std::uint8_t type, std::uint8_t flags) {
  return static_cast<std::uint8_t>((type & 0x0F) << 4 | (flags & 0x0F));
}

void build_sack(ByteWriter& writer, const Sack& sack, const Dialect& dialect) {
  unsigned flags = (static_cast<unsigned>(sack.mark) & 0x03u) << 5;
  if (sack.probe_answer) flags |= 0x0002;
  writer.u16(static_cast<std::uint16_t>(flags));
  writer.u16(sack.offset_or_probe_id);
  writer.u32(turned(sack.entropy, dialect));
  writer.u16(sack.source_context);
  writer.u16(sack.destination_context);
  writer.u8(0);
  writer.u24(sack.cumulative.value());
  writer.u8(cc_byte(sack.cc_type, sack.cc_flags));
  writer.u8(sack.window_units);
  writer.u16(static_cast<std::uint16_t>(sack.bitmap_offset));
  writer.u64(sack.bitmap);
  writer.u16(sack.timestamp_ticks);
  writer.u16(sack.out_of_order_count & 0x7FFF);
  writer.u8(
      static_cast<std::uint8_t>((sack.restore_window ? 0x80 : 0) | (sack.window_penalty & 0x7F)));
  writer.u24(sack.received_units);
}

void build_nack(ByteWriter& writer, const Nack& nack, const Dialect& dialect) {
  writer.u16(0);
  writer.u8(static_cast<std::uint8_t>(nack.reason));
  writer.u8(nack.vendor_info);
  writer.u32(turned(nack.entropy, dialect));
  writer.u16(nack.source_context);
  writer.u16(nack.destination_context);
  writer.u8(0);
  writer.u24(nack.psn.value());
  writer.u8(cc_byte(nack.cc_type, nack.cc_flags));
  writer.u8(0);
  writer.u16(nack.timestamp_ticks);
}

void build_probe(ByteWriter& writer, const Probe& probe) {
  writer.zeros(3);
  writer.u8(probe.vendor_info);
  writer.u16(probe.probe_id);
  writer.zeros(2);
  writer.u16(probe.source_context);
  writer.u16(probe.destination_context);
  build_timestamp(writer, probe.timestamp);
}

void build_endpoint_request(ByteWriter& writer, const EndpointRequest& request,
                            const Dialect& dialect) {
  writer.u16(static_cast<std::uint16_t>(static_cast<unsigned>(request.op) & 0x03u));
  writer.u8(0);
  writer.u8(request.vendor_info);
  writer.u32(request.port_status << dialect.port_bit);
  writer.zeros(4);
  build_timestamp(writer, request.timestamp);
}

void build_endpoint_response(ByteWriter& writer, const EndpointResponse& response,
                             const Dialect& dialect) {
  const unsigned op = static_cast<unsigned>(response.op) & 0x03u;
  writer.u16(static_cast<std::uint16_t>(op << static_cast<unsigned>(dialect.eeth_op)));
  writer.zeros(26);
  writer.u16(response.timestamp_ticks);
  writer.zeros(6);
}

// The body as the type the opcode promises. A disagreement is our own mistake, never a peer's.
template <typename T>
const T& body_of(const Packet& packet) {
  const T* body = std::get_if<T>(&packet.body);
  MRC_ASSERT(body != nullptr);
  return *body;
}

}  // namespace

bool is_header_check(Icrc icrc, std::span<const std::byte> transport, std::uint32_t sent) {
  if (transport.size() < kBthLength) return false;
  const auto opcode = std::to_integer<std::uint8_t>(transport[0]);
  if (!is_known_opcode(opcode) || !is_write(Opcode{opcode})) return false;
  const bool has_timestamp = (transport[kFlagsOffset] & kTimestampFlag) != std::byte{0};
  const std::size_t headers = header_length(Opcode{opcode}, has_timestamp);
  if (transport.size() <= headers + kMostAlwaysCovered) return false;
  icrc.add_transport(transport.first(headers));
  return icrc.header_check() == sent;
}

// In a packet of the middle the address stands at the end of the headers but for key and length.
void move_header(std::span<std::byte> header, const Packet& packet) {
  const std::size_t address = header.size() - kRethLength;
  ByteWriter(header.subspan(kPsnOffset)).u24(packet.bth.psn.value());
  ByteWriter(header.subspan(address)).u64(body_of<Write>(packet).address);
}

bool continues_run(std::span<const std::byte> before, std::span<const std::byte> next) {
  constexpr std::byte kMiddle{static_cast<std::uint8_t>(Opcode::kWriteMiddle)};
  if (next.size() != before.size() || next.size() <= kBthLength || next[0] != kMiddle) return false;
  const bool has_timestamp = (next[kFlagsOffset] & kTimestampFlag) != std::byte{0};
  const std::size_t headers = header_length(Opcode::kWriteMiddle, has_timestamp);
  const bool padded = (next[1] & kPadBits) != std::byte{0};
  if (next.size() <= headers || padded) return false;
  const std::size_t address = headers - kRethLength;
  const std::size_t key = address + sizeof(std::uint64_t);
  const auto same = [&](std::size_t from, std::size_t to) {
    return std::memcmp(before.data() + from, next.data() + from, to - from) == 0;
  };
  if (!same(0, kPsnOffset) || !same(kBthLength, address) || !same(key, headers)) return false;
  const Psn psn(ByteReader(before.subspan(kPsnOffset)).u24());
  const std::uint64_t place = ByteReader(before.subspan(address)).u64();
  return Psn(ByteReader(next.subspan(kPsnOffset)).u24()) == psn + 1 &&
         ByteReader(next.subspan(address)).u64() == place + (next.size() - headers);
}

bool is_known_opcode(std::uint8_t value) {
  using enum Opcode;
  const auto opcode = static_cast<Opcode>(value);
  if (is_write(opcode)) return true;
  return opcode == kAck || opcode == kEndpointRequest || opcode == kEndpointResponse ||
         opcode == kSack || opcode == kNack || opcode == kProbe;
}

DropReason parse_transport(std::span<const std::byte> transport, Packet& out,
                           std::span<const std::byte>& payload, const Dialect& dialect) {
  ByteReader reader(transport);
  out.bth = Bth{};
  DropReason reason = parse_bth(reader, out.bth, dialect);
  if (reason != DropReason::kNone) return reason;

  if (!is_write(out.bth.opcode)) {
    payload = {};
    reason = parse_control(reader, out.bth, out, dialect);
    if (reason != DropReason::kNone) return reason;
    const bool exact = reader.left() == 0 && out.bth.pad == 0;
    return exact ? DropReason::kNone : DropReason::kBadPayloadLength;
  }

  Write& write = begin_body<Write>(out);
  reason = parse_write(reader, out.bth, write, dialect);
  if (reason != DropReason::kNone) return reason;
  const std::size_t padded = reader.left();
  if (padded % 4 != 0 || padded < out.bth.pad) return DropReason::kBadPayloadLength;
  payload = reader.take(padded - out.bth.pad);
  const bool fits = payload_fits_message(out.bth.opcode, payload.size(), write.message_length);
  return fits ? DropReason::kNone : DropReason::kBadPayloadLength;
}

DropReason parse_trimmed_transport(std::span<const std::byte> transport, Packet& out,
                                   const Dialect& dialect) {
  ByteReader reader(transport);
  out.bth = Bth{};
  const DropReason reason = parse_bth(reader, out.bth, dialect);
  if (reason != DropReason::kNone) return reason;
  if (!is_write(out.bth.opcode)) return DropReason::kBadHeaderField;
  return parse_write_start(reader, out.bth, begin_body<Write>(out), dialect);
}

std::size_t build_transport(const Packet& packet, std::span<std::byte> out,
                            const Dialect& dialect) {
  ByteWriter writer(out);
  const Bth& bth = packet.bth;
  build_bth(writer, bth, dialect);
  switch (bth.opcode) {
    case Opcode::kAck:
      build_ack(writer, body_of<Ack>(packet), dialect);
      break;
    case Opcode::kSack:
      build_sack(writer, body_of<Sack>(packet), dialect);
      break;
    case Opcode::kNack:
      build_nack(writer, body_of<Nack>(packet), dialect);
      break;
    case Opcode::kProbe:
      build_probe(writer, body_of<Probe>(packet));
      break;
    case Opcode::kEndpointRequest:
      build_endpoint_request(writer, body_of<EndpointRequest>(packet), dialect);
      break;
    case Opcode::kEndpointResponse:
      build_endpoint_response(writer, body_of<EndpointResponse>(packet), dialect);
      break;
    default:
      build_write(writer, bth, body_of<Write>(packet), dialect);
      break;
  }
  return writer.written();
}

std::size_t trimmed_length(bool has_timestamp) {
  return kBthLength + kMethLength + (has_timestamp ? kTsethLength : 0);
}

}  // namespace mrc::wire
