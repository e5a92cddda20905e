// Frame headers of each kind, and a second, plain way to compute the ICRC of a whole frame.
#pragma once

#include <array>
#include <cstdint>
#include <span>

#include "unit/wire/wire_samples.h"
#include "wire/frame.h"

namespace mrc::wire::test {

enum class Encapsulation { kIpv4, kIpv6, kSrv6, kSrv6WithSegment };
inline constexpr Encapsulation kAllEncapsulations[] = {Encapsulation::kIpv4, Encapsulation::kIpv6,
                                                       Encapsulation::kSrv6,
                                                       Encapsulation::kSrv6WithSegment};

// Bytes from the outermost IP header to the innermost.
inline std::size_t tunnel_length(Encapsulation kind) {
  if (kind == Encapsulation::kSrv6) return 40;
  return kind == Encapsulation::kSrv6WithSegment ? 64 : 0;
}

inline FrameHeader frame_header(Encapsulation kind) {
  FrameHeader header;
  header.destination_mac = {0x02, 0, 0, 0, 0, 0x02};
  header.source_mac = {0x02, 0, 0, 0, 0, 0x01};
  header.dscp = DscpMap{}.trimmable;
  header.ecn = Ecn::kEct0;
  header.hop_limit = 63;
  header.entropy = kind == Encapsulation::kIpv4 ? 0xC001 : 0xABCDC001;
  if (kind == Encapsulation::kIpv4) {
    header.source = ipv4_address(0x0A000001);
    header.destination = ipv4_address(0x0A000002);
    return header;
  }
  header.source = ipv6_address(0x20010DB800000000, 1);
  header.destination = ipv6_address(0x20010DB800000000, 2);
  if (kind == Encapsulation::kIpv6) return header;
  header.srv6 = true;
  header.outer.source = header.source;
  header.outer.carrier = ipv6_address(0xFC00000110008000, 0x1001010000000000);
  header.outer.hop_limit = 8;
  if (kind == Encapsulation::kSrv6WithSegment) {
    header.outer.has_segment = true;
    header.outer.segment = {.address = ipv6_address(0xFC00000112340000, 0), .left = 1};
  }
  return header;
}

inline Bytes frame_bytes(const FrameFormat& format, const FrameHeader& header, const Packet& packet,
                         std::span<const std::byte> data) {
  const std::array<std::span<const std::byte>, 1> pieces{data};
  Bytes frame(frame_length(format, header, packet, data.size()));
  frame.resize(build_frame(format, header, packet, pieces, frame));
  return frame;
}

// The ICRC field of a frame whose innermost IP header begins at `ip`, one bit at a time.
inline std::uint32_t plain_icrc(Bytes frame, std::size_t ip) {
  const bool is_v4 = std::to_integer<unsigned>(frame[ip]) >> 4 == 4;
  const std::size_t udp = ip + (is_v4 ? 20 : 40);
  const auto mask = [&frame](std::size_t at) { frame[at] = std::byte{0xFF}; };
  if (is_v4) {
    for (const std::size_t at : {1u, 8u, 10u, 11u})
      mask(ip + at);
  } else {
    frame[ip] |= std::byte{0x0F};
    for (const std::size_t at : {1u, 2u, 3u, 7u})
      mask(ip + at);
  }
  mask(udp + 6);
  mask(udp + 7);
  mask(udp + 8 + 4);
  std::uint32_t crc = 0xFFFFFFFF;
  const auto add = [&crc](std::byte b) {
    for (unsigned bit = 0; bit < 8; ++bit) {
      const unsigned in = std::to_integer<unsigned>(b) >> bit & 1;
      const bool subtract = ((crc ^ in) & 1) != 0;
      crc >>= 1;
      if (subtract) crc ^= 0xEDB88320;
    }
  };
  for (int i = 0; i < 8; ++i)
    add(std::byte{0xFF});
  for (std::size_t at = ip; at + 4 < frame.size(); ++at)
    add(frame[at]);
  return ~crc;
}

inline void put_icrc(Bytes& frame, std::size_t ip) {
  const std::uint32_t value = plain_icrc(frame, ip);
  for (unsigned i = 0; i < 4; ++i) {
    frame[frame.size() - 4 + i] = static_cast<std::byte>(value >> (8 * i) & 0xFF);
  }
}

}  // namespace mrc::wire::test
