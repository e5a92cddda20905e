#include "wire/codec.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "unit/wire/wire_samples.h"

namespace mrc::wire {
namespace {

using test::Bytes;
using test::hex;
using test::kAllOpcodes;
using test::numbered_bytes;
using test::Random;
using test::random_packet;
using test::to_hex;
using test::transport_bytes;

DropReason parse(const Bytes& wire) {
  Packet packet;
  std::span<const std::byte> payload;
  return parse_transport(wire, packet, payload);
}

DropReason parse_with(Bytes wire, std::size_t at, unsigned value) {
  wire[at] = static_cast<std::byte>(value);
  return parse(wire);
}

Bytes sample(Opcode opcode, std::uint32_t payload_length = 8) {
  Random random(1);
  const std::uint32_t length = is_write(opcode) ? payload_length : 0;
  return transport_bytes(random_packet(random, opcode, length), numbered_bytes(length));
}

TEST(Codec, RandomPacketsOfEveryTypeSurviveTheTripThroughBytes) {
  Random random(2024);
  for (int round = 0; round < 2000; ++round) {
    for (const Opcode opcode : kAllOpcodes) {
      const std::uint32_t length = test::random_payload_length(random, opcode);
      const Packet packet = random_packet(random, opcode, length);
      const Bytes data = numbered_bytes(length);
      const Bytes wire = transport_bytes(packet, data);
      Packet parsed;
      std::span<const std::byte> payload;
      ASSERT_EQ(parse_transport(wire, parsed, payload), DropReason::kNone) << to_hex(wire);
      ASSERT_EQ(parsed, packet) << to_hex(wire);
      ASSERT_EQ(to_hex(payload), to_hex(data));
    }
  }
}

TEST(Codec, RandomBytesThatParseBuildTheSameMeaningAgain) {
  Random random(7);
  int accepted = 0;
  for (int round = 0; round < 200000; ++round) {
    const Opcode opcode = kAllOpcodes[random() % std::size(kAllOpcodes)];
    Bytes wire = sample(opcode, 4);
    for (int flips = 0; flips < 3; ++flips) {
      wire[random() % wire.size()] ^= static_cast<std::byte>(1u << random() % 8);
    }
    Packet packet;
    std::span<const std::byte> payload;
    if (parse_transport(wire, packet, payload) != DropReason::kNone) continue;
    ++accepted;
    const Bytes again = transport_bytes(packet, payload);
    Packet second;
    std::span<const std::byte> second_payload;
    ASSERT_EQ(parse_transport(again, second, second_payload), DropReason::kNone);
    ASSERT_EQ(second, packet);
  }
  EXPECT_GT(accepted, 10000);
}

TEST(Codec, TruncationAtEveryLengthOfEveryHeaderYieldsADropReason) {
  for (const Opcode opcode : kAllOpcodes) {
    for (std::uint64_t seed = 0; seed < 8; ++seed) {  // with and without timestamp
      Random random(seed);
      const std::uint32_t length = is_write(opcode) ? 7 : 0;
      const Packet packet = random_packet(random, opcode, length);
      const Bytes wire = transport_bytes(packet, numbered_bytes(length));
      for (std::size_t cut = 0; cut < header_length(packet); ++cut) {
        const Bytes part(wire.begin(), wire.begin() + static_cast<std::ptrdiff_t>(cut));
        EXPECT_EQ(parse(part), DropReason::kTruncated)
            << static_cast<int>(opcode) << " cut at " << cut;
      }
      EXPECT_EQ(parse(wire), DropReason::kNone);
    }
  }
}

TEST(Codec, AWholeMessageCutInItsPayloadYieldsADropReason) {
  for (const Opcode opcode : {Opcode::kWriteOnly, Opcode::kWriteOnlyImm}) {
    const Bytes wire = sample(opcode, 7);
    for (std::size_t cut = wire.size() - 8; cut < wire.size(); ++cut) {
      const Bytes part(wire.begin(), wire.begin() + static_cast<std::ptrdiff_t>(cut));
      EXPECT_EQ(parse(part), DropReason::kBadPayloadLength) << cut;
    }
  }
}

TEST(Codec, ControlPacketsWithATailAreRefused) {
  for (const Opcode opcode : kAllOpcodes) {
    if (is_write(opcode)) continue;
    Bytes wire = sample(opcode);
    for (int tail = 1; tail <= 8; ++tail) {
      wire.push_back(std::byte{0});
      EXPECT_EQ(parse(wire), DropReason::kBadPayloadLength);
    }
  }
}

TEST(Codec, ControlPacketsWithAPadCountAreRefused) {
  for (const Opcode opcode : kAllOpcodes) {
    if (is_write(opcode)) continue;
    EXPECT_EQ(parse_with(sample(opcode), 1, 0x10), DropReason::kBadPayloadLength);
  }
}

TEST(Codec, EveryOpcodeOutsideTheTableIsRefused) {
  for (unsigned value = 0; value < 256; ++value) {
    const bool known = std::ranges::any_of(
        kAllOpcodes, [value](Opcode opcode) { return static_cast<unsigned>(opcode) == value; });
    EXPECT_EQ(is_known_opcode(static_cast<std::uint8_t>(value)), known) << value;
    if (known) continue;
    EXPECT_EQ(parse_with(sample(Opcode::kSack), 0, value), DropReason::kUnknownOpcode) << value;
  }
}

TEST(Codec, EveryTransportVersionButZeroIsRefused) {
  for (unsigned version = 1; version < 16; ++version) {
    EXPECT_EQ(parse_with(sample(Opcode::kAck), 1, version), DropReason::kBadTransportVersion);
  }
}

TEST(Codec, ReservedValuesOfEnumsAreRefused) {
  const std::size_t body = kBthLength;
  EXPECT_EQ(parse_with(sample(Opcode::kSack), body + 1, 0x60), DropReason::kBadHeaderField);
  for (unsigned reason = 0; reason < 256; ++reason) {
    const bool known = std::ranges::any_of(test::kAllNackReasons, [reason](NackReason known_one) {
      return static_cast<unsigned>(known_one) == reason;
    });
    EXPECT_EQ(parse_with(sample(Opcode::kNack), body + 2, reason),
              known ? DropReason::kNone : DropReason::kBadHeaderField)
        << reason;
  }
  for (unsigned op = 2; op < 4; ++op) {
    EXPECT_EQ(parse_with(sample(Opcode::kEndpointRequest), body + 1, op),
              DropReason::kBadHeaderField);
    EXPECT_EQ(parse_with(sample(Opcode::kEndpointResponse), body + 1, op << 2),
              DropReason::kBadHeaderField);
  }
}

TEST(Codec, CongestionStateOfAnotherTypeIsRefused) {
  for (unsigned type = 1; type < 16; ++type) {
    EXPECT_EQ(parse_with(sample(Opcode::kSack), kBthLength + 16, type << 4),
              DropReason::kBadHeaderField);
  }
  for (unsigned type = 0; type < 16; ++type) {
    EXPECT_EQ(parse_with(sample(Opcode::kNack), kBthLength + 16, type << 4),
              type == 2 ? DropReason::kNone : DropReason::kBadHeaderField);
  }
}

TEST(Codec, ATimestampOfAnotherTypeIsRefused) {
  for (unsigned type = 0; type < 16; ++type) {
    const DropReason expected = type == 1 ? DropReason::kNone : DropReason::kBadHeaderField;
    EXPECT_EQ(parse_with(sample(Opcode::kProbe), kBthLength + 15, type), expected);
    EXPECT_EQ(parse_with(sample(Opcode::kEndpointRequest), kBthLength + 15, type), expected);
  }
}

TEST(Codec, EndpointOperationsMustAddressTheEndpoint) {
  EXPECT_EQ(parse_with(sample(Opcode::kEndpointRequest), 7, 3), DropReason::kBadHeaderField);
  EXPECT_EQ(parse_with(sample(Opcode::kEndpointResponse), 5, 1), DropReason::kBadHeaderField);
}

TEST(Codec, OnlyThePlainAckAndNaksAreTransportAcknowledgements) {
  for (unsigned syndrome = 0; syndrome < 128; ++syndrome) {
    const bool expected = syndrome == kSyndromeAck || syndrome >= 0x60;
    EXPECT_EQ(parse_with(sample(Opcode::kAck), kBthLength, syndrome),
              expected ? DropReason::kNone : DropReason::kBadHeaderField)
        << syndrome;
  }
}

TEST(Codec, PayloadsAroundAMultipleOfFourKeepTheirLength) {
  for (const std::uint32_t length : {1u, 44u, 45u, 48u, 49u, 4096u}) {
    for (const Opcode opcode : {Opcode::kWriteFirst, Opcode::kWriteMiddle, Opcode::kWriteLast,
                                Opcode::kWriteOnly, Opcode::kWriteOnlyImm}) {
      Random random(length);
      const Packet packet = random_packet(random, opcode, length);
      const Bytes wire = transport_bytes(packet, numbered_bytes(length));
      EXPECT_EQ((wire.size() - header_length(packet)) % 4, 0u);
      Packet parsed;
      std::span<const std::byte> payload;
      ASSERT_EQ(parse_transport(wire, parsed, payload), DropReason::kNone) << length;
      EXPECT_EQ(to_hex(payload), to_hex(numbered_bytes(length)));
      EXPECT_EQ(parsed.bth.pad, pad_length(length));
    }
  }
}

TEST(Codec, APadCountThatContradictsThePayloadIsRefused) {
  const Bytes wire = sample(Opcode::kWriteOnly, 8);
  for (unsigned pad = 1; pad < 4; ++pad) {
    EXPECT_EQ(parse_with(wire, 1, pad << 4), DropReason::kBadPayloadLength);
  }
  const Bytes empty = sample(Opcode::kWriteOnly, 0);
  EXPECT_EQ(parse(empty), DropReason::kNone);
  EXPECT_EQ(parse_with(empty, 1, 0x10), DropReason::kBadPayloadLength);
}

TEST(Codec, AWholeMessageMustHaveThePayloadItAnnounces) {
  Random random(5);
  Packet packet = random_packet(random, Opcode::kWriteOnly, 8);
  auto& write = std::get<Write>(packet.body);
  write.message_length = 12;
  EXPECT_EQ(parse(transport_bytes(packet, numbered_bytes(8))), DropReason::kBadPayloadLength);
  write.message_length = 4;
  EXPECT_EQ(parse(transport_bytes(packet, numbered_bytes(8))), DropReason::kBadPayloadLength);
}

TEST(Codec, APartOfAMessageIsNeitherEmptyNorTheWholeOfIt) {
  for (const Opcode opcode : {Opcode::kWriteFirst, Opcode::kWriteMiddle, Opcode::kWriteLast}) {
    Random random(6);
    Packet packet = random_packet(random, opcode, 8);
    auto& write = std::get<Write>(packet.body);
    write.message_length = 9;
    EXPECT_EQ(parse(transport_bytes(packet, numbered_bytes(8))), DropReason::kNone);
    write.message_length = 8;
    EXPECT_EQ(parse(transport_bytes(packet, numbered_bytes(8))), DropReason::kBadPayloadLength);
    packet.bth.pad = 0;
    EXPECT_EQ(parse(transport_bytes(packet, {})), DropReason::kBadPayloadLength);
  }
}

TEST(Codec, PsnWrapsInsideAMessage) {
  Random random(9);
  Psn psn(0xFFFFFE);
  for (const std::uint32_t expected : {0xFFFFFEu, 0xFFFFFFu, 0x000000u, 0x000001u}) {
    Packet packet = random_packet(random, Opcode::kWriteMiddle, 4);
    packet.bth.psn = psn;
    Packet parsed;
    std::span<const std::byte> payload;
    const Bytes wire = transport_bytes(packet, numbered_bytes(4));
    ASSERT_EQ(parse_transport(wire, parsed, payload), DropReason::kNone);
    EXPECT_EQ(parsed.bth.psn.value(), expected);
    psn = psn + 1;
  }
}

TEST(Codec, TheTimestampMayComeAndGoWithinAMessage) {
  Random random(10);
  for (int i = 0; i < 4; ++i) {
    Packet packet = random_packet(random, Opcode::kWriteMiddle, 4);
    packet.bth.has_timestamp = i % 2 == 0;
    std::get<Write>(packet.body).timestamp = i % 2 == 0 ? Timestamp{.ticks = 77} : Timestamp{};
    const Bytes wire = transport_bytes(packet, numbered_bytes(4));
    EXPECT_EQ(wire.size(), i % 2 == 0 ? 40u : 36u);
    Packet parsed;
    std::span<const std::byte> payload;
    ASSERT_EQ(parse_transport(wire, parsed, payload), DropReason::kNone);
    EXPECT_EQ(parsed, packet);
  }
}

TEST(Codec, BuildingReturnsZeroForEveryBufferThatIsTooSmall) {
  Random random(11);
  for (const Opcode opcode : kAllOpcodes) {
    const Packet packet = random_packet(random, opcode, is_write(opcode) ? 4 : 0);
    const std::size_t needed = header_length(packet);
    EXPECT_LE(needed, kMaxTransportHeader);
    for (std::size_t room = 0; room < needed; ++room) {
      Bytes out(room);
      EXPECT_EQ(build_transport(packet, out), 0u);
    }
    Bytes out(needed);
    EXPECT_EQ(build_transport(packet, out), needed);
  }
}

TEST(Codec, NominalSizeIsUdpLengthPlusForty) {
  Packet packet;
  packet.bth.opcode = Opcode::kWriteMiddle;
  packet.bth.has_timestamp = true;
  // UDP 8, BTH 12, METH 4, TSETH 4, RETH 16, payload, ICRC 4.
  EXPECT_EQ(nominal_size(packet, 4096), 40u + 8 + 12 + 4 + 4 + 16 + 4096 + 4);
  EXPECT_EQ(nominal_size(packet, 4095), nominal_size(packet, 4096));
  EXPECT_EQ(nominal_size(packet, 4093), nominal_size(packet, 4096));
  EXPECT_EQ(nominal_size(packet, 4092), nominal_size(packet, 4096) - 4);
  packet.bth.opcode = Opcode::kAck;
  EXPECT_EQ(nominal_size(packet, 0), 40u + 8 + 12 + 4 + 4);
}

TEST(CodecDeathTest, ABodyThatContradictsTheOpcodeIsOurOwnMistake) {
  Packet packet;
  packet.bth.opcode = Opcode::kSack;
  packet.body = Nack{};
  Bytes out(100);
  EXPECT_DEATH((void)build_transport(packet, out), "");
}

TEST(TrimmedCodec, BthAndMessageNumbersAreEnough) {
  const Bytes wire = hex("c6 00 ffff 00 123456 20 fffffe | 0007 0102");
  Packet packet;
  ASSERT_EQ(parse_trimmed_transport(wire, packet), DropReason::kNone);
  EXPECT_EQ(packet.bth.opcode, Opcode::kWriteFirst);
  EXPECT_EQ(packet.bth.psn, Psn(0xFFFFFE));
  EXPECT_TRUE(packet.bth.retransmission);
  const auto& write = std::get<Write>(packet.body);
  EXPECT_EQ(write.receive_msn, 7);
  EXPECT_EQ(write.msn, 0x0102);
  EXPECT_EQ(write.address, 0u);
}

TEST(TrimmedCodec, AnAnnouncedTimestampMustBeThere) {
  const Bytes wire = hex("ca 00 ffff 00 123456 10 000001 | 0000 0001 | abcd 8001");
  for (std::size_t cut = 0; cut < wire.size(); ++cut) {
    Packet packet;
    EXPECT_EQ(parse_trimmed_transport(std::span(wire).first(cut), packet), DropReason::kTruncated);
  }
  Packet packet;
  ASSERT_EQ(parse_trimmed_transport(wire, packet), DropReason::kNone);
  EXPECT_EQ(std::get<Write>(packet.body).timestamp,
            (Timestamp{.ticks = 0xABCD, .microseconds = true}));
  EXPECT_EQ(wire.size(), trimmed_length(true));
}

TEST(TrimmedCodec, WhateverFollowsIsIgnored) {
  Bytes wire = hex("ca 00 ffff 00 123456 00 000001 | 0000 0001 | ffffffffffffff");
  Packet packet;
  ASSERT_EQ(parse_trimmed_transport(wire, packet), DropReason::kNone);
  EXPECT_EQ(std::get<Write>(packet.body).address, 0u);
  EXPECT_EQ(std::get<Write>(packet.body).key, Rkey{0});
}

TEST(TrimmedCodec, OnlyWritesCanBeTrimmed) {
  for (const Opcode opcode : kAllOpcodes) {
    Packet packet;
    EXPECT_EQ(parse_trimmed_transport(sample(opcode), packet),
              is_write(opcode) ? DropReason::kNone : DropReason::kBadHeaderField);
  }
}

TEST(TrimmedCodec, BadVersionAndOpcodeAreRefused) {
  Packet packet;
  const Bytes version = hex("ca 01 ffff 00 123456 00 000001 | 0000 0001");
  EXPECT_EQ(parse_trimmed_transport(version, packet), DropReason::kBadTransportVersion);
  const Bytes opcode = hex("cc 00 ffff 00 123456 00 000001 | 0000 0001");
  EXPECT_EQ(parse_trimmed_transport(opcode, packet), DropReason::kUnknownOpcode);
  const Bytes stamp = hex("ca 00 ffff 00 123456 10 000001 | 0000 0001 | abcd 8002");
  EXPECT_EQ(parse_trimmed_transport(stamp, packet), DropReason::kBadHeaderField);
}

// A check that covers the headers of a write says nothing of its payload, and everything of the
// headers; shorter payloads are always covered.
TEST(Codec, AHeaderCheckCoversTheHeadersAlone) {
  Random random(3);
  for (const Opcode opcode : kAllOpcodes) {
    const std::uint32_t length = is_write(opcode) ? 1'000 : 0;
    const Packet packet = random_packet(random, opcode, length);
    Bytes wire = transport_bytes(packet, numbered_bytes(length));
    Icrc headers;
    headers.add_transport(std::span(wire).first(header_length(packet)));
    const std::uint32_t sent = headers.header_check();
    EXPECT_EQ(is_header_check(Icrc(), wire, sent), is_write(opcode));
    if (!is_write(opcode)) continue;
    EXPECT_FALSE(is_header_check(Icrc(), wire, headers.value())) << "is marked as such";
    wire.back() ^= std::byte{1};
    EXPECT_TRUE(is_header_check(Icrc(), wire, sent));
    for (std::size_t at = 0; at < header_length(packet); ++at) {
      if (at == 4) continue;  // not covered by any ICRC
      Bytes broken = wire;
      broken[at] ^= std::byte{0x08};
      EXPECT_FALSE(is_header_check(Icrc(), broken, sent)) << at;
    }
  }
}

TEST(Codec, OnlyLongPayloadsMayBeLeftOut) {
  Random random(4);
  for (const std::uint32_t length : {0U, 4U, 256U, 260U}) {
    const Packet packet = random_packet(random, Opcode::kWriteOnly, length);
    const Bytes wire = transport_bytes(packet, numbered_bytes(length));
    Icrc headers;
    headers.add_transport(std::span(wire).first(header_length(packet)));
    EXPECT_EQ(is_header_check(Icrc(), wire, headers.header_check()), length == 260) << length;
  }
  EXPECT_FALSE(is_header_check(Icrc(), Bytes(11), 0));
}

}  // namespace
}  // namespace mrc::wire
