#include "wire/icrc.h"

#include <gtest/gtest.h>

#include "unit/wire/wire_samples.h"

namespace mrc::wire {
namespace {

using test::Bytes;
using test::hex;
using test::numbered_bytes;
using test::Random;

// CRC-32 one bit at a time, straight from its definition: the register is a polynomial remainder
// with the highest power on the left, message bits enter lowest bit first, and the result is
// mirrored.
std::uint32_t plain_crc32(std::span<const std::byte> bytes, std::uint32_t start) {
  std::uint32_t remainder = 0;
  for (int i = 0; i < 32; ++i) {
    if ((start >> i & 1) != 0) remainder |= std::uint32_t{1} << (31 - i);
  }
  for (const std::byte b : bytes) {
    for (int bit = 0; bit < 8; ++bit) {
      const bool in = (std::to_integer<unsigned>(b) >> bit & 1) != 0;
      const bool out = (remainder >> 31 & 1) != 0;
      remainder <<= 1;
      if (in != out) remainder ^= 0x04C11DB7;
    }
  }
  std::uint32_t mirrored = 0;
  for (int i = 0; i < 32; ++i) {
    if ((remainder >> i & 1) != 0) mirrored |= std::uint32_t{1} << (31 - i);
  }
  return mirrored;
}

constexpr CrcMethod kAllMethods[] = {CrcMethod::kTable, CrcMethod::kArmCrc,
                                     CrcMethod::kArmCrcFolded, CrcMethod::kX86Folded,
                                     CrcMethod::kX86Wide};

TEST(Crc32, TheReferenceGivesTheKnownCheckValue) {
  const Bytes digits = hex("313233343536373839");
  EXPECT_EQ(~plain_crc32(digits, 0xFFFFFFFF), 0xCBF43926u);
}

TEST(Crc32, EveryMethodAgreesWithTheReferenceAtEveryLengthAndAlignment) {
  const Bytes bytes = numbered_bytes(1200);
  for (const CrcMethod method : kAllMethods) {
    if (!crc_method_available(method)) continue;
    for (std::size_t length = 0; length < 1100; ++length) {
      const auto part = std::span(bytes).subspan(length % 17, length);
      ASSERT_EQ(crc32_update(0xFFFFFFFF, part, method), plain_crc32(part, 0xFFFFFFFF))
          << static_cast<int>(method) << " length " << length;
    }
  }
}

TEST(Crc32, EveryMethodAgreesWithTheReferenceOnLongBuffersAndAnyStart) {
  Random random(3);
  Bytes bytes(20000);
  for (std::byte& b : bytes)
    b = static_cast<std::byte>(random() & 0xFF);
  for (const CrcMethod method : kAllMethods) {
    if (!crc_method_available(method)) continue;
    for (const std::size_t length :
         {1100u, 4079u, 4080u, 4081u, 4096u, 8159u, 8160u, 8161u, 12240u, 16384u, 19990u}) {
      const auto start = static_cast<std::uint32_t>(random());
      const auto part = std::span(bytes).subspan(random() % 8, length);
      ASSERT_EQ(crc32_update(start, part, method), plain_crc32(part, start))
          << static_cast<int>(method) << " length " << length;
    }
  }
}

TEST(Crc32, TheChosenMethodIsAvailableAndGivesTheSame) {
  EXPECT_TRUE(crc_method_available(best_crc_method()));
  const Bytes bytes = numbered_bytes(777);
  for (int twice = 0; twice < 2; ++twice) {
    EXPECT_EQ(crc32_update(1, bytes), crc32_update(1, bytes, CrcMethod::kTable));
  }
}

TEST(Crc32, NotEveryMethodIsForThisMachine) {
  EXPECT_TRUE(crc_method_available(CrcMethod::kTable));
  EXPECT_FALSE(crc_method_available(CrcMethod::kX86Folded) &&
               crc_method_available(CrcMethod::kArmCrc));
}

TEST(Icrc, PiecesOfAnySizeGiveTheSameValue) {
  const Bytes ip = numbered_bytes(40);
  const Bytes udp = numbered_bytes(8);
  const Bytes rest = numbered_bytes(500);
  Icrc whole;
  whole.add_ip_header(ip);
  whole.add_udp_header(udp);
  whole.add_transport(rest);
  for (const std::size_t cut : {12u, 13u, 36u, 40u, 499u, 500u}) {
    Icrc pieces;
    pieces.add_ip_header(ip);
    pieces.add_udp_header(udp);
    pieces.add_transport(std::span(rest).first(cut));
    const auto tail = std::span(rest).subspan(cut);
    for (std::size_t i = 0; i < tail.size(); ++i)
      pieces.add(tail.subspan(i, 1));
    EXPECT_EQ(pieces.value(), whole.value()) << cut;
  }
}

// A congestion notification packet of a ConnectX-4 Lx network card, taken from the test data that
// the public packet library Scapy ships: real hardware computed its last four bytes.
TEST(Icrc, AgreesWithAPacketCapturedFromANetworkCard) {
  const Bytes frame =
      hex("e41d2dab2bc2 7cfe90643b32 0800 |"
          "45c2 003c 718c 4000 4011 9161 0a001101 0a001201 |"
          "0000 12b7 0028 0000 |"
          "8100 ffff 40000118 00000000 | 00000000000000000000000000000000 |"
          "82fd002a");
  const auto bytes = std::span(frame);
  Icrc icrc;
  icrc.add_ip_header(bytes.subspan(14, 20));
  icrc.add_udp_header(bytes.subspan(34, 8));
  icrc.add_transport(bytes.subspan(42, 28));
  EXPECT_EQ(icrc.value(), 0x2A00FD82u);
}

// From the same data: an unreliable-connection send, given there by its header fields.
TEST(Icrc, AgreesWithASecondPublicPacket) {
  const Bytes bytes =
      hex("4501 0040 0478 4000 4011 b4d5 c0a80007 c0a80007 |"
          "c000 12b7 002c aca2 |"
          "2460 ffff 000000d3 00cf1710 | 4630818be28935d90e9a95505401be885e500000");
  const auto packet = std::span<const std::byte>(bytes);
  Icrc icrc;
  icrc.add_ip_header(packet.first(20));
  icrc.add_udp_header(packet.subspan(20, 8));
  icrc.add_transport(packet.subspan(28));
  EXPECT_EQ(icrc.value(), 0xF353F378u);
}

TEST(Icrc, DoesNotSeeWhatRoutersChange) {
  const auto value = [](std::string_view ip, std::string_view udp, std::string_view bth) {
    Icrc icrc;
    icrc.add_ip_header(hex(ip));
    icrc.add_udp_header(hex(udp));
    icrc.add_transport(hex(bth));
    return icrc.value();
  };
  const std::string_view udp = "c000 12b7 0020 0000";
  const std::string_view bth = "ca00 ffff 00 000102 00 000001";
  const std::string_view addresses6 =
      "fc000001000000000000000000000001 fc000001000000000000000000000002";
  const auto ipv6 = [&](std::string_view start) {
    return std::string(start) + std::string(addresses6);
  };
  const std::uint32_t v6 = value(ipv6("60000000 0020 11 40"), udp, bth);
  EXPECT_EQ(value(ipv6("6ff00000 0020 11 40"), udp, bth), v6) << "traffic class";
  EXPECT_EQ(value(ipv6("600fffff 0020 11 40"), udp, bth), v6) << "flow label";
  EXPECT_EQ(value(ipv6("60000000 0020 11 01"), udp, bth), v6) << "hop limit";
  EXPECT_EQ(value(ipv6("60000000 0020 11 40"), "c000 12b7 0020 beef", bth), v6) << "UDP checksum";
  EXPECT_EQ(value(ipv6("60000000 0020 11 40"), udp, "ca00 ffff c0 000102 00 000001"), v6);
  EXPECT_NE(value(ipv6("70000000 0020 11 40"), udp, bth), v6) << "version";
  EXPECT_NE(value(ipv6("60000000 0021 11 40"), udp, bth), v6) << "length";
  EXPECT_NE(value(ipv6("60000000 0020 12 40"), udp, bth), v6) << "next header";
  EXPECT_NE(value(ipv6("60000000 0020 11 40"), "c001 12b7 0020 0000", bth), v6) << "source port";

  const std::uint32_t v4 = value("4500 0034 0000 4000 4011 0000 0a000001 0a000002", udp, bth);
  EXPECT_EQ(value("45ff 0034 0000 4000 0111 beef 0a000001 0a000002", udp, bth), v4);
  EXPECT_NE(value("4500 0034 0001 4000 4011 0000 0a000001 0a000002", udp, bth), v4) << "id";
  EXPECT_NE(value("4500 0034 0000 0000 4011 0000 0a000001 0a000002", udp, bth), v4) << "flags";
}

}  // namespace
}  // namespace mrc::wire
