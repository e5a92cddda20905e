// IPv4, IPv6, routing and UDP headers <-> values. What stands behind them is the caller's.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "wire/drop_reason.h"
#include "wire/ecn.h"
#include "wire/ip_address.h"
#include "wire/srv6.h"

namespace mrc::wire {

inline constexpr std::size_t kIpv4HeaderLength = 20;
inline constexpr std::size_t kIpv6HeaderLength = 40;
inline constexpr std::size_t kUdpHeaderLength = 8;
inline constexpr std::size_t kSrhLength = 24;  // with its one segment

inline constexpr std::uint8_t kNextHeaderUdp = 17;
inline constexpr std::uint8_t kNextHeaderIpv6 = 41;
inline constexpr std::uint8_t kNextHeaderRouting = 43;

// An IPv4 header without options or fragments, or an IPv6 header. Both addresses are of the same
// family.
struct IpHeader {
  IpAddress source;
  IpAddress destination;
  std::uint8_t dscp = 0;  // 6 bits
  Ecn ecn = Ecn::kNotEct;
  std::uint8_t hop_limit = 64;
  std::uint32_t flow_label = 0;  // 20 bits, IPv6 only
  std::uint8_t next_header = kNextHeaderUdp;
  std::uint16_t payload_length = 0;  // bytes behind this header
  friend bool operator==(const IpHeader&, const IpHeader&) = default;

  std::size_t length() const { return source.is_v4 ? kIpv4HeaderLength : kIpv6HeaderLength; }
};

// Decodes the header at the start of `bytes`; the version nibble decides which. The payload length
// is what the header says, which may be more than there is. `out` is complete with kBadIpChecksum
// too.
[[nodiscard]] DropReason parse_ip_header(std::span<const std::byte> bytes, IpHeader& out);
// Returns the length of the header, or 0 if it does not fit. IPv4: id 0, don't fragment, and an IP
// payload of at most 65,515 bytes, so that the total length holds it.
[[nodiscard]] std::size_t build_ip_header(const IpHeader& header, std::span<std::byte> out);

// The checksum field of an IPv4 header, whatever that field holds now.
[[nodiscard]] std::uint16_t ipv4_checksum(std::span<const std::byte> header);

// A segment routing header with exactly one segment and without TLVs. At most one segment is left.
[[nodiscard]] DropReason parse_srh(std::span<const std::byte> bytes, Segment& out,
                                   std::uint8_t& next_header);
[[nodiscard]] std::size_t build_srh(const Segment& segment, std::uint8_t next_header,
                                    std::span<std::byte> out);

struct UdpHeader {
  std::uint16_t source_port = 0;
  std::uint16_t destination_port = 0;
  std::uint16_t length = 0;  // this header and what stands behind it
  friend bool operator==(const UdpHeader&, const UdpHeader&) = default;
};

// The checksum is sent as 0 and not looked at: the ICRC does that work.
[[nodiscard]] DropReason parse_udp_header(std::span<const std::byte> bytes, UdpHeader& out);
[[nodiscard]] std::size_t build_udp_header(const UdpHeader& header, std::span<std::byte> out);

}  // namespace mrc::wire
