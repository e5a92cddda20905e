#include "capture/seen_packet.h"

#include <array>
#include <cstring>

#include "wire/codec.h"
#include "wire/icrc.h"
#include "wire/ip_header.h"
#include "wire/reader.h"

namespace mrc::capture {
namespace {

using wire::ByteReader;
using Bytes = std::span<const std::byte>;

constexpr std::uint16_t kIpv4 = 0x0800;
constexpr std::uint16_t kIpv6 = 0x86DD;

// Behind the link's header; empty when it is none that we know or carries something else.
Bytes ip_of_ethernet(Bytes frame) {
  ByteReader reader(frame);
  reader.skip(12);
  std::uint16_t type = reader.u16();
  for (int tags = 0; tags < 2 && (type == 0x8100 || type == 0x88A8); ++tags) {
    reader.skip(2);
    type = reader.u16();
  }
  return type == kIpv4 || type == kIpv6 ? reader.rest() : Bytes{};
}

Bytes ip_of(const CapturedFrame& frame) {
  const auto behind = [&](std::size_t length) {
    return frame.bytes.size() > length ? frame.bytes.subspan(length) : Bytes{};
  };
  switch (static_cast<LinkType>(frame.link)) {
    case LinkType::kNull:
      return behind(4);
    case LinkType::kEthernet:
      return ip_of_ethernet(frame.bytes);
    case LinkType::kRaw:
      return frame.bytes;
    case LinkType::kCooked:
      return behind(16);
    case LinkType::kCooked2:
      return behind(20);
  }
  return {};
}

struct Ip {
  wire::IpHeader fields;
  Bytes header;
  Bytes payload;  // cut to what the header says, or to what was captured
  bool cut = false;
};

// The capture of a sender may show headers before the card has filled in their checksum.
bool read_ip(Bytes bytes, Ip& ip) {
  const DropReason refused = wire::parse_ip_header(bytes, ip.fields);
  if (refused != DropReason::kNone && refused != DropReason::kBadIpChecksum) return false;
  ip.header = bytes.first(ip.fields.length());
  ip.payload = bytes.subspan(ip.header.size());
  ip.cut = ip.fields.payload_length > ip.payload.size();
  if (!ip.cut) ip.payload = ip.payload.first(ip.fields.payload_length);
  return true;
}

// A routing header of any length, as long as IPv6 follows it.
bool skip_routing(Ip& outer) {
  if (outer.fields.next_header != wire::kNextHeaderRouting) {
    return outer.fields.next_header == wire::kNextHeaderIpv6;
  }
  ByteReader reader(outer.payload);
  outer.fields.next_header = reader.u8();
  const std::size_t length = (std::size_t{reader.u8()} + 1) * 8;
  if (reader.failed() || length > outer.payload.size()) return false;
  outer.payload = outer.payload.subspan(length);
  return outer.fields.next_header == wire::kNextHeaderIpv6;
}

bool icrc_fits(Bytes ip, Bytes udp, Bytes transport, std::uint32_t sent) {
  wire::Icrc icrc;
  icrc.add_ip_header(ip);
  icrc.add_udp_header(udp);
  icrc.add_transport(transport);
  return icrc.value() == sent;
}

// As wire::Srv6Icrc::kOuter has it.
std::array<std::byte, wire::kIpv6HeaderLength> without_destination(Bytes header) {
  std::array<std::byte, wire::kIpv6HeaderLength> covered;
  std::memcpy(covered.data(), header.data(), 24);
  std::memset(covered.data() + 24, 0xFF, 16);
  return covered;
}

bool begins_like_mrc(Bytes datagram) {
  if (datagram.size() < wire::kBthLength + wire::kMethLength) return false;
  const bool version = (datagram[1] & std::byte{0x0F}) == std::byte{0};
  return version && wire::is_known_opcode(std::to_integer<std::uint8_t>(datagram[0]));
}

}  // namespace

Seen look_at(const CapturedFrame& frame, SeenPacket& out) {
  out = SeenPacket{};
  Ip outer;
  if (!read_ip(ip_of(frame), outer)) return Seen::kOther;
  Ip ip = outer;
  if (!outer.fields.source.is_v4 && outer.fields.next_header != wire::kNextHeaderUdp) {
    out.tunnel = true;
    if (!skip_routing(outer) || !read_ip(outer.payload, ip)) return Seen::kOther;
    if (ip.fields.source.is_v4) return Seen::kOther;
  }
  if (ip.fields.next_header != wire::kNextHeaderUdp || ip.payload.size() < wire::kUdpHeaderLength)
    return Seen::kOther;
  const Bytes udp = ip.payload.first(wire::kUdpHeaderLength);
  ByteReader reader(udp);
  out.source_port = reader.u16();
  out.destination_port = reader.u16();
  const std::size_t udp_length = reader.u16();
  out.source = ip.fields.source;
  out.destination = ip.fields.destination;
  out.inner_label = static_cast<std::uint16_t>(ip.fields.flow_label);
  out.outer_label = static_cast<std::uint16_t>(outer.fields.flow_label);
  const Bytes datagram = ip.payload.subspan(wire::kUdpHeaderLength);
  if (!begins_like_mrc(datagram)) return Seen::kUdp;
  out.transport = datagram;
  out.whole = frame.whole && !outer.cut && !ip.cut && udp_length == ip.payload.size() &&
              datagram.size() >= wire::kBthLength + wire::kIcrcLength;
  if (!out.whole) return Seen::kMrc;
  out.transport = datagram.first(datagram.size() - wire::kIcrcLength);
  const std::uint32_t sent = wire::load_icrc(datagram.last(wire::kIcrcLength));
  out.icrc_plain = icrc_fits(ip.header, udp, out.transport, sent);
  if (out.tunnel && !out.icrc_plain) {
    out.icrc_outer = icrc_fits(without_destination(outer.header), udp, out.transport, sent);
  }
  return Seen::kMrc;
}

}  // namespace mrc::capture
