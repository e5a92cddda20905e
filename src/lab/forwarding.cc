#include "lab/forwarding.h"

#include <algorithm>
#include <cstring>

#include "fabric/host_address.h"
#include "seal/layout.h"
#include "wire/datagram_frame.h"
#include "wire/ip_header.h"
#include "wire/packet.h"
#include "wire/srv6.h"

namespace mrc::lab {
namespace {

constexpr std::size_t kIpAt = wire::kEthernetHeaderLength;
constexpr std::size_t kEtherTypeAt = 12;
constexpr std::size_t kNextHeaderAt = kIpAt + 6;
constexpr std::size_t kHopLimitAt = kIpAt + 7;
constexpr std::size_t kDestinationAt = kIpAt + 24;
constexpr std::size_t kSourceAt = kIpAt + 8;
constexpr std::size_t kPastIp = kIpAt + wire::kIpv6HeaderLength;
constexpr unsigned kProcesses = 256;  // of one host: they follow each other in UDP ports
constexpr std::uint8_t kTunnelHopLimit = 64;
constexpr std::size_t kBthLength = 12;  // one byte of it is not covered by the ICRC

std::uint8_t u8(std::span<const std::byte> bytes, std::size_t at) {
  return static_cast<std::uint8_t>(bytes[at]);
}
std::uint16_t u16(std::span<const std::byte> bytes, std::size_t at) {
  return static_cast<std::uint16_t>(u8(bytes, at) << 8 | u8(bytes, at + 1));
}

bool is_ipv6(std::span<const std::byte> frame) {
  return frame.size() >= kPastIp && u16(frame, kEtherTypeAt) == 0x86DD &&
         u8(frame, kIpAt) >> 4 == 6;
}

wire::IpAddress address_at(std::span<const std::byte> frame, std::size_t at) {
  wire::IpAddress address;
  std::memcpy(address.bytes.data(), frame.data() + at, address.bytes.size());
  return address;
}

// The carrier and, if there is one, the routing header move on. False: the list has ended.
bool take_step(std::span<std::byte> frame, wire::IpAddress& carrier) {
  if (!wire::at_last_usid(carrier)) {
    carrier = wire::shift_carrier(carrier);
  } else {
    wire::Segment segment;
    std::uint8_t next = 0;
    if (u8(frame, kNextHeaderAt) != wire::kNextHeaderRouting ||
        frame.size() < kPastIp + wire::kSrhLength) {
      return false;
    }
    const auto srh = frame.subspan(kPastIp, wire::kSrhLength);
    if (wire::parse_srh(srh, segment, next) != DropReason::kNone) return false;
    if (wire::advance(carrier, segment) != wire::UsidStep::kNextSegment) return false;
    if (wire::build_srh(segment, next, srh) != wire::kSrhLength) return false;
  }
  std::memcpy(frame.data() + kDestinationAt, carrier.bytes.data(), carrier.bytes.size());
  return true;
}

// Where the UDP header of the innermost packet begins; 0 when there is none.
std::size_t udp_at(std::span<const std::byte> frame) {
  if (!is_ipv6(frame)) return 0;
  std::uint8_t next = u8(frame, kNextHeaderAt);
  std::size_t at = kPastIp;
  if (next == wire::kNextHeaderRouting && frame.size() >= at + wire::kSrhLength) {
    next = u8(frame, at);
    at += wire::kSrhLength;
  }
  if (next == wire::kNextHeaderIpv6 && frame.size() >= at + wire::kIpv6HeaderLength) {
    next = u8(frame, at + kNextHeaderAt - kIpAt);
    at += wire::kIpv6HeaderLength;
  }
  return next == wire::kNextHeaderUdp && frame.size() >= at + wire::kUdpHeaderLength ? at : 0;
}

std::uint32_t entropy_of(std::span<const std::byte> frame) {
  const std::size_t udp = udp_at(frame);
  const std::uint32_t port = udp == 0 ? 0U : u16(frame, udp);
  return std::uint32_t{u16(frame, kIpAt + 2)} << 16 | port;
}

}  // namespace

const char* drop_cause_name(DropCause cause) {
  static constexpr const char* kNames[kDropCauses] = {
      "malformed", "no_route", "hop_limit", "full", "down", "loss", "black_hole", "host"};
  return kNames[static_cast<unsigned>(cause)];
}

TunnelPaths::TunnelPaths(const fabric::Routing& routing)
    : routing_(&routing),
      known_(std::size_t{routing.topology().hosts()} * routing.topology().planes()) {}

fabric::Path TunnelPaths::path_of(unsigned plane, unsigned host, std::uint32_t entropy) {
  fabric::Path path;
  if (routing_->path_of(entropy, path) && path.plane == plane) return path;
  const fabric::Topology& topology = routing_->topology();
  auto& known = known_[std::size_t{host} * topology.planes() + plane];
  const unsigned paths = topology.paths_per_plane();
  unsigned way = (entropy & 0xFFFF) % paths;
  if (const auto found = known.find(entropy); found != known.end()) {
    way = found->second;
  } else if (known.size() < kMaxKnown) {
    way = (static_cast<unsigned>(known.size()) + host) % paths;
    known.emplace(entropy, static_cast<std::uint16_t>(way));
  }
  return {.plane = static_cast<std::uint8_t>(plane),
          .up = static_cast<std::uint16_t>(way % topology.uplinks_per_t0()),
          .t2 = static_cast<std::uint16_t>(way / topology.uplinks_per_t0())};
}

Step forward_frame(const fabric::Routing& routing, const fabric::Node& at,
                   std::span<std::byte> frame) {
  if (!is_ipv6(frame)) return {.cause = DropCause::kMalformed};
  wire::IpAddress carrier = address_at(frame, kDestinationAt);
  const wire::Usid own = wire::active_usid(carrier);
  if (wire::carrier_block(carrier) != routing.block_of(at.plane) || !routing.owns(at, own)) {
    return {.cause = DropCause::kNoRoute};
  }
  const std::uint8_t hop_limit = u8(frame, kHopLimitAt);
  if (hop_limit <= 1) return {.cause = DropCause::kHopLimit};
  if (!take_step(frame, carrier)) return {.cause = DropCause::kNoRoute};
  frame[kHopLimitAt] = static_cast<std::byte>(hop_limit - 1);
  return {.link = routing.next_by_usid(at, own, wire::active_usid(carrier)),
          .cause = DropCause::kNoRoute};
}

bool enter_tunnel(const fabric::Routing& routing, TunnelPaths& paths, unsigned plane,
                  unsigned source, FramePool& pool, FrameId id, DropCause& cause) {
  const std::span<std::byte> plain = pool.bytes(id);
  cause = DropCause::kMalformed;
  if (!is_ipv6(plain)) return false;
  const wire::IpAddress to = address_at(plain, kDestinationAt);
  if (wire::carrier_block(to) == routing.block_of(plane)) return true;
  cause = DropCause::kNoRoute;
  const auto destination = fabric::host_of_address(plane, to);
  if (!destination || *destination >= routing.topology().hosts()) return false;
  const wire::IpAddress carrier =
      routing.carrier(source, *destination, paths.path_of(plane, source, entropy_of(plain)));
  const wire::IpAddress from = address_at(plain, kSourceAt);
  const std::size_t payload = plain.size() - kIpAt;

  pool.grow_front(id, wire::kIpv6HeaderLength);
  const std::span<std::byte> frame = pool.bytes(id);
  std::memmove(frame.data(), plain.data(), kIpAt);
  std::memcpy(frame.data() + kIpAt, plain.data() + kIpAt, 4);  // class and flow label are copied
  frame[kIpAt + 4] = static_cast<std::byte>(payload >> 8);
  frame[kIpAt + 5] = static_cast<std::byte>(payload & 0xFF);
  frame[kNextHeaderAt] = std::byte{wire::kNextHeaderIpv6};
  frame[kHopLimitAt] = std::byte{kTunnelHopLimit};
  std::memcpy(frame.data() + kSourceAt, from.bytes.data(), from.bytes.size());
  std::memcpy(frame.data() + kDestinationAt, carrier.bytes.data(), carrier.bytes.size());
  return true;
}

FrameClass classify(const wire::DscpMap& dscp, std::span<const std::byte> frame) {
  if (!is_ipv6(frame)) return {};
  const auto point = static_cast<std::uint8_t>(u16(frame, kIpAt) >> 6 & 0x3F);
  return {.control = point == dscp.control || wire::trim_mark(dscp, point) != wire::TrimMark::kNone,
          .trimmable = wire::may_trim(dscp, point)};
}

bool carries_data(std::span<const std::byte> frame) {
  const std::size_t udp = udp_at(frame);
  const std::size_t bth = udp + wire::kUdpHeaderLength;
  return udp != 0 && frame.size() > bth && wire::is_write(wire::Opcode{u8(frame, bth)});
}

bool mark_congestion(std::span<std::byte> frame) {
  constexpr std::byte kEcnBits{0x30};  // in the second byte of the header
  if (!is_ipv6(frame) || (frame[kIpAt + 1] & kEcnBits) == std::byte{0}) return false;
  frame[kIpAt + 1] |= kEcnBits;
  return true;
}

std::size_t trim(const wire::FrameFormat& format, std::span<std::byte> frame, bool last_hop) {
  const std::size_t udp = udp_at(frame);
  if (udp == 0) return 0;
  wire::FrameFormat own = format;
  own.udp_port = u16(frame, udp + 2);
  if (own.udp_port < format.udp_port || own.udp_port >= format.udp_port + kProcesses) return 0;
  const std::size_t keep = seal::trimmed_length(frame.subspan(udp + wire::kUdpHeaderLength));
  return keep == 0 ? wire::trim_frame(own, frame, last_hop)
                   : wire::trim_frame_to(own, frame, last_hop, keep);
}

void corrupt(std::span<std::byte> frame, std::uint64_t random) {
  const std::size_t udp = udp_at(frame);
  const std::size_t from = udp == 0 ? kIpAt : udp + wire::kUdpHeaderLength + kBthLength;
  if (from >= frame.size()) return;
  const std::size_t at = from + (random >> 3) % (frame.size() - from);
  frame[at] ^= static_cast<std::byte>(1U << (random & 7));
}

}  // namespace mrc::lab
