#include "wire/ip_header.h"

#include "base/assert.h"
#include "wire/reader.h"
#include "wire/writer.h"

namespace mrc::wire {
namespace {

constexpr std::uint8_t kIpv4FirstByte = 0x45;  // version 4, five words
constexpr std::uint16_t kDontFragment = 0x4000;
constexpr std::uint16_t kFragmentBits = 0x3FFF;  // more fragments, offset
constexpr std::uint8_t kRoutingTypeSegment = 4;
constexpr std::uint8_t kSrhWords = (kSrhLength - 8) / 8;
constexpr std::uint8_t kMaxSegmentsLeft = 1;

void read_address(ByteReader& reader, IpAddress& address, bool is_v4) {
  address = IpAddress{};
  address.is_v4 = is_v4;
  reader.copy_to(std::span(address.bytes).first(is_v4 ? 4 : 16));
}

void write_address(ByteWriter& writer, const IpAddress& address) {
  writer.copy_from(std::span(address.bytes).first(address.is_v4 ? 4 : 16));
}

void split_traffic_class(std::uint8_t value, IpHeader& header) {
  header.dscp = static_cast<std::uint8_t>(value >> 2);
  header.ecn = static_cast<Ecn>(value & 0x03);
}

std::uint8_t traffic_class(const IpHeader& header) {
  return static_cast<std::uint8_t>((header.dscp & 0x3F) << 2 | static_cast<int>(header.ecn));
}

DropReason parse_ipv4(std::span<const std::byte> bytes, IpHeader& out) {
  ByteReader reader(bytes);
  const std::uint8_t first = reader.u8();
  split_traffic_class(reader.u8(), out);
  const std::uint16_t total_length = reader.u16();
  reader.skip(2);
  const std::uint16_t fragment = reader.u16();
  out.hop_limit = reader.u8();
  out.next_header = reader.u8();
  const std::uint16_t checksum = reader.u16();
  read_address(reader, out.source, true);
  read_address(reader, out.destination, true);
  if (reader.failed()) return DropReason::kTruncated;
  out.flow_label = 0;
  if (first != kIpv4FirstByte || (fragment & kFragmentBits) != 0) return DropReason::kBadIpHeader;
  if (total_length < kIpv4HeaderLength) return DropReason::kBadIpHeader;
  out.payload_length = static_cast<std::uint16_t>(total_length - kIpv4HeaderLength);
  const bool sound = checksum == ipv4_checksum(bytes.first(kIpv4HeaderLength));
  return sound ? DropReason::kNone : DropReason::kBadIpChecksum;
}

DropReason parse_ipv6(std::span<const std::byte> bytes, IpHeader& out) {
  ByteReader reader(bytes);
  const std::uint32_t first = reader.u32();
  split_traffic_class(static_cast<std::uint8_t>(first >> 20 & 0xFF), out);
  out.flow_label = first & 0xF'FFFF;
  out.payload_length = reader.u16();
  out.next_header = reader.u8();
  out.hop_limit = reader.u8();
  read_address(reader, out.source, false);
  read_address(reader, out.destination, false);
  return reader.failed() ? DropReason::kTruncated : DropReason::kNone;
}

void build_ipv4(ByteWriter& writer, const IpHeader& header) {
  const auto room = writer.claim(kIpv4HeaderLength);
  if (writer.failed()) return;
  MRC_ASSERT(header.payload_length <= 0xFFFF - kIpv4HeaderLength);
  ByteWriter fields(room);
  fields.u8(kIpv4FirstByte);
  fields.u8(traffic_class(header));
  fields.u16(static_cast<std::uint16_t>(kIpv4HeaderLength + header.payload_length));
  fields.u16(0);
  fields.u16(kDontFragment);
  fields.u8(header.hop_limit);
  fields.u8(header.next_header);
  fields.u16(0);
  write_address(fields, header.source);
  write_address(fields, header.destination);
  ByteWriter(room.subspan(10, 2)).u16(ipv4_checksum(room));
}

void build_ipv6(ByteWriter& writer, const IpHeader& header) {
  writer.u32(6u << 28 | std::uint32_t{traffic_class(header)} << 20 |
             (header.flow_label & 0xF'FFFF));
  writer.u16(header.payload_length);
  writer.u8(header.next_header);
  writer.u8(header.hop_limit);
  write_address(writer, header.source);
  write_address(writer, header.destination);
}

}  // namespace

std::uint16_t ipv4_checksum(std::span<const std::byte> header) {
  std::uint32_t sum = 0;
  ByteReader reader(header);
  for (std::size_t at = 0; at < kIpv4HeaderLength; at += 2) {
    const std::uint16_t word = reader.u16();
    if (at != 10) sum += word;
  }
  sum = (sum & 0xFFFF) + (sum >> 16);
  sum = (sum & 0xFFFF) + (sum >> 16);
  return static_cast<std::uint16_t>(~sum & 0xFFFF);
}

DropReason parse_ip_header(std::span<const std::byte> bytes, IpHeader& out) {
  if (bytes.empty()) return DropReason::kTruncated;
  switch (std::to_integer<unsigned>(bytes[0]) >> 4) {
    case 4:
      return parse_ipv4(bytes, out);
    case 6:
      return parse_ipv6(bytes, out);
    default:
      return DropReason::kBadIpVersion;
  }
}

std::size_t build_ip_header(const IpHeader& header, std::span<std::byte> out) {
  MRC_ASSERT(header.source.is_v4 == header.destination.is_v4);
  ByteWriter writer(out);
  if (header.source.is_v4) {
    build_ipv4(writer, header);
  } else {
    build_ipv6(writer, header);
  }
  return writer.written();
}

DropReason parse_srh(std::span<const std::byte> bytes, Segment& out, std::uint8_t& next_header) {
  ByteReader reader(bytes);
  next_header = reader.u8();
  const std::uint8_t words = reader.u8();
  const std::uint8_t type = reader.u8();
  out.left = reader.u8();
  const std::uint8_t last_entry = reader.u8();
  reader.skip(3);  // flags and tag mean nothing to us
  read_address(reader, out.address, false);
  if (reader.failed()) return DropReason::kTruncated;
  const bool ours = words == kSrhWords && type == kRoutingTypeSegment && last_entry == 0 &&
                    out.left <= kMaxSegmentsLeft;
  return ours ? DropReason::kNone : DropReason::kBadNextHeader;
}

std::size_t build_srh(const Segment& segment, std::uint8_t next_header, std::span<std::byte> out) {
  MRC_ASSERT(segment.left <= kMaxSegmentsLeft);
  ByteWriter writer(out);
  writer.u8(next_header);
  writer.u8(kSrhWords);
  writer.u8(kRoutingTypeSegment);
  writer.u8(segment.left);
  writer.zeros(4);  // last entry, flags, tag
  write_address(writer, segment.address);
  return writer.written();
}

DropReason parse_udp_header(std::span<const std::byte> bytes, UdpHeader& out) {
  ByteReader reader(bytes);
  out.source_port = reader.u16();
  out.destination_port = reader.u16();
  out.length = reader.u16();
  reader.skip(2);
  if (reader.failed()) return DropReason::kTruncated;
  return out.length >= kUdpHeaderLength ? DropReason::kNone : DropReason::kBadUdpLength;
}

std::size_t build_udp_header(const UdpHeader& header, std::span<std::byte> out) {
  ByteWriter writer(out);
  writer.u16(header.source_port);
  writer.u16(header.destination_port);
  writer.u16(header.length);
  writer.u16(0);
  return writer.written();
}

}  // namespace mrc::wire
