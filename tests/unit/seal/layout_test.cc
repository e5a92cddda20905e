#include "seal/layout.h"

#include <gtest/gtest.h>

#include "unit/seal/seal_fixture.h"

namespace mrc::seal {
namespace {

using wire::test::hex;
using wire::test::to_hex;

TEST(SealLayout, WritesTheHeaderAsDocumented) {
  std::array<std::byte, kSealHeaderLength> bytes{};
  write_seal_header({.suite = Suite::kChaCha20Poly1305,
                     .key = KeyId{0xAB},
                     .instance = 0x0102'0304'0506'0708,
                     .number = 0x1112'1314'1516'1718},
                    bytes);
  write_header_tag(0x2122'2324'2526'2728, bytes);
  EXPECT_EQ(to_hex(bytes),
            "12ab000001020304050607081112131415161718"
            "2122232425262728");
  SealHeader read;
  ASSERT_TRUE(read_seal_header(bytes, read));
  EXPECT_EQ(read.suite, Suite::kChaCha20Poly1305);
  EXPECT_EQ(read.key, KeyId{0xAB});
  EXPECT_EQ(read.instance, 0x0102'0304'0506'0708u);
  EXPECT_EQ(read.number, 0x1112'1314'1516'1718u);
  EXPECT_EQ(read.tag, 0x2122'2324'2526'2728u);
}

TEST(SealLayout, RefusesWhatItDoesNotKnow) {
  constexpr struct {
    std::size_t at;
    unsigned value;
    bool good;
  } kCases[] = {{0, 0x11, true},  {0, 0x12, true},  {0, 0x10, false}, {0, 0x13, false},
                {0, 0x01, false}, {0, 0x21, false}, {2, 0x80, false}, {3, 0x01, false}};
  for (const auto& [at, value, good] : kCases) {
    std::array<std::byte, kSealHeaderLength> bytes{};
    bytes[0] = std::byte{0x11};
    bytes[at] = static_cast<std::byte>(value);
    SealHeader read;
    EXPECT_EQ(read_seal_header(bytes, read), good) << at << " " << value;
  }
}

// Whatever a switch keeps of a packet must be readable, and nothing behind it.
TEST(SealLayout, ClearIsWhatASwitchKeeps) {
  for (const wire::Opcode opcode : wire::test::kAllOpcodes) {
    for (std::uint64_t seed = 0; seed < 8; ++seed) {
      const test::Plain plain = test::sample(opcode, wire::is_write(opcode) ? 8 : 0, seed);
      const std::size_t expected = wire::is_write(opcode)
                                       ? wire::trimmed_length(plain.packet.bth.has_timestamp)
                                       : wire::kBthLength;
      EXPECT_EQ(clear_length(plain.whole), expected);
    }
  }
  EXPECT_EQ(clear_length(hex("ca0000000000000000000000")), 16u);
  EXPECT_EQ(clear_length(hex("ca00000000000000000000")), 0u);
  EXPECT_EQ(clear_length(hex("000000000000000000000000")), 0u);
}

TEST(SealLayout, MapsAddressesAsGidsAre) {
  EXPECT_EQ(to_hex(gid_of(wire::ipv4_address(0x0A00'0001)).bytes),
            "00000000000000000000ffff0a000001");
  EXPECT_EQ(to_hex(gid_of(wire::ipv6_address(0xfc00'0001'0000'0000, 2)).bytes),
            "fc000001000000000000000000000002");
}

TEST(SealLayout, SwitchesKeepClearAndSealHeaderOfWritesAlone) {
  Sealer sealer(test::sample_ring(), test::sample_flow());
  for (const wire::Opcode opcode : wire::test::kAllOpcodes) {
    const test::Plain plain = test::sample(opcode, wire::is_write(opcode) * 8);
    const test::Bytes sealed = test::seal(sealer, plain);
    const std::size_t keep =
        wire::is_write(opcode) ? clear_length(plain.header) + kSealHeaderLength : 0;
    EXPECT_EQ(trimmed_length(sealed), keep);
    EXPECT_EQ(trimmed_length(plain.header), 0U);
    EXPECT_EQ(trimmed_length(std::span(sealed).first(5)), 0U);
  }
}

TEST(SealLayout, TheVersionLeavesItsNeighboursAlone) {
  test::Bytes bth = hex("ca f0 ffff 00 000003 00 000000");
  set_transport_version(bth, kSealedVersion);
  EXPECT_EQ(transport_version(bth), kSealedVersion);
  EXPECT_EQ(bth[1], std::byte{0xF5});
  set_transport_version(bth, 0);
  EXPECT_EQ(bth[1], std::byte{0xF0});
}

// An end without keys drops it for its version, before it looks at anything else.
TEST(SealLayout, PlainEndsKnowThatTheyDoNotKnow) {
  Sealer sealer(test::sample_ring(), test::sample_flow());
  for (const wire::Opcode opcode : wire::test::kAllOpcodes) {
    const test::Bytes sealed = test::seal(sealer, test::sample(opcode, wire::is_write(opcode) * 8));
    wire::Packet packet;
    std::span<const std::byte> payload;
    EXPECT_EQ(wire::parse_transport(sealed, packet, payload), DropReason::kBadTransportVersion);
    EXPECT_EQ(wire::parse_trimmed_transport(sealed, packet), DropReason::kBadTransportVersion);
  }
}

}  // namespace
}  // namespace mrc::seal
