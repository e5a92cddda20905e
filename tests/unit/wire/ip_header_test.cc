#include "wire/ip_header.h"

#include <gtest/gtest.h>

#include "unit/wire/wire_samples.h"

namespace mrc::wire {
namespace {

using test::Bytes;
using test::hex;
using test::to_hex;

// 10.0.17.1 -> 10.0.18.1, DSCP 46, ECT(0), 100 bytes of UDP. Words before the checksum sum up as
// 45ba + 0078 + 0000 + 4000 + 4011 + 0a00 + 1101 + 0a00 + 1201 = fd45, its complement is 02ba.
constexpr std::string_view kIpv4 = "45ba 0078 0000 4000 4011 02ba 0a001101 0a001201";

IpHeader ipv4_sample() {
  return {.source = ipv4_address(0x0A001101),
          .destination = ipv4_address(0x0A001201),
          .dscp = 46,
          .ecn = Ecn::kEct0,
          .hop_limit = 64,
          .flow_label = 0,
          .next_header = kNextHeaderUdp,
          .payload_length = 100};
}

TEST(IpHeader, Ipv4MatchesItsTableInBothDirections) {
  const Bytes expected = hex(kIpv4);
  Bytes built(20);
  ASSERT_EQ(build_ip_header(ipv4_sample(), built), 20u);
  EXPECT_EQ(to_hex(built), to_hex(expected));
  IpHeader parsed;
  ASSERT_EQ(parse_ip_header(expected, parsed), DropReason::kNone);
  EXPECT_EQ(parsed, ipv4_sample());
}

TEST(IpHeader, Ipv6MatchesItsTableInBothDirections) {
  const IpHeader header{.source = ipv6_address(0x20010DB800000000, 1),
                        .destination = ipv6_address(0xFC00000110008000, 0x1001010000000000),
                        .dscp = 4,
                        .ecn = Ecn::kCe,
                        .hop_limit = 7,
                        .flow_label = 0xFABCD,
                        .next_header = kNextHeaderIpv6,
                        .payload_length = 0x1234};
  const Bytes expected = hex(
      "613fabcd 1234 29 07 | 20010db8000000000000000000000001 | fc000001100080001001010000000000");
  Bytes built(40);
  ASSERT_EQ(build_ip_header(header, built), 40u);
  EXPECT_EQ(to_hex(built), to_hex(expected));
  IpHeader parsed;
  ASSERT_EQ(parse_ip_header(expected, parsed), DropReason::kNone);
  EXPECT_EQ(parsed, header);
}

TEST(IpHeader, Ipv4WithOptionsFragmentsOrImpossibleLengthIsRefused) {
  const auto parse_with = [](std::size_t at, unsigned value) {
    Bytes bytes = hex(kIpv4);
    bytes[at] = static_cast<std::byte>(value);
    const std::uint16_t checksum = ipv4_checksum(bytes);
    bytes[10] = static_cast<std::byte>(checksum >> 8);
    bytes[11] = static_cast<std::byte>(checksum & 0xFF);
    IpHeader header;
    return parse_ip_header(bytes, header);
  };
  EXPECT_EQ(parse_with(0, 0x46), DropReason::kBadIpHeader) << "options";
  EXPECT_EQ(parse_with(0, 0x44), DropReason::kBadIpHeader) << "short header";
  EXPECT_EQ(parse_with(6, 0x20), DropReason::kBadIpHeader) << "more fragments";
  EXPECT_EQ(parse_with(7, 0x01), DropReason::kBadIpHeader) << "fragment offset";
  EXPECT_EQ(parse_with(3, 19), DropReason::kBadIpHeader) << "shorter than its header";
  EXPECT_EQ(parse_with(3, 20), DropReason::kNone);
  EXPECT_EQ(parse_with(6, 0x00), DropReason::kNone) << "may be fragmented, is not";
  EXPECT_EQ(parse_with(0, 0x55), DropReason::kBadIpVersion);
}

TEST(IpHeader, AnyFlippedBitOfIpv4IsNoticed) {
  for (std::size_t bit = 0; bit < 160; ++bit) {
    Bytes bytes = hex(kIpv4);
    bytes[bit / 8] ^= static_cast<std::byte>(1u << bit % 8);
    IpHeader header;
    EXPECT_NE(parse_ip_header(bytes, header), DropReason::kNone) << bit;
  }
}

TEST(IpHeader, TruncationAtEveryLengthIsNoticedAndTooSmallBuffersAreNotWritten) {
  for (const bool is_v4 : {true, false}) {
    IpHeader header = ipv4_sample();
    if (!is_v4) header.source = header.destination = ipv6_address(1, 2);
    Bytes built(header.length());
    ASSERT_EQ(build_ip_header(header, built), built.size());
    for (std::size_t cut = 0; cut < built.size(); ++cut) {
      IpHeader parsed;
      EXPECT_EQ(parse_ip_header(std::span(built).first(cut), parsed), DropReason::kTruncated);
      Bytes room(cut);
      EXPECT_EQ(build_ip_header(header, room), 0u);
    }
  }
}

TEST(RoutingHeader, MatchesItsTableInBothDirections) {
  const Segment segment{.address = ipv6_address(0xFC00000112340000, 0), .left = 1};
  const Bytes expected = hex("29 02 04 01 00 00 0000 | fc000001123400000000000000000000");
  Bytes built(24);
  ASSERT_EQ(build_srh(segment, kNextHeaderIpv6, built), 24u);
  EXPECT_EQ(to_hex(built), to_hex(expected));
  Segment parsed;
  std::uint8_t next = 0;
  ASSERT_EQ(parse_srh(expected, parsed, next), DropReason::kNone);
  EXPECT_EQ(parsed, segment);
  EXPECT_EQ(next, kNextHeaderIpv6);
  for (std::size_t cut = 0; cut < expected.size(); ++cut) {
    EXPECT_EQ(parse_srh(std::span(expected).first(cut), parsed, next), DropReason::kTruncated);
  }
}

TEST(RoutingHeader, OtherSizesTypesAndSegmentCountsAreRefused) {
  const auto parse_with = [](std::size_t at, unsigned value) {
    Bytes bytes = hex("29 02 04 00 00 00 0000 | fc000001123400000000000000000000");
    bytes[at] = static_cast<std::byte>(value);
    Segment segment;
    std::uint8_t next = 0;
    return parse_srh(bytes, segment, next);
  };
  EXPECT_EQ(parse_with(0, 17), DropReason::kNone) << "what follows is the caller's business";
  EXPECT_EQ(parse_with(1, 1), DropReason::kBadNextHeader);
  EXPECT_EQ(parse_with(1, 4), DropReason::kBadNextHeader);
  EXPECT_EQ(parse_with(2, 3), DropReason::kBadNextHeader);
  EXPECT_EQ(parse_with(3, 2), DropReason::kBadNextHeader);
  EXPECT_EQ(parse_with(4, 1), DropReason::kBadNextHeader);
  EXPECT_EQ(parse_with(5, 0xFF), DropReason::kNone) << "flags";
}

TEST(UdpHeader, MatchesItsTableAndIgnoresTheChecksum) {
  const UdpHeader header{.source_port = 0xC001, .destination_port = 4791, .length = 52};
  Bytes built(8);
  ASSERT_EQ(build_udp_header(header, built), 8u);
  EXPECT_EQ(to_hex(built), "c00112b700340000");
  built[6] = std::byte{0xBE};
  UdpHeader parsed;
  ASSERT_EQ(parse_udp_header(built, parsed), DropReason::kNone);
  EXPECT_EQ(parsed, header);
  for (std::size_t cut = 0; cut < 8; ++cut) {
    EXPECT_EQ(parse_udp_header(std::span(built).first(cut), parsed), DropReason::kTruncated);
    Bytes room(cut);
    EXPECT_EQ(build_udp_header(header, room), 0u);
  }
  built[5] = std::byte{7};
  EXPECT_EQ(parse_udp_header(built, parsed), DropReason::kBadUdpLength);
}

}  // namespace
}  // namespace mrc::wire
