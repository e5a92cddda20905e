// Whole frames. The first byte of the input chooses: with or without Ethernet, and whether checksum
// and ICRC are made right first, since otherwise hardly any input would get past them.
#include <array>
#include <vector>

#include "fuzz/fuzz_support.h"
#include "wire/codec.h"
#include "wire/frame.h"
#include "wire/ip_header.h"

using mrc::DropReason;
using mrc::fuzz::require;
namespace wire = mrc::wire;
using Bytes = std::vector<std::byte>;

namespace {

// Where the innermost IP header begins, if the outermost at `at` has a tunnel behind it.
std::size_t innermost_ip(std::span<const std::byte> frame, std::size_t at) {
  wire::IpHeader ip;
  if (wire::parse_ip_header(frame.subspan(at), ip) != DropReason::kNone) return at;
  std::uint8_t next = ip.next_header;
  std::size_t after = at + ip.length();
  if (next == wire::kNextHeaderRouting) {
    wire::Segment segment;
    if (wire::parse_srh(frame.subspan(after), segment, next) != DropReason::kNone) return at;
    after += wire::kSrhLength;
  }
  return next == wire::kNextHeaderIpv6 ? after : at;
}

void repair(Bytes& frame, std::size_t link) {
  if (frame.size() < link + wire::kIpv4HeaderLength) return;
  if (std::to_integer<unsigned>(frame[link]) == 0x45) {
    const auto ip = std::span(frame).subspan(link, wire::kIpv4HeaderLength);
    const std::uint16_t checksum = wire::ipv4_checksum(ip);
    ip[10] = static_cast<std::byte>(checksum >> 8);
    ip[11] = static_cast<std::byte>(checksum & 0xFF);
  }
  const std::size_t at = innermost_ip(frame, link);
  wire::IpHeader ip;
  if (wire::parse_ip_header(std::span(frame).subspan(at), ip) != DropReason::kNone) return;
  const std::size_t udp = at + ip.length();
  const std::size_t transport = udp + wire::kUdpHeaderLength;
  const std::size_t end = udp + ip.payload_length;
  if (end > frame.size() || end < transport + wire::kBthLength + wire::kIcrcLength) return;
  wire::UdpHeader header;
  require(wire::parse_udp_header(std::span(frame).subspan(udp), header) != DropReason::kTruncated);
  const auto bytes = std::span<const std::byte>(frame);
  wire::Icrc icrc;
  icrc.add_ip_header(bytes.subspan(at, ip.length()));
  icrc.add_udp_header(bytes.subspan(udp, wire::kUdpHeaderLength));
  icrc.add_transport(bytes.subspan(transport, end - wire::kIcrcLength - transport));
  for (std::size_t i = 0; i < wire::kIcrcLength; ++i) {
    frame[end - wire::kIcrcLength + i] = static_cast<std::byte>(icrc.value() >> (8 * i) & 0xFF);
  }
}

void check_trimming(const wire::FrameFormat& format, Bytes frame) {
  const Bytes before = frame;
  const std::size_t length = wire::trim_frame(format, frame, true);
  if (length == 0) {
    require(frame == before);
    return;
  }
  require(length <= before.size());
  frame.resize(length);
  wire::FrameHeader header;
  wire::Packet packet;
  std::span<const std::byte> payload;
  const DropReason reason = wire::parse_frame(format, frame, header, packet, payload);
  // The one thing trimming does not look at is a mark that the receiver must not see.
  require(reason == DropReason::kNone || reason == DropReason::kBadIpHeader);
  require(header.trim == wire::TrimMark::kTrimmedLastHop);
  require(wire::trim_frame(format, frame, true) == 0);
}

}  // namespace

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  mrc::fuzz::Input input(data, size);
  const std::uint8_t choice = input.u8();
  wire::FrameFormat format;
  format.ethernet = (choice & 1) != 0;
  Bytes frame(input.rest().begin(), input.rest().end());
  if ((choice & 2) != 0) repair(frame, format.ethernet ? wire::kEthernetHeaderLength : 0);
  check_trimming(format, frame);

  wire::FrameHeader header;
  wire::Packet packet;
  std::span<const std::byte> payload;
  if (wire::parse_frame(format, frame, header, packet, payload) != DropReason::kNone) return 0;
  if (header.trim != wire::TrimMark::kNone) {
    require(payload.empty());
    return 0;
  }

  const std::array<std::span<const std::byte>, 1> pieces{payload};
  Bytes again(wire::frame_length(format, header, packet, payload.size()));
  require(again.size() <= frame.size());
  require(wire::build_frame(format, header, packet, pieces, again) == again.size());
  wire::FrameHeader second_header;
  wire::Packet second;
  std::span<const std::byte> second_payload;
  require(wire::parse_frame(format, again, second_header, second, second_payload) ==
          DropReason::kNone);
  require(second_header == header);
  require(second == packet);
  require(std::equal(payload.begin(), payload.end(), second_payload.begin(), second_payload.end()));
  return 0;
}
