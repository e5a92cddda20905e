#include "wire/frame.h"

#include <gtest/gtest.h>

#include <vector>

#include "unit/wire/frame_samples.h"
#include "wire/codec.h"

namespace mrc::wire {
namespace {

using test::Bytes;
using test::Encapsulation;
using test::frame_bytes;
using test::frame_header;
using test::hex;
using test::kAllEncapsulations;
using test::kAllOpcodes;
using test::numbered_bytes;
using test::Random;
using test::random_packet;
using test::to_hex;

struct Parsed {
  DropReason reason = DropReason::kNone;
  FrameHeader header;
  Packet packet;
  std::span<const std::byte> payload;
};

Parsed parse(const Bytes& frame, const FrameFormat& format = {}) {
  Parsed parsed;
  parsed.reason = parse_frame(format, frame, parsed.header, parsed.packet, parsed.payload);
  return parsed;
}

Packet ack_packet() {
  Packet packet;
  packet.bth.opcode = Opcode::kAck;
  packet.bth.destination = QpNumber{0x42};
  packet.bth.psn = Psn(0x10);
  packet.body = Ack{.syndrome = kSyndromeAck, .msn = 0x203};
  return packet;
}

// The expected headers below are written out by hand; the ICRC comes from the plain reference.
void expect_frame(Encapsulation kind, std::string_view headers) {
  Bytes expected = hex(headers);
  for (const std::byte b : hex("d1 00 ffff 00 000042 00 000010 | 1f 000203 | 00000000")) {
    expected.push_back(b);
  }
  test::put_icrc(expected, 14 + test::tunnel_length(kind));
  const FrameHeader header = frame_header(kind);
  EXPECT_EQ(to_hex(frame_bytes({}, header, ack_packet(), {})), to_hex(expected));
  const Parsed parsed = parse(expected);
  ASSERT_EQ(parsed.reason, DropReason::kNone);
  EXPECT_EQ(parsed.header, header);
  EXPECT_EQ(parsed.packet, ack_packet());
}

TEST(FrameGolden, PlainIpv4) {
  expect_frame(Encapsulation::kIpv4,
               "020000000002 020000000001 0800 |"
               "4512 0030 0000 4000 3f11 27a9 0a000001 0a000002 | c001 12b7 001c 0000");
}

TEST(FrameGolden, PlainIpv6CarriesTheHighHalfOfTheEntropyInTheFlowLabel) {
  expect_frame(Encapsulation::kIpv6,
               "020000000002 020000000001 86dd | 6120abcd 001c 11 3f"
               "20010db8000000000000000000000001 20010db8000000000000000000000002 |"
               "c001 12b7 001c 0000");
}

TEST(FrameGolden, Srv6RepeatsTheHighHalfInTheOuterFlowLabel) {
  expect_frame(Encapsulation::kSrv6,
               "020000000002 020000000001 86dd | 6120abcd 0044 29 08"
               "20010db8000000000000000000000001 fc000001100080001001010000000000 |"
               "6120abcd 001c 11 3f"
               "20010db8000000000000000000000001 20010db8000000000000000000000002 |"
               "c001 12b7 001c 0000");
}

TEST(FrameGolden, Srv6WithRoutingHeader) {
  expect_frame(Encapsulation::kSrv6WithSegment,
               "020000000002 020000000001 86dd | 6120abcd 005c 2b 08"
               "20010db8000000000000000000000001 fc000001100080001001010000000000 |"
               "29 02 04 01 00 00 0000 fc000001123400000000000000000000 |"
               "6120abcd 001c 11 3f"
               "20010db8000000000000000000000001 20010db8000000000000000000000002 |"
               "c001 12b7 001c 0000");
}

TEST(Frame, EveryPacketTypeSurvivesEveryEncapsulation) {
  Random random(99);
  for (int round = 0; round < 50; ++round) {
    for (const Encapsulation kind : kAllEncapsulations) {
      for (const Opcode opcode : kAllOpcodes) {
        const std::uint32_t length = test::random_payload_length(random, opcode);
        const Packet packet = random_packet(random, opcode, length);
        FrameFormat format;
        format.ethernet = test::flip(random);
        format.udp_port = static_cast<std::uint16_t>(random());
        FrameHeader header = frame_header(kind);
        if (!format.ethernet) header.source_mac = header.destination_mac = {};
        header.entropy &= static_cast<std::uint32_t>(random());
        const Bytes data = numbered_bytes(length);
        const Bytes frame = frame_bytes(format, header, packet, data);
        ASSERT_EQ(frame.size(), frame_length(format, header, packet, length));
        const Parsed parsed = parse(frame, format);
        ASSERT_EQ(parsed.reason, DropReason::kNone) << drop_reason_name(parsed.reason);
        ASSERT_EQ(parsed.header, header);
        ASSERT_EQ(parsed.packet, packet);
        ASSERT_EQ(to_hex(parsed.payload), to_hex(data));
      }
    }
  }
}

TEST(Frame, PayloadInPiecesEqualsPayloadInOne) {
  Random random(1);
  const Packet packet = random_packet(random, Opcode::kWriteOnly, 1001);
  const FrameHeader header = frame_header(Encapsulation::kSrv6);
  const Bytes data = numbered_bytes(1001);
  const auto all = std::span<const std::byte>(data);
  const std::vector<std::span<const std::byte>> pieces{all.first(1), all.subspan(1, 0),
                                                       all.subspan(1, 600), all.subspan(601)};
  Bytes frame(2000);
  frame.resize(build_frame({}, header, packet, pieces, frame));
  EXPECT_EQ(to_hex(frame), to_hex(frame_bytes({}, header, packet, data)));
}

TEST(Frame, TruncationAtEveryLengthYieldsADropReason) {
  Random random(4);
  for (const Encapsulation kind : kAllEncapsulations) {
    for (const bool ethernet : {true, false}) {
      for (const Opcode opcode : {Opcode::kSack, Opcode::kWriteMiddle}) {
        const std::uint32_t length = is_write(opcode) ? 9 : 0;
        const FrameFormat format{.ethernet = ethernet};
        const Bytes frame =
            frame_bytes(format, frame_header(kind), random_packet(random, opcode, length),
                        numbered_bytes(length));
        ASSERT_EQ(parse(frame, format).reason, DropReason::kNone);
        for (std::size_t cut = 0; cut < frame.size(); ++cut) {
          const Bytes part(frame.begin(), frame.begin() + static_cast<std::ptrdiff_t>(cut));
          EXPECT_NE(parse(part, format).reason, DropReason::kNone) << cut;
        }
      }
    }
  }
}

TEST(Frame, AnyFlippedBitUnderTheIcrcIsNoticed) {
  Random random(8);
  for (const Encapsulation kind : kAllEncapsulations) {
    const Bytes frame =
        frame_bytes({}, frame_header(kind), random_packet(random, Opcode::kWriteOnlyImm, 13),
                    numbered_bytes(13));
    const std::size_t udp =
        14 + test::tunnel_length(kind) + (kind == Encapsulation::kIpv4 ? 20 : 40);
    for (std::size_t bit = 8 * udp; bit < 8 * frame.size(); ++bit) {
      const std::size_t at = bit / 8;
      const bool masked = at == udp + 6 || at == udp + 7 || at == udp + 12;
      Bytes flipped = frame;
      flipped[at] ^= static_cast<std::byte>(1u << bit % 8);
      EXPECT_EQ(parse(flipped).reason == DropReason::kNone, masked)
          << "bit " << bit % 8 << " of " << at;
    }
  }
}

TEST(Frame, BytesBehindTheIpPacketAreLinkPadding) {
  Bytes frame = frame_bytes({}, frame_header(Encapsulation::kIpv6), ack_packet(), {});
  frame.insert(frame.end(), 10, std::byte{0xEE});
  EXPECT_EQ(parse(frame).reason, DropReason::kNone);

  const FrameFormat no_link{.ethernet = false};
  Bytes packet = frame_bytes(no_link, frame_header(Encapsulation::kIpv6), ack_packet(), {});
  packet.push_back(std::byte{0});
  EXPECT_EQ(parse(packet, no_link).reason, DropReason::kBadIpHeader);
}

// Changes one byte of an ACK frame and parses it, with the ICRC made right
// again.
DropReason changed(Encapsulation kind, std::size_t at, unsigned value) {
  Bytes frame = frame_bytes({}, frame_header(kind), ack_packet(), {});
  frame[at] = static_cast<std::byte>(value);
  const std::size_t ip = 14 + test::tunnel_length(kind);
  if (at != ip) test::put_icrc(frame, ip);  // with another version it would be somewhere else
  return parse(frame).reason;
}

TEST(Frame, EachBadHeaderHasItsOwnReason) {
  using enum Encapsulation;
  EXPECT_EQ(changed(kIpv6, 12, 0x81), DropReason::kBadEtherType);
  EXPECT_EQ(changed(kIpv6, 14, 0x41), DropReason::kBadIpVersion);
  EXPECT_EQ(changed(kIpv4, 14, 0x65), DropReason::kBadIpVersion);
  EXPECT_EQ(changed(kIpv4, 24, 0x00), DropReason::kBadIpChecksum);
  EXPECT_EQ(changed(kIpv6, 19, 0x1D), DropReason::kBadIpHeader) << "longer than the frame";
  EXPECT_EQ(changed(kIpv6, 19, 0x1B), DropReason::kBadUdpLength) << "shorter than UDP says";
  EXPECT_EQ(changed(kIpv6, 20, 6), DropReason::kBadNextHeader);
  EXPECT_EQ(changed(kSrv6, 20, 4), DropReason::kBadNextHeader);
  EXPECT_EQ(changed(kSrv6, 54, 0x45), DropReason::kBadIpHeader)
      << "IPv4 with a bad checksum inside";
  EXPECT_EQ(changed(kSrv6, 60, 41), DropReason::kBadNextHeader) << "a tunnel in the tunnel";
  EXPECT_EQ(changed(kSrv6WithSegment, 54, 17), DropReason::kBadNextHeader);
  EXPECT_EQ(changed(kSrv6WithSegment, 56, 0), DropReason::kBadNextHeader);
  EXPECT_EQ(changed(kIpv6, 59, 0), DropReason::kBadUdpLength);
  EXPECT_EQ(changed(kIpv6, 57, 0xB8), DropReason::kBadUdpPort);
  EXPECT_EQ(changed(kIpv6, 62, 0xFF), DropReason::kUnknownOpcode);
}

TEST(Frame, AnInnerPacketShorterThanItsTunnelIsRefused) {
  Bytes frame = frame_bytes({}, frame_header(Encapsulation::kSrv6), ack_packet(), {});
  frame[14 + 5] = static_cast<std::byte>(0x44 + 1);
  frame.push_back(std::byte{0});
  EXPECT_EQ(parse(frame).reason, DropReason::kBadIpHeader);
}

TEST(Frame, Ipv4InsideTheTunnelIsRefused) {
  const FrameFormat no_link{.ethernet = false};
  const Bytes inner = frame_bytes(no_link, frame_header(Encapsulation::kIpv4), ack_packet(), {});
  Bytes frame = hex("60000000 0000 29 40");
  frame.resize(40);
  frame[5] = static_cast<std::byte>(inner.size());
  frame.insert(frame.end(), inner.begin(), inner.end());
  EXPECT_EQ(parse(frame, no_link).reason, DropReason::kBadIpVersion);
}

TEST(Frame, AFrameThatEndsBehindUdpIsTruncated) {
  Bytes frame = frame_bytes({}, frame_header(Encapsulation::kIpv6), ack_packet(), {});
  frame.resize(14 + 40 + 8 + 15);
  frame[14 + 5] = std::byte{8 + 15};
  frame[14 + 40 + 5] = std::byte{8 + 15};
  EXPECT_EQ(parse(frame).reason, DropReason::kTruncated);
}

TEST(Frame, TheUdpPortIsAParameter) {
  const FrameFormat other{.udp_port = 4971};
  const Bytes frame = frame_bytes(other, frame_header(Encapsulation::kIpv4), ack_packet(), {});
  EXPECT_EQ(parse(frame, other).reason, DropReason::kNone);
  EXPECT_EQ(parse(frame).reason, DropReason::kBadUdpPort);
}

TEST(Frame, Ipv4CarriesOnlyTheLowHalfOfTheEntropy) {
  FrameHeader header = frame_header(Encapsulation::kIpv4);
  header.entropy = 0x12345678;
  EXPECT_EQ(parse(frame_bytes({}, header, ack_packet(), {})).header.entropy, 0x5678u);
}

TEST(Frame, TheTopOfTheFlowLabelIsNotEntropy) {
  Bytes frame = frame_bytes({}, frame_header(Encapsulation::kIpv6), ack_packet(), {});
  frame[15] |= std::byte{0x0F};
  const Parsed parsed = parse(frame);
  ASSERT_EQ(parsed.reason, DropReason::kNone);
  EXPECT_EQ(parsed.header.entropy, 0xABCDC001u);
}

TEST(Frame, AMarkOnTheTunnelReachesTheReceiver) {
  Bytes frame = frame_bytes({}, frame_header(Encapsulation::kSrv6), ack_packet(), {});
  frame[15] |= std::byte{0x30};  // ECN of the outer header
  const Parsed parsed = parse(frame);
  ASSERT_EQ(parsed.reason, DropReason::kNone);
  EXPECT_EQ(parsed.header.ecn, Ecn::kCe);
}

TEST(Frame, AMarkedTunnelAroundAPacketWithoutEcnIsDropped) {
  FrameHeader header = frame_header(Encapsulation::kSrv6);
  header.ecn = Ecn::kNotEct;
  Bytes frame = frame_bytes({}, header, ack_packet(), {});
  EXPECT_EQ(parse(frame).header.ecn, Ecn::kNotEct);
  frame[15] |= std::byte{0x30};
  EXPECT_EQ(parse(frame).reason, DropReason::kBadIpHeader);
}

TEST(Frame, BuildingReturnsZeroForEveryBufferThatIsTooSmall) {
  for (const Encapsulation kind : kAllEncapsulations) {
    const FrameHeader header = frame_header(kind);
    const std::size_t needed = frame_length({}, header, ack_packet(), 0);
    for (std::size_t room = 0; room < needed; ++room) {
      Bytes out(room);
      EXPECT_EQ(build_frame({}, header, ack_packet(), {}, out), 0u);
    }
  }
}

TEST(Frame, BuildingReturnsZeroIfALengthFieldCannotHoldTheLength) {
  Packet packet;
  packet.bth.opcode = Opcode::kWriteMiddle;
  packet.body = Write{.message_length = 100000};
  Bytes out(80000);
  const auto build = [&](Encapsulation kind, std::size_t payload_length) {
    const Bytes data = numbered_bytes(payload_length);
    const std::array<std::span<const std::byte>, 1> pieces{data};
    return build_frame({}, frame_header(kind), packet, pieces, out);
  };
  // IP payload = UDP 8 + headers 32 + payload + ICRC 4, and what the tunnel adds.
  EXPECT_NE(build(Encapsulation::kIpv4, 65515 - 47), 0u);
  EXPECT_EQ(build(Encapsulation::kIpv4, 65515 - 43), 0u);
  EXPECT_NE(build(Encapsulation::kIpv6, 65535 - 47), 0u);
  EXPECT_EQ(build(Encapsulation::kIpv6, 65535 - 43), 0u);
  EXPECT_NE(build(Encapsulation::kSrv6, 65535 - 40 - 47), 0u);
  EXPECT_EQ(build(Encapsulation::kSrv6, 65535 - 40 - 43), 0u);
  EXPECT_EQ(build(Encapsulation::kSrv6WithSegment, 65535 - 64 - 43), 0u);
}

TEST(Frame, AnIcrcMadeInPiecesEqualsTheOneInTheFrame) {
  Random random(12);
  for (const Encapsulation kind : kAllEncapsulations) {
    Packet packet = random_packet(random, Opcode::kWriteLast, 4096);
    const Bytes data = numbered_bytes(4096);
    const FrameHeader header = frame_header(kind);
    Bytes headers(kMaxTransportHeader);
    headers.resize(build_transport(packet, headers));
    Icrc icrc = begin_icrc({}, header, headers.size() + data.size());
    icrc.add_transport(headers);
    icrc.add(data);
    const Bytes frame = frame_bytes({}, header, packet, data);
    std::uint32_t sent = 0;
    for (std::size_t i = 0; i < 4; ++i) {
      sent |= std::to_integer<std::uint32_t>(frame[frame.size() - 4 + i]) << (8 * i);
    }
    EXPECT_EQ(icrc.value(), sent);
    EXPECT_EQ(test::plain_icrc(frame, 14 + test::tunnel_length(kind)), sent);
  }
}

TEST(DscpMap, DefaultsAreSoundAndClassify) {
  const DscpMap map;
  EXPECT_TRUE(check_dscp_map(map).ok());
  EXPECT_EQ(trim_mark(map, 12), TrimMark::kTrimmed);
  EXPECT_EQ(trim_mark(map, 16), TrimMark::kTrimmedLastHop);
  for (const std::uint8_t dscp : {0, 4, 8, 46})
    EXPECT_EQ(trim_mark(map, dscp), TrimMark::kNone);
  for (std::uint8_t dscp = 0; dscp < 64; ++dscp) {
    EXPECT_EQ(may_trim(map, dscp), dscp == 4 || dscp == 8) << int{dscp};
  }
}

TEST(DscpMap, AmbiguousMarksAndLargeValuesAreRefused) {
  EXPECT_FALSE(check_dscp_map({.trimmed = 16}).ok());
  EXPECT_FALSE(check_dscp_map({.trimmed = 46}).ok());
  EXPECT_FALSE(check_dscp_map({.trimmed_last_hop = 0}).ok());
  EXPECT_FALSE(check_dscp_map({.control = 64}).ok());
  EXPECT_FALSE(check_dscp_map({.trimmed = 64}).ok());
  EXPECT_TRUE(check_dscp_map({.trimmable = 8}).ok()) << "classes may share a code point";
}

}  // namespace
}  // namespace mrc::wire
