#include "sim/pcapng_frame.h"

#include <algorithm>

#include "base/assert.h"
#include "sim/memory_image.h"
#include "wire/frame.h"
#include "wire/ip_header.h"
#include "wire/writer.h"

namespace mrc::sim {
namespace {

constexpr std::size_t kMaxFrame = 16'384;
constexpr std::uint16_t kEtherTypeIpv6 = 0x86DD;
constexpr std::size_t kIcrcLength = 4;

wire::IpAddress ip_of(std::uint32_t host) {
  const Address address = host_address(host);
  return wire::ipv6_address(address.high, address.low);
}

// Locally administered, one for each port: what it belongs to, its plane and its number.
wire::MacAddress mac_of(const fabric::Node& node) {
  return {0x02,
          static_cast<std::uint8_t>(node.kind),
          node.plane,
          static_cast<std::uint8_t>(node.index >> 16),
          static_cast<std::uint8_t>(node.index >> 8),
          static_cast<std::uint8_t>(node.index)};
}

std::uint8_t dscp_of(const wire::DscpMap& dscp, const PacketHead& head) {
  // Trimming moves a packet to the control class; trim_frame() sets that code point.
  if (head.trim == PacketTrim::kWhole && head.priority == PacketClass::kControl)
    return dscp.control;
  if (head.priority == PacketClass::kDataNoTrim) return dscp.no_trim;
  return head.retransmission ? dscp.trimmable_retx : dscp.trimmable;
}

wire::Ecn ecn_of(const PacketHead& head) {
  if (head.congestion_experienced) return wire::Ecn::kCe;
  const bool control = head.priority == PacketClass::kControl && head.trim == PacketTrim::kWhole;
  return control || !head.ecn_capable ? wire::Ecn::kNotEct : wire::Ecn::kEct0;
}

std::vector<std::byte> payload_of(const SimConfig& config, const PacketBody& body) {
  std::vector<std::byte> payload(body.payload_bytes);
  if (!config.verify || payload.empty()) return payload;
  const TaskId task = task_of_address(body.local_address);
  const std::uint64_t offset = body.local_address - task_address(task);
  for (std::size_t i = 0; i < payload.size(); ++i)
    payload[i] = static_cast<std::byte>(MemoryImage::pattern(task, offset + i));
  return payload;
}

wire::FrameHeader header_of(const SimConfig& config, const fabric::Routing& routing,
                            fabric::LinkId id, const PacketHead& head) {
  const fabric::Link link = routing.topology().describe(id);
  wire::FrameHeader header;
  header.source_mac = mac_of(link.from);
  header.destination_mac = mac_of(link.to);
  header.source = ip_of(head.source);
  header.destination = ip_of(head.destination);
  header.ecn = ecn_of(head);
  header.entropy = head.entropy;
  const auto hop_limit = static_cast<std::uint8_t>(64 - head.hop);
  if (config.transport != Transport::kMrc || config.forwarding != fabric::ForwardingMode::kSrv6) {
    header.hop_limit = hop_limit;
    return header;
  }
  header.srv6 = true;
  header.outer.source = header.source;
  header.outer.hop_limit = hop_limit;
  const fabric::UsidList usids = usids_of(routing, head);
  const auto left = std::span(usids).subspan(head.hop);
  const auto end = std::find(left.begin(), left.end(), wire::kNoUsid);
  header.outer.carrier =
      wire::build_carrier(routing.block_of(link.from.plane),
                          left.first(static_cast<std::size_t>(end - left.begin())))
          .value();
  return header;
}

std::vector<std::byte> mrc_frame(const wire::FrameHeader& header, const PacketHead& head,
                                 const PacketBody& body, std::span<const std::byte> payload) {
  const wire::FrameFormat format;
  const auto& packet = std::get<wire::Packet>(body.packet);
  wire::FrameHeader complete = header;
  complete.dscp = dscp_of(format.dscp, head);
  std::vector<std::byte> frame(kMaxFrame);
  std::size_t length = wire::build_frame(format, complete, packet, std::span(&payload, 1), frame);
  MRC_ASSERT(length > 0);
  if (head.trim != PacketTrim::kWhole) {
    length = wire::trim_frame(format, std::span(frame).first(length),
                              head.trim == PacketTrim::kTrimmedLastHop);
    MRC_ASSERT(length > 0);
  }
  frame.resize(length);
  return frame;
}

// Opcodes of the InfiniBand reliable connection.
std::uint8_t roce_opcode(const RocePacket& packet) {
  switch (packet.kind) {
    case RocePacket::Kind::kAck:
    case RocePacket::Kind::kNak:
      return 0x11;
    case RocePacket::Kind::kCnp:
      return 0x81;
    case RocePacket::Kind::kData:
      break;
  }
  if (packet.first && packet.last) return packet.immediate ? 0x0B : 0x0A;
  if (packet.last) return packet.immediate ? 0x09 : 0x08;
  return packet.first ? 0x06 : 0x07;
}

void write_roce_transport(wire::ByteWriter& writer, const RocePacket& packet,
                          const PacketBody& body, std::span<const std::byte> payload) {
  constexpr std::uint32_t kFirstQp = 3;
  const std::size_t padding = (4 - payload.size() % 4) % 4;
  writer.u8(roce_opcode(packet));
  writer.u8(static_cast<std::uint8_t>(padding << 4));
  writer.u16(0xFFFF);
  writer.u8(0);
  writer.u24(packet.connection + kFirstQp);
  writer.u8(packet.ack_request ? 0x80 : 0);
  writer.u24(packet.psn & 0xFF'FFFF);
  if (packet.kind == RocePacket::Kind::kCnp) {
    writer.zeros(16);
  } else if (packet.kind != RocePacket::Kind::kData) {
    writer.u8(packet.kind == RocePacket::Kind::kAck ? 0x1F : 0x60);  // NAK: sequence error
    writer.u24(0);
  } else if (packet.first) {
    writer.u64(body.local_address);
    writer.u32(1);
    writer.u32(packet.payload_bytes);
  }
  if (packet.kind == RocePacket::Kind::kData && packet.last && packet.immediate)
    writer.u32(task_of_address(body.local_address));
  const auto room = writer.claim(payload.size());
  std::copy(payload.begin(), payload.end(), room.begin());
  writer.zeros(padding);
}

std::vector<std::byte> roce_frame(const wire::FrameHeader& header, const PacketHead& head,
                                  const PacketBody& body, std::span<const std::byte> payload) {
  constexpr std::uint8_t kDataDscp = 26;
  constexpr std::uint8_t kCnpDscp = 48;
  const auto& packet = std::get<RocePacket>(body.packet);
  std::vector<std::byte> transport(kMaxFrame);
  wire::ByteWriter inner(transport);
  write_roce_transport(inner, packet, body, payload);
  transport.resize(inner.written());
  const auto udp_length =
      static_cast<std::uint16_t>(wire::kUdpHeaderLength + transport.size() + kIcrcLength);
  const wire::IpHeader ip{.source = header.source,
                          .destination = header.destination,
                          .dscp = head.priority == PacketClass::kControl ? kCnpDscp : kDataDscp,
                          .ecn = header.ecn,
                          .hop_limit = header.hop_limit,
                          .flow_label = header.entropy >> 16,
                          .payload_length = udp_length};
  const wire::UdpHeader udp{.source_port = static_cast<std::uint16_t>(header.entropy),
                            .destination_port = wire::kDefaultUdpPort,
                            .length = udp_length};
  std::vector<std::byte> frame(kMaxFrame);
  wire::ByteWriter writer(frame);
  writer.copy_from(std::span(header.destination_mac));
  writer.copy_from(std::span(header.source_mac));
  writer.u16(kEtherTypeIpv6);
  const auto ip_bytes = writer.claim(wire::kIpv6HeaderLength);
  const auto udp_bytes = writer.claim(wire::kUdpHeaderLength);
  MRC_ASSERT(wire::build_ip_header(ip, ip_bytes) == ip_bytes.size());
  MRC_ASSERT(wire::build_udp_header(udp, udp_bytes) == udp_bytes.size());
  const auto room = writer.claim(transport.size());
  std::copy(transport.begin(), transport.end(), room.begin());
  wire::Icrc icrc;
  icrc.add_ip_header(ip_bytes);
  icrc.add_udp_header(udp_bytes);
  icrc.add_transport(room);
  for (unsigned byte = 0; byte < kIcrcLength; ++byte)
    writer.u8(static_cast<std::uint8_t>(icrc.value() >> (8 * byte)));
  frame.resize(writer.written());
  return frame;
}

}  // namespace

std::vector<std::byte> frame_on_link(const SimConfig& config, const fabric::Routing& routing,
                                     fabric::LinkId link, const PacketHead& head,
                                     const PacketBody& body) {
  const wire::FrameHeader header = header_of(config, routing, link, head);
  const std::vector<std::byte> payload = payload_of(config, body);
  std::vector<std::byte> frame = std::holds_alternative<wire::Packet>(body.packet)
                                     ? mrc_frame(header, head, body, payload)
                                     : roce_frame(header, head, body, payload);
  if (head.corrupt) frame.back() ^= std::byte{1};
  return frame;
}

}  // namespace mrc::sim
