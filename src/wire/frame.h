// Whole frames: [Ethernet] IP UDP transport ICRC, plain or inside an SRv6 tunnel. See docs/wire.md.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

#include "base/result.h"
#include "wire/dialect.h"
#include "wire/drop_reason.h"
#include "wire/ecn.h"
#include "wire/icrc.h"
#include "wire/ip_address.h"
#include "wire/packet.h"
#include "wire/srv6.h"

namespace mrc::wire {

inline constexpr std::uint16_t kDefaultUdpPort = 4791;
inline constexpr std::size_t kEthernetHeaderLength = 14;

using MacAddress = std::array<std::uint8_t, 6>;

// Which code point means what. The numbers are the operator's choice.
struct DscpMap {
  std::uint8_t control = 46;
  std::uint8_t trimmed = 12;
  std::uint8_t trimmed_last_hop = 16;
  std::uint8_t trimmable = 4;
  std::uint8_t trimmable_retx = 8;
  std::uint8_t no_trim = 0;
  friend bool operator==(const DscpMap&, const DscpMap&) = default;
};

// Refuses values above 63 and a mark for trimmed packets that also means something else. The other
// classes may share a code point.
[[nodiscard]] Status check_dscp_map(const DscpMap& map);

// Whether a switch cut this packet, and where.
enum class TrimMark : std::uint8_t { kNone, kTrimmed, kTrimmedLastHop };
[[nodiscard]] TrimMark trim_mark(const DscpMap& map, std::uint8_t dscp);
// Whether a switch may cut it.
[[nodiscard]] bool may_trim(const DscpMap& map, std::uint8_t dscp);

// What is the same for all frames of a network.
struct FrameFormat {
  bool ethernet = true;  // frames begin with an Ethernet header, otherwise with the IP header
  std::uint16_t udp_port = kDefaultUdpPort;
  DscpMap dscp;
  Dialect dialect;
};

// The outer header in SRv6 mode.
struct Srv6Header {
  IpAddress source;
  IpAddress carrier;  // the path, and the outer destination
  std::uint8_t hop_limit = 64;
  bool has_segment = false;  // a routing header follows
  Segment segment;
  friend bool operator==(const Srv6Header&, const Srv6Header&) = default;
};

// Everything around the transport part that is not computed.
struct FrameHeader {
  MacAddress destination_mac{};
  MacAddress source_mac{};
  IpAddress source;  // of the endpoints; in SRv6 mode the inner addresses, which are IPv6
  IpAddress destination;
  // Sent in both headers in SRv6 mode. Received: the outer code point, since that is the one
  // switches rewrite, and the ECN bits that result from both (RFC 6040).
  std::uint8_t dscp = 0;
  Ecn ecn = Ecn::kNotEct;
  std::uint8_t hop_limit = 64;
  // Low half: UDP source port. High half: low 16 bits of the flow label, and in SRv6 mode of the
  // outer flow label too; IPv4 does not carry it and reads as zero.
  std::uint32_t entropy = 0;
  bool srv6 = false;
  Srv6Header outer;
  TrimMark trim = TrimMark::kNone;  // received only; follows from the code point
  friend bool operator==(const FrameHeader&, const FrameHeader&) = default;
};

// Pieces of a payload, in order.
using PayloadPieces = std::span<const std::span<const std::byte>>;
[[nodiscard]] std::size_t payload_bytes(PayloadPieces payload);

// Bytes in front of the transport part.
[[nodiscard]] std::size_t frame_overhead(const FrameFormat& format, const FrameHeader& header);
// Bytes of the whole frame.
[[nodiscard]] std::size_t frame_length(const FrameFormat& format, const FrameHeader& header,
                                       const Packet& packet, std::size_t payload_length);

// Writes a whole frame with padding and ICRC and returns its length, or 0 if it does not fit `out`
// or the length fields. The pad count is computed; packet.bth.pad is not looked at. Only write
// packets have a payload.
[[nodiscard]] std::size_t build_frame(const FrameFormat& format, const FrameHeader& header,
                                      const Packet& packet, PayloadPieces payload,
                                      std::span<std::byte> out);

// Reads a whole frame. On kNone everything is set and `payload` is a view into `frame`. The ICRC is
// verified unless the code point says that the packet was trimmed; of such a packet only what
// parse_trimmed_transport() reads is set, the payload is empty, and length fields may still be
// those of the packet before it was cut. Bytes behind the IP packet are link padding, which only
// Ethernet has.
[[nodiscard]] DropReason parse_frame(const FrameFormat& format, std::span<const std::byte> frame,
                                     FrameHeader& header, Packet& packet,
                                     std::span<const std::byte>& payload);

// A frame as far as it can be told without looking into its transport part.
struct OpenedFrame {
  FrameHeader header;
  std::span<const std::byte> transport;  // BTH to the last pad byte; what is left of a trimmed one
  bool icrc_good = true;                 // trimmed frames have none to check
};
[[nodiscard]] DropReason open_frame(const FrameFormat& format, std::span<const std::byte> frame,
                                    OpenedFrame& out);

// For senders that leave IP and UDP to somebody else, or the payload where it is: an ICRC that has
// seen the innermost IP header and the UDP header which build_frame() would write for a transport
// part of that length (padding included, ICRC not). Continue with Icrc::add_transport().
[[nodiscard]] Icrc begin_icrc(const FrameFormat& format, const FrameHeader& header,
                              std::size_t transport_length);

// Does what a switch does to a frame it has no room for: cuts it behind METH and TSETH, sets the
// code point of the outermost header, and makes the length fields (and the IPv4 checksum) agree
// with what is left. Returns the new length, or 0 with the frame unchanged if it cannot be trimmed:
// not a write of ours, or its code point does not allow it.
[[nodiscard]] std::size_t trim_frame(const FrameFormat& format, std::span<std::byte> frame,
                                     bool last_hop);

}  // namespace mrc::wire
