#include "wire/frame.h"

#include <cstring>

#include "base/assert.h"
#include "wire/codec.h"
#include "wire/datagram_frame.h"
#include "wire/ip_header.h"
#include "wire/reader.h"
#include "wire/writer.h"

namespace mrc::wire {
namespace {

constexpr std::uint16_t kEtherTypeIpv4 = 0x0800;
constexpr std::uint16_t kEtherTypeIpv6 = 0x86DD;
constexpr std::size_t kMaxIpv4Payload = 0xFFFF - kIpv4HeaderLength;
constexpr std::size_t kMaxIpv6Payload = 0xFFFF;
constexpr std::uint8_t kMaxDscp = 63;

// Where the parts of a frame begin, as offsets into it, and the headers found on the way.
struct Layout {
  std::size_t outer_ip = 0;  // equals `ip` in plain mode
  std::size_t ip = 0;        // the innermost IP header
  std::size_t udp = 0;
  std::size_t transport = 0;
  std::size_t end = 0;  // of the UDP payload
  IpHeader outer;       // SRv6 mode only
  IpHeader inner;
  UdpHeader udp_header;
  TrimMark trim = TrimMark::kNone;
};

// The end of the IP payload whose header lies at `at`. Only a trimmed packet may be shorter than
// its header says; `limit` is where the bytes, or the surrounding header's payload, end.
DropReason find_ip_end(const IpHeader& ip, std::size_t at, bool trimmed, std::size_t limit,
                       std::size_t& end) {
  end = at + ip.length() + ip.payload_length;
  if (end <= limit) return DropReason::kNone;
  end = limit;
  return trimmed ? DropReason::kNone : DropReason::kBadIpHeader;
}

DropReason locate_link(const FrameFormat& format, std::span<const std::byte> frame,
                       FrameHeader& header, Layout& layout) {
  if (!format.ethernet) return DropReason::kNone;
  ByteReader reader(frame);
  reader.copy_to(std::span(header.destination_mac));
  reader.copy_to(std::span(header.source_mac));
  const std::uint16_t type = reader.u16();
  const std::uint8_t version = static_cast<std::uint8_t>(reader.u8() >> 4);
  if (reader.failed()) return DropReason::kTruncated;
  if (type != kEtherTypeIpv4 && type != kEtherTypeIpv6) return DropReason::kBadEtherType;
  if (version != (type == kEtherTypeIpv4 ? 4 : 6)) return DropReason::kBadIpVersion;
  layout.outer_ip = kEthernetHeaderLength;
  return DropReason::kNone;
}

// The outermost IP header, and in SRv6 mode the routing header and the inner IP header.
DropReason locate_ip(const FrameFormat& format, std::span<const std::byte> frame,
                     FrameHeader& header, Layout& layout) {
  layout.ip = layout.outer_ip;
  DropReason reason = parse_ip_header(frame.subspan(layout.ip), layout.inner);
  if (reason != DropReason::kNone) return reason;
  layout.trim = trim_mark(format.dscp, layout.inner.dscp);
  const bool trimmed = layout.trim != TrimMark::kNone;
  reason = find_ip_end(layout.inner, layout.ip, trimmed, frame.size(), layout.end);
  if (reason != DropReason::kNone) return reason;
  if (!format.ethernet && layout.end != frame.size()) return DropReason::kBadIpHeader;

  std::uint8_t next = layout.inner.next_header;
  std::size_t at = layout.ip + layout.inner.length();
  header.srv6 = !layout.inner.source.is_v4 && next != kNextHeaderUdp;
  if (!header.srv6) {
    layout.udp = at;
    return next == kNextHeaderUdp ? DropReason::kNone : DropReason::kBadNextHeader;
  }

  layout.outer = layout.inner;
  if (next == kNextHeaderRouting) {
    const auto srh = frame.subspan(at, layout.end - at);
    reason = parse_srh(srh, header.outer.segment, next);
    if (reason != DropReason::kNone) return reason;
    header.outer.has_segment = true;
    at += kSrhLength;
  }
  if (next != kNextHeaderIpv6) return DropReason::kBadNextHeader;
  layout.ip = at;
  const std::size_t outer_end = layout.end;
  reason = parse_ip_header(frame.subspan(at, outer_end - at), layout.inner);
  if (reason != DropReason::kNone) return reason;
  if (layout.inner.source.is_v4) return DropReason::kBadIpVersion;
  if (layout.inner.next_header != kNextHeaderUdp) return DropReason::kBadNextHeader;
  reason = find_ip_end(layout.inner, at, trimmed, outer_end, layout.end);
  if (reason != DropReason::kNone) return reason;
  layout.udp = at + kIpv6HeaderLength;
  return layout.end == outer_end ? DropReason::kNone : DropReason::kBadIpHeader;
}

DropReason locate_udp(const FrameFormat& format, std::span<const std::byte> frame, Layout& layout) {
  const auto bytes = frame.subspan(layout.udp, layout.end - layout.udp);
  const DropReason reason = parse_udp_header(bytes, layout.udp_header);
  if (reason != DropReason::kNone) return reason;
  if (layout.udp_header.destination_port != format.udp_port) return DropReason::kBadUdpPort;
  layout.transport = layout.udp + kUdpHeaderLength;
  // A switch that trims may or may not have corrected this length.
  if (layout.trim != TrimMark::kNone) return DropReason::kNone;
  return layout.udp_header.length == bytes.size() ? DropReason::kNone : DropReason::kBadUdpLength;
}

DropReason locate(const FrameFormat& format, std::span<const std::byte> frame, FrameHeader& header,
                  Layout& layout) {
  DropReason reason = locate_link(format, frame, header, layout);
  if (reason == DropReason::kNone) reason = locate_ip(format, frame, header, layout);
  if (reason == DropReason::kNone) reason = locate_udp(format, frame, layout);
  return reason;
}

DropReason fill_header(const FrameFormat& format, const Layout& layout, FrameHeader& header) {
  const IpHeader& inner = layout.inner;
  header.source = inner.source;
  header.destination = inner.destination;
  header.hop_limit = inner.hop_limit;
  const bool by_outer = header.srv6 && format.dialect.ev_label == EvLabel::kOuter;
  const std::uint32_t label = by_outer ? layout.outer.flow_label : inner.flow_label;
  header.entropy = (label & 0xFFFF) << 16 | layout.udp_header.source_port;
  header.trim = layout.trim;
  header.dscp = inner.dscp;
  header.ecn = inner.ecn;
  if (!header.srv6) return DropReason::kNone;

  header.outer.source = layout.outer.source;
  header.outer.carrier = layout.outer.destination;
  header.outer.hop_limit = layout.outer.hop_limit;
  header.dscp = layout.outer.dscp;
  const auto ecn = decapsulate_ecn(inner.ecn, layout.outer.ecn);
  if (!ecn.has_value()) return DropReason::kBadIpHeader;
  header.ecn = *ecn;
  return DropReason::kNone;
}

IpHeader inner_ip(const FrameHeader& header, std::size_t udp_length) {
  return {.source = header.source,
          .destination = header.destination,
          .dscp = header.dscp,
          .ecn = header.ecn,
          .hop_limit = header.hop_limit,
          .flow_label = header.entropy >> 16,
          .next_header = kNextHeaderUdp,
          .payload_length = static_cast<std::uint16_t>(udp_length)};
}

IpHeader outer_ip(const FrameHeader& header, std::size_t payload_length) {
  return {.source = header.outer.source,
          .destination = header.outer.carrier,
          .dscp = header.dscp,
          .ecn = encapsulate_ecn(header.ecn),
          .hop_limit = header.outer.hop_limit,
          .flow_label = header.entropy >> 16,
          .next_header = header.outer.has_segment ? kNextHeaderRouting : kNextHeaderIpv6,
          .payload_length = static_cast<std::uint16_t>(payload_length)};
}

UdpHeader udp_of(const FrameFormat& format, const FrameHeader& header, std::size_t udp_length) {
  return {.source_port = static_cast<std::uint16_t>(header.entropy & 0xFFFF),
          .destination_port = format.udp_port,
          .length = static_cast<std::uint16_t>(udp_length)};
}

std::size_t srv6_overhead(const FrameHeader& header) {
  if (!header.srv6) return 0;
  return kIpv6HeaderLength + (header.outer.has_segment ? kSrhLength : 0);
}

bool lengths_fit(const FrameHeader& header, std::size_t udp_length) {
  if (header.source.is_v4) return udp_length <= kMaxIpv4Payload;
  // The outer payload is the longest: routing header, inner header, and the rest.
  return udp_length + srv6_overhead(header) <= kMaxIpv6Payload;
}

// Link, outer IP and routing header. All room has been checked.
std::size_t build_tunnel(const FrameFormat& format, const FrameHeader& header,
                         std::size_t udp_length, std::span<std::byte> out) {
  std::size_t at = 0;
  if (format.ethernet) {
    ByteWriter writer(out);
    writer.copy_from(std::span(header.destination_mac));
    writer.copy_from(std::span(header.source_mac));
    writer.u16(header.source.is_v4 ? kEtherTypeIpv4 : kEtherTypeIpv6);
    at = writer.written();
  }
  if (!header.srv6) return at;
  const std::size_t payload_length = srv6_overhead(header) + udp_length;
  at += build_ip_header(outer_ip(header, payload_length), out.subspan(at));
  if (header.outer.has_segment) {
    at += build_srh(header.outer.segment, kNextHeaderIpv6, out.subspan(at));
  }
  return at;
}

Icrc icrc_of_headers(std::span<const std::byte> ip_and_udp) {
  Icrc icrc;
  const std::size_t ip_length = ip_and_udp.size() - kUdpHeaderLength;
  icrc.add_ip_header(ip_and_udp.first(ip_length));
  icrc.add_udp_header(ip_and_udp.subspan(ip_length));
  return icrc;
}

// The same for a packet in a tunnel. `headers` begins with the outer IP header and ends with UDP's.
Icrc icrc_of_tunnel(const FrameFormat& format, std::span<const std::byte> headers) {
  if (format.dialect.srv6_icrc != Srv6Icrc::kOuter) {
    return icrc_of_headers(headers.last(kIpv6HeaderLength + kUdpHeaderLength));
  }
  constexpr std::size_t kDestination = 24;
  std::array<std::byte, kIpv6HeaderLength + kUdpHeaderLength> covered;
  std::memcpy(covered.data(), headers.data(), kDestination);
  std::memset(covered.data() + kDestination, 0xFF, kIpv6HeaderLength - kDestination);
  std::memcpy(covered.data() + kIpv6HeaderLength, headers.last(kUdpHeaderLength).data(),
              kUdpHeaderLength);
  return icrc_of_headers(covered);
}

// Corrects the length, and for the outermost header the code point, of an IP header in place.
void rewrite_ip(std::span<std::byte> frame, std::size_t at, IpHeader header, std::size_t end) {
  header.payload_length = static_cast<std::uint16_t>(end - at - header.length());
  const auto bytes = frame.subspan(at, header.length());
  if (!header.source.is_v4) {
    const std::size_t written = build_ip_header(header, bytes);
    MRC_ASSERT(written == bytes.size());
    return;
  }
  // Not rebuilt, because the id and the don't-fragment bit are the sender's.
  const auto total = static_cast<std::uint16_t>(header.length() + header.payload_length);
  ByteWriter(bytes.subspan(1, 1))
      .u8(static_cast<std::uint8_t>(header.dscp << 2 | static_cast<int>(header.ecn)));
  ByteWriter(bytes.subspan(2, 2)).u16(total);
  ByteWriter(bytes.subspan(10, 2)).u16(ipv4_checksum(bytes));
}

// Cuts a frame at `end`, which lies within it, as switches do.
std::size_t cut_frame(const FrameFormat& format, std::span<std::byte> frame, bool last_hop,
                      bool srv6, Layout& layout, std::size_t end) {
  IpHeader& outermost = srv6 ? layout.outer : layout.inner;
  outermost.dscp = last_hop ? format.dscp.trimmed_last_hop : format.dscp.trimmed;
  rewrite_ip(frame, layout.ip, layout.inner, end);
  if (srv6) rewrite_ip(frame, layout.outer_ip, layout.outer, end);
  const auto udp_length = static_cast<std::uint16_t>(end - layout.udp);
  ByteWriter(frame.subspan(layout.udp + 4, 2)).u16(udp_length);
  return end;
}

}  // namespace

Status check_dscp_map(const DscpMap& map) {
  const std::uint8_t plain[] = {map.control, map.trimmable, map.trimmable_retx, map.no_trim};
  bool sound = map.trimmed <= kMaxDscp && map.trimmed_last_hop <= kMaxDscp;
  bool distinct = map.trimmed != map.trimmed_last_hop;
  for (const std::uint8_t dscp : plain) {
    sound = sound && dscp <= kMaxDscp;
    distinct = distinct && dscp != map.trimmed && dscp != map.trimmed_last_hop;
  }
  if (!sound) return {ErrorCode::kInvalidArgument, "a DSCP is above 63"};
  if (!distinct) {
    return {ErrorCode::kInvalidArgument, "the DSCP of trimmed packets has a second meaning"};
  }
  return {};
}

TrimMark trim_mark(const DscpMap& map, std::uint8_t dscp) {
  if (dscp == map.trimmed) return TrimMark::kTrimmed;
  return dscp == map.trimmed_last_hop ? TrimMark::kTrimmedLastHop : TrimMark::kNone;
}

bool may_trim(const DscpMap& map, std::uint8_t dscp) {
  return dscp == map.trimmable || dscp == map.trimmable_retx;
}

std::size_t frame_overhead(const FrameFormat& format, const FrameHeader& header) {
  return (format.ethernet ? kEthernetHeaderLength : 0) + srv6_overhead(header) +
         (header.source.is_v4 ? kIpv4HeaderLength : kIpv6HeaderLength) + kUdpHeaderLength;
}

std::size_t frame_length(const FrameFormat& format, const FrameHeader& header, const Packet& packet,
                         std::size_t payload_length) {
  return frame_overhead(format, header) + header_length(packet) + payload_length +
         pad_length(payload_length) + kIcrcLength;
}

std::size_t payload_bytes(PayloadPieces payload) {
  std::size_t length = 0;
  for (const auto piece : payload)
    length += piece.size();
  return length;
}

std::size_t build_frame(const FrameFormat& format, const FrameHeader& header, const Packet& packet,
                        PayloadPieces payload, std::span<std::byte> out) {
  MRC_ASSERT(header.source.is_v4 == header.destination.is_v4);
  MRC_ASSERT(!header.srv6 || !header.source.is_v4);
  const std::size_t payload_length = payload_bytes(payload);
  MRC_ASSERT(payload_length == 0 || is_write(packet.bth.opcode));
  const std::size_t length = frame_length(format, header, packet, payload_length);
  const std::size_t transport_at = frame_overhead(format, header);
  const std::size_t udp_length = length - transport_at + kUdpHeaderLength;
  if (length > out.size() || !lengths_fit(header, udp_length)) return 0;

  std::size_t at = build_tunnel(format, header, udp_length, out);
  at += build_ip_header(inner_ip(header, udp_length), out.subspan(at));
  at += build_udp_header(udp_of(format, header, udp_length), out.subspan(at));
  Packet padded = packet;
  padded.bth.pad = pad_length(payload_length);
  at += build_transport(padded, out.subspan(at), format.dialect);
  ByteWriter writer(out.subspan(at));
  for (const auto piece : payload) {
    const auto room = writer.claim(piece.size());
    if (!room.empty()) std::memcpy(room.data(), piece.data(), room.size());
  }
  writer.zeros(padded.bth.pad);
  at += writer.written();
  MRC_ASSERT(at + kIcrcLength == length);

  const std::size_t outer_at = format.ethernet ? kEthernetHeaderLength : 0;
  Icrc icrc = header.srv6 ? icrc_of_tunnel(format, out.subspan(outer_at, transport_at - outer_at))
                          : icrc_of_headers(out.subspan(outer_at, transport_at - outer_at));
  icrc.add_transport(out.subspan(transport_at, at - transport_at));
  store_icrc(icrc.value(), out.subspan(at, kIcrcLength));
  return length;
}

DropReason open_frame(const FrameFormat& format, std::span<const std::byte> frame,
                      OpenedFrame& out) {
  out = OpenedFrame{};
  Layout layout;
  DropReason reason = locate(format, frame, out.header, layout);
  if (reason == DropReason::kNone) reason = fill_header(format, layout, out.header);
  if (reason != DropReason::kNone) return reason;
  out.transport = frame.subspan(layout.transport, layout.end - layout.transport);
  if (layout.trim != TrimMark::kNone) return DropReason::kNone;
  if (out.transport.size() < kBthLength + kIcrcLength) return DropReason::kTruncated;
  const std::uint32_t sent = load_icrc(out.transport.last(kIcrcLength));
  out.transport = out.transport.first(out.transport.size() - kIcrcLength);
  const auto headers = frame.subspan(layout.outer_ip, layout.transport - layout.outer_ip);
  Icrc icrc = out.header.srv6 ? icrc_of_tunnel(format, headers) : icrc_of_headers(headers);
  icrc.add_transport(out.transport);
  const bool unchecked = out.header.srv6 && format.dialect.srv6_icrc == Srv6Icrc::kUnchecked;
  out.icrc_good = icrc.value() == sent || unchecked;
  return DropReason::kNone;
}

DropReason parse_frame(const FrameFormat& format, std::span<const std::byte> frame,
                       FrameHeader& header, Packet& packet, std::span<const std::byte>& payload) {
  payload = {};
  OpenedFrame opened;
  const DropReason reason = open_frame(format, frame, opened);
  header = opened.header;
  if (reason != DropReason::kNone) return reason;
  if (header.trim != TrimMark::kNone) {
    return parse_trimmed_transport(opened.transport, packet, format.dialect);
  }
  if (!opened.icrc_good) return DropReason::kBadIcrc;
  return parse_transport(opened.transport, packet, payload, format.dialect);
}

Icrc begin_icrc(const FrameFormat& format, const FrameHeader& header,
                std::size_t transport_length) {
  const std::size_t udp_length = kUdpHeaderLength + transport_length + kIcrcLength;
  std::array<std::byte, kIpv6HeaderLength + kUdpHeaderLength> headers;
  std::size_t length = build_ip_header(inner_ip(header, udp_length), headers);
  length +=
      build_udp_header(udp_of(format, header, udp_length), std::span(headers).subspan(length));
  return icrc_of_headers(std::span(headers).first(length));
}

std::size_t trim_frame(const FrameFormat& format, std::span<std::byte> frame, bool last_hop) {
  FrameHeader header;
  Layout layout;
  if (locate(format, frame, header, layout) != DropReason::kNone) return 0;
  const IpHeader& outermost = header.srv6 ? layout.outer : layout.inner;
  if (!may_trim(format.dscp, outermost.dscp)) return 0;
  Packet packet;
  const auto transport = frame.subspan(layout.transport, layout.end - layout.transport);
  if (parse_trimmed_transport(transport, packet) != DropReason::kNone) return 0;

  const std::size_t end = layout.transport + trimmed_length(packet.bth.has_timestamp);
  return cut_frame(format, frame, last_hop, header.srv6, layout, end);
}

std::size_t build_frame_headers(const FrameFormat& format, const FrameHeader& header,
                                std::size_t datagram_length, std::span<std::byte> out) {
  MRC_ASSERT(header.source.is_v4 == header.destination.is_v4);
  MRC_ASSERT(!header.srv6 || !header.source.is_v4);
  const std::size_t udp_length = kUdpHeaderLength + datagram_length;
  const std::size_t overhead = frame_overhead(format, header);
  if (overhead + datagram_length > out.size() || !lengths_fit(header, udp_length)) return 0;
  std::size_t at = build_tunnel(format, header, udp_length, out);
  at += build_ip_header(inner_ip(header, udp_length), out.subspan(at));
  at += build_udp_header(udp_of(format, header, udp_length), out.subspan(at));
  MRC_ASSERT(at == overhead);
  return at;
}

DropReason find_datagram(const FrameFormat& format, std::span<const std::byte> frame,
                         FrameHeader& header, std::span<const std::byte>& datagram) {
  header = FrameHeader{};
  Layout layout;
  DropReason reason = locate(format, frame, header, layout);
  if (reason == DropReason::kNone) reason = fill_header(format, layout, header);
  if (reason == DropReason::kNone)
    datagram = frame.subspan(layout.transport, layout.end - layout.transport);
  return reason;
}

std::size_t trim_frame_to(const FrameFormat& format, std::span<std::byte> frame, bool last_hop,
                          std::size_t keep) {
  FrameHeader header;
  Layout layout;
  if (locate(format, frame, header, layout) != DropReason::kNone) return 0;
  const IpHeader& outermost = header.srv6 ? layout.outer : layout.inner;
  if (!may_trim(format.dscp, outermost.dscp)) return 0;
  const std::size_t end = layout.transport + keep;
  if (end >= layout.end) return 0;
  return cut_frame(format, frame, last_hop, header.srv6, layout, end);
}

}  // namespace mrc::wire
