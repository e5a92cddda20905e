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
constexpr std::uint8_t kNextUdp = 17;
constexpr std::uint8_t kNextIpv6 = 41;
constexpr std::uint8_t kNextRouting = 43;
constexpr std::size_t kUdpLength = 8;
constexpr std::size_t kIpv6Length = 40;

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
  Bytes header;
  Bytes payload;  // cut to what the header says, or to what was captured
  bool cut = false;
  std::uint8_t next = 0;
  std::uint16_t label = 0;
  wire::IpAddress source;
  wire::IpAddress destination;
};

bool read_v4(Bytes bytes, Ip& ip) {
  ByteReader reader(bytes);
  const std::uint8_t version = reader.u8();
  reader.skip(1);
  const std::size_t length = reader.u16();
  reader.skip(2);
  const std::uint16_t fragment = reader.u16();
  reader.skip(1);
  ip.next = reader.u8();
  reader.skip(2);
  ip.source = wire::ipv4_address(reader.u32());
  ip.destination = wire::ipv4_address(reader.u32());
  if (reader.failed() || version != 0x45 || (fragment & 0x3FFF) != 0 || length < 20) return false;
  ip.header = bytes.first(20);
  ip.cut = length > bytes.size();
  ip.payload = bytes.first(ip.cut ? bytes.size() : length).subspan(20);
  return true;
}

bool read_v6(Bytes bytes, Ip& ip) {
  ByteReader reader(bytes);
  const std::uint32_t first = reader.u32();
  const std::size_t length = reader.u16();
  ip.next = reader.u8();
  reader.skip(1);
  const std::uint64_t source_high = reader.u64();
  ip.source = wire::ipv6_address(source_high, reader.u64());
  const std::uint64_t destination_high = reader.u64();
  ip.destination = wire::ipv6_address(destination_high, reader.u64());
  if (reader.failed() || first >> 28 != 6) return false;
  ip.label = static_cast<std::uint16_t>(first);
  ip.header = bytes.first(kIpv6Length);
  ip.cut = length > bytes.size() - kIpv6Length;
  ip.payload = bytes.subspan(kIpv6Length);
  if (!ip.cut) ip.payload = ip.payload.first(length);
  return true;
}

bool read_ip(Bytes bytes, Ip& ip) {
  if (bytes.empty()) return false;
  return std::to_integer<unsigned>(bytes[0]) >> 4 == 4 ? read_v4(bytes, ip) : read_v6(bytes, ip);
}

// A routing header of any length, as long as IPv6 follows it.
bool skip_routing(Ip& outer) {
  if (outer.next != kNextRouting) return outer.next == kNextIpv6;
  ByteReader reader(outer.payload);
  outer.next = reader.u8();
  const std::size_t length = (std::size_t{reader.u8()} + 1) * 8;
  if (reader.failed() || length > outer.payload.size()) return false;
  outer.payload = outer.payload.subspan(length);
  return outer.next == kNextIpv6;
}

bool icrc_fits(Bytes ip, Bytes udp, Bytes transport, std::uint32_t sent) {
  wire::Icrc icrc;
  icrc.add_ip_header(ip);
  icrc.add_udp_header(udp);
  icrc.add_transport(transport);
  return icrc.value() == sent;
}

// As wire::Srv6Icrc::kOuter has it.
std::array<std::byte, kIpv6Length> without_destination(Bytes header) {
  std::array<std::byte, kIpv6Length> covered;
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
  if (!outer.source.is_v4 && outer.next != kNextUdp) {
    out.tunnel = true;
    if (!skip_routing(outer) || !read_ip(outer.payload, ip) || ip.source.is_v4) return Seen::kOther;
  }
  if (ip.next != kNextUdp || ip.payload.size() < kUdpLength) return Seen::kOther;
  const Bytes udp = ip.payload.first(kUdpLength);
  ByteReader reader(udp);
  out.source_port = reader.u16();
  out.destination_port = reader.u16();
  const std::size_t udp_length = reader.u16();
  out.source = ip.source;
  out.destination = ip.destination;
  out.inner_label = ip.label;
  out.outer_label = outer.label;
  const Bytes datagram = ip.payload.subspan(kUdpLength);
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
