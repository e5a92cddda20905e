#include <gtest/gtest.h>

#include "unit/wire/frame_samples.h"
#include "wire/codec.h"
#include "wire/frame.h"
#include "wire/ip_header.h"

namespace mrc::wire {
namespace {

using test::Bytes;
using test::Encapsulation;
using test::frame_bytes;
using test::frame_header;
using test::kAllEncapsulations;
using test::numbered_bytes;
using test::Random;
using test::random_packet;
using test::to_hex;

Packet write_packet(bool has_timestamp) {
  Packet packet;
  packet.bth.opcode = Opcode::kWriteMiddle;
  packet.bth.destination = QpNumber{0x1234};
  packet.bth.psn = Psn(0xFFFFFF);
  packet.bth.has_timestamp = has_timestamp;
  packet.body = Write{.receive_msn = 5, .msn = 6, .message_length = 9000};
  if (has_timestamp) std::get<Write>(packet.body).timestamp.ticks = 0x1234;
  return packet;
}

TEST(Trim, KeepsWhatANackNeedsAndTellsWhereItHappened) {
  for (const Encapsulation kind : kAllEncapsulations) {
    for (const bool has_timestamp : {true, false}) {
      for (const bool last_hop : {true, false}) {
        const Packet packet = write_packet(has_timestamp);
        const FrameHeader sent = frame_header(kind);
        Bytes frame = frame_bytes({}, sent, packet, numbered_bytes(4096));
        const std::size_t length = trim_frame({}, frame, last_hop);
        ASSERT_EQ(length, frame_overhead({}, sent) + trimmed_length(has_timestamp));
        frame.resize(length);

        FrameHeader header;
        Packet parsed;
        std::span<const std::byte> payload;
        ASSERT_EQ(parse_frame({}, frame, header, parsed, payload), DropReason::kNone);
        EXPECT_EQ(header.trim, last_hop ? TrimMark::kTrimmedLastHop : TrimMark::kTrimmed);
        EXPECT_EQ(header.dscp, last_hop ? 16 : 12);
        EXPECT_EQ(header.entropy, sent.entropy);
        EXPECT_EQ(header.source, sent.source);
        EXPECT_EQ(header.outer, sent.outer);
        EXPECT_EQ(parsed.bth, packet.bth);
        const auto& write = std::get<Write>(parsed.body);
        EXPECT_EQ(write.msn, 6);
        EXPECT_EQ(write.receive_msn, 5);
        EXPECT_EQ(write.timestamp.ticks, has_timestamp ? 0x1234 : 0);
        EXPECT_TRUE(payload.empty());
      }
    }
  }
}

TEST(Trim, LengthFieldsAgreeWithWhatIsLeft) {
  for (const Encapsulation kind : kAllEncapsulations) {
    Bytes frame = frame_bytes({}, frame_header(kind), write_packet(true), numbered_bytes(1000));
    frame.resize(trim_frame({}, frame, false));
    const auto bytes = std::span<const std::byte>(frame);
    const std::size_t inner = 14 + test::tunnel_length(kind);
    IpHeader ip;
    ASSERT_EQ(parse_ip_header(bytes.subspan(14), ip), DropReason::kNone) << "IPv4 checksum";
    EXPECT_EQ(14 + ip.length() + ip.payload_length, frame.size());
    ASSERT_EQ(parse_ip_header(bytes.subspan(inner), ip), DropReason::kNone);
    EXPECT_EQ(inner + ip.length() + ip.payload_length, frame.size());
    UdpHeader udp;
    ASSERT_EQ(parse_udp_header(bytes.subspan(inner + ip.length()), udp), DropReason::kNone);
    EXPECT_EQ(inner + ip.length() + udp.length, frame.size());
  }
}

TEST(Trim, InATunnelOnlyTheOuterCodePointChanges) {
  Bytes frame =
      frame_bytes({}, frame_header(Encapsulation::kSrv6), write_packet(false), numbered_bytes(64));
  frame.resize(trim_frame({}, frame, false));
  IpHeader outer;
  IpHeader inner;
  ASSERT_EQ(parse_ip_header(std::span(frame).subspan(14), outer), DropReason::kNone);
  ASSERT_EQ(parse_ip_header(std::span(frame).subspan(54), inner), DropReason::kNone);
  EXPECT_EQ(outer.dscp, DscpMap{}.trimmed);
  EXPECT_EQ(inner.dscp, DscpMap{}.trimmable);
  EXPECT_EQ(outer.ecn, Ecn::kEct0);
  EXPECT_EQ(outer.flow_label, 0xABCDu);
}

TEST(Trim, ASwitchThatLeavesTheLengthFieldsAloneIsUnderstood) {
  for (const Encapsulation kind : kAllEncapsulations) {
    const Packet packet = write_packet(true);
    FrameHeader sent = frame_header(kind);
    sent.dscp = DscpMap{}.trimmed;
    Bytes frame = frame_bytes({}, sent, packet, numbered_bytes(4096));
    const std::size_t kept = frame_overhead({}, sent) + trimmed_length(true);
    for (std::size_t length = 0; length < kept + 20; ++length) {
      const Bytes part(frame.begin(), frame.begin() + static_cast<std::ptrdiff_t>(length));
      FrameHeader header;
      Packet parsed;
      std::span<const std::byte> payload;
      const DropReason reason = parse_frame({}, part, header, parsed, payload);
      EXPECT_EQ(reason, length < kept ? DropReason::kTruncated : DropReason::kNone) << length;
      if (length < kept) continue;
      EXPECT_EQ(parsed.bth, packet.bth);
    }
  }
}

TEST(Trim, FramesThatMayNotBeTrimmedStayAsTheyAre) {
  const auto expect_untouched = [](Bytes frame) {
    const Bytes before = frame;
    EXPECT_EQ(trim_frame({}, frame, false), 0u);
    EXPECT_EQ(to_hex(frame), to_hex(before));
  };
  for (const Encapsulation kind : kAllEncapsulations) {
    FrameHeader header = frame_header(kind);
    for (const std::uint8_t dscp : {0, 12, 16, 46, 63}) {
      header.dscp = dscp;
      expect_untouched(frame_bytes({}, header, write_packet(true), numbered_bytes(64)));
    }
    header.dscp = DscpMap{}.trimmable_retx;
    Random random(1);
    expect_untouched(frame_bytes({}, header, random_packet(random, Opcode::kSack, 0), {}));
    Bytes cut = frame_bytes({}, header, write_packet(true), numbered_bytes(64));
    cut.resize(cut.size() - 1);
    expect_untouched(cut);
  }
  expect_untouched({});
}

TEST(Trim, TheSendersIpv4IdAndFlagsSurvive) {
  Bytes frame =
      frame_bytes({}, frame_header(Encapsulation::kIpv4), write_packet(true), numbered_bytes(64));
  frame[18] = std::byte{0x12};
  frame[19] = std::byte{0x34};
  frame[20] = std::byte{0};
  const std::uint16_t checksum = ipv4_checksum(std::span(frame).subspan(14, 20));
  frame[24] = static_cast<std::byte>(checksum >> 8);
  frame[25] = static_cast<std::byte>(checksum & 0xFF);
  frame.resize(trim_frame({}, frame, true));
  ASSERT_FALSE(frame.empty());
  EXPECT_EQ(to_hex(std::span(frame).subspan(18, 4)), "12340000");
}

TEST(Trim, AConfiguredCodePointIsUsed) {
  FrameFormat format;
  format.dscp = {.control = 1, .trimmed = 2, .trimmed_last_hop = 3, .trimmable = 5, .no_trim = 6};
  FrameHeader header = frame_header(Encapsulation::kIpv6);
  header.dscp = 5;
  Bytes frame = frame_bytes(format, header, write_packet(true), numbered_bytes(64));
  frame.resize(trim_frame(format, frame, true));
  FrameHeader parsed;
  Packet packet;
  std::span<const std::byte> payload;
  ASSERT_EQ(parse_frame(format, frame, parsed, packet, payload), DropReason::kNone);
  EXPECT_EQ(parsed.dscp, 3);
  EXPECT_EQ(parsed.trim, TrimMark::kTrimmedLastHop);
}

}  // namespace
}  // namespace mrc::wire
