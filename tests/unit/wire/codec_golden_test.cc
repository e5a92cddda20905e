// One packet of each type, written out by hand from the tables of docs/wire.md, in both directions.
#include <gtest/gtest.h>

#include "unit/wire/wire_samples.h"
#include "wire/codec.h"

namespace mrc::wire {
namespace {

using test::Bytes;
using test::hex;
using test::to_hex;

// Builds `packet` and compares with `headers`, then parses `headers` + `payload` + `padding`.
void expect_golden(const Packet& packet, std::string_view headers, std::string_view payload = "",
                   std::string_view padding = "") {
  const Bytes expected = hex(headers);
  EXPECT_EQ(header_length(packet), expected.size());
  Bytes built(expected.size());
  ASSERT_EQ(build_transport(packet, built), expected.size());
  EXPECT_EQ(to_hex(built), to_hex(expected));

  Bytes wire = expected;
  for (const std::byte b : hex(payload))
    wire.push_back(b);
  for (const std::byte b : hex(padding))
    wire.push_back(b);
  Packet parsed;
  std::span<const std::byte> data;
  ASSERT_EQ(parse_transport(wire, parsed, data), DropReason::kNone);
  EXPECT_EQ(parsed, packet);
  EXPECT_EQ(to_hex(data), to_hex(hex(payload)));
}

Bth bth_of(Opcode opcode, std::uint32_t destination, std::uint32_t psn) {
  Bth bth;
  bth.opcode = opcode;
  bth.destination = QpNumber{destination};
  bth.psn = Psn(psn);
  return bth;
}

TEST(CodecGolden, WriteFirstWithTimestampAndAckRequest) {
  Packet packet{.bth = bth_of(Opcode::kWriteFirst, 0x123456, 0xFFFFFE), .body = {}};
  packet.bth.ack_request = true;
  packet.bth.has_timestamp = true;
  packet.body = Write{.receive_msn = 7,
                      .msn = 0x0102,
                      .timestamp = {.ticks = 0xABCD, .microseconds = false},
                      .address = 0x1122334455667788,
                      .key = Rkey{0xCAFEBABE},
                      .message_length = 0x3000,
                      .immediate = 0};
  expect_golden(packet,
                "c6 00 ffff 00 123456 90 fffffe | 0007 0102 | abcd 0001 |"
                "1122334455667788 cafebabe 00003000",
                "deadbeef 01020304");
}

TEST(CodecGolden, WriteMiddleWithoutTimestampAndRetransmitted) {
  Packet packet{.bth = bth_of(Opcode::kWriteMiddle, 0x000003, 0x000000), .body = {}};
  packet.bth.retransmission = true;
  packet.bth.partition_key = 0x8001;
  packet.body = Write{.receive_msn = 0,
                      .msn = 0xFFFF,
                      .timestamp = {},
                      .address = 0x1122334455668788,
                      .key = Rkey{0x00000001},
                      .message_length = 0x3000,
                      .immediate = 0};
  expect_golden(packet,
                "c7 00 8001 00 000003 20 000000 | 0000 ffff | 1122334455668788 00000001 00003000",
                "00010203");
}

TEST(CodecGolden, WriteLastWithPadding) {
  Packet packet{.bth = bth_of(Opcode::kWriteLast, 0xFFFFFF, 0x000001), .body = {}};
  packet.bth.pad = 3;
  packet.bth.migration = true;
  packet.body = Write{.receive_msn = 1,
                      .msn = 2,
                      .timestamp = {},
                      .address = 0xFFFFFFFFFFFFFFFF,
                      .key = Rkey{0x80000000},
                      .message_length = 0x00002001,
                      .immediate = 0};
  expect_golden(packet,
                "c8 70 ffff 00 ffffff 00 000001 | 0001 0002 | ffffffffffffffff 80000000 00002001",
                "5a", "000000");
}

TEST(CodecGolden, WriteLastWithImmediateAndMicrosecondTimestamp) {
  Packet packet{.bth = bth_of(Opcode::kWriteLastImm, 0x00ABCD, 0x7FFFFF), .body = {}};
  packet.bth.solicited = true;
  packet.bth.has_timestamp = true;
  packet.bth.retransmission = true;
  packet.bth.ack_request = true;
  packet.body = Write{.receive_msn = 0x8000,
                      .msn = 0x0001,
                      .timestamp = {.ticks = 0x0001, .microseconds = true},
                      .address = 0,
                      .key = Rkey{0x12345678},
                      .message_length = 0xFFFFFFFF,
                      .immediate = 0xA1B2C3D4};
  expect_golden(packet,
                "c9 80 ffff 00 00abcd b0 7fffff | 8000 0001 | 0001 8001 |"
                "0000000000000000 12345678 ffffffff | a1b2c3d4",
                "ffeeddcc");
}

TEST(CodecGolden, WriteOnlyOfNothing) {
  Packet packet{.bth = bth_of(Opcode::kWriteOnly, 0x000100, 0x800000), .body = {}};
  packet.body = Write{.receive_msn = 0,
                      .msn = 3,
                      .timestamp = {},
                      .address = 0x00007F0000001000,
                      .key = Rkey{0x55AA55AA},
                      .message_length = 0,
                      .immediate = 0};
  expect_golden(packet,
                "ca 00 ffff 00 000100 00 800000 | 0000 0003 | 00007f0000001000 55aa55aa 00000000");
}

TEST(CodecGolden, WriteOnlyWithImmediateAndTwoPadBytes) {
  Packet packet{.bth = bth_of(Opcode::kWriteOnlyImm, 0x000100, 0x800001), .body = {}};
  packet.bth.pad = 2;
  packet.body = Write{.receive_msn = 0x0009,
                      .msn = 0x0004,
                      .timestamp = {},
                      .address = 0x0123456789ABCDEF,
                      .key = Rkey{0xFEDCBA98},
                      .message_length = 6,
                      .immediate = 1};
  expect_golden(packet,
                "cb 20 ffff 00 000100 00 800001 | 0009 0004 |"
                "0123456789abcdef fedcba98 00000006 | 00000001",
                "010203040506", "0000");
}

TEST(CodecGolden, TransportAckAndNak) {
  Packet packet{.bth = bth_of(Opcode::kAck, 0x000042, 0x000010), .body = {}};
  packet.body = Ack{.syndrome = kSyndromeAck, .msn = 0x000203};
  expect_golden(packet, "d1 00 ffff 00 000042 00 000010 | 1f 000203");
  packet.body = Ack{.syndrome = kSyndromeNakRemoteAccess, .msn = 0xFFFFFF};
  expect_golden(packet, "d1 00 ffff 00 000042 00 000010 | 62 ffffff");
}

TEST(CodecGolden, SackThatAnswersAProbeOnAMarkedPath) {
  Packet packet{.bth = bth_of(Opcode::kSack, 0x00ABCD, 0x000010), .body = {}};
  packet.body = Sack{.mark = PathMark::kSkipOnce,
                     .probe_answer = true,
                     .offset_or_probe_id = 0x1234,
                     .entropy = 0x89ABCDEF,
                     .source_context = 0x1111,
                     .destination_context = 0x2222,
                     .cumulative = Psn(0x000010),
                     .cc_type = 0,
                     .cc_flags = 5,
                     .window_units = 8,
                     .bitmap_offset = -2,
                     .bitmap = 0x8000000000000001,
                     .timestamp_ticks = 0x4321,
                     .out_of_order_count = 0x7FFF,
                     .restore_window = true,
                     .window_penalty = 64,
                     .received_units = 0x00ABCD};
  expect_golden(packet,
                "dc 00 ffff 00 00abcd 00 000010 | 0022 1234 89abcdef 1111 2222 00 000010 |"
                "05 08 fffe 8000000000000001 | 4321 7fff c0 00abcd");
}

TEST(CodecGolden, SackWithNegativeTriggerOffset) {
  Packet packet{.bth = bth_of(Opcode::kSack, 3, 0xFFFFFF), .body = {}};
  Sack sack;
  sack.mark = PathMark::kAlwaysSkip;
  sack.offset_or_probe_id = 0xFFF0;
  sack.cumulative = Psn(0xFFFFFF);
  sack.bitmap_offset = 1;
  sack.window_penalty = 127;
  packet.body = sack;
  EXPECT_EQ(sack.trigger_offset(), -16);
  expect_golden(packet,
                "dc 00 ffff 00 000003 00 ffffff | 0040 fff0 00000000 0000 0000 00 ffffff |"
                "00 00 0001 0000000000000000 | 0000 0000 7f 000000");
}

TEST(CodecGolden, Nack) {
  Packet packet{.bth = bth_of(Opcode::kNack, 0x00ABCD, 0x123456), .body = {}};
  packet.body = Nack{.reason = NackReason::kPsnOutOfWindow,
                     .vendor_info = 0x99,
                     .entropy = 0x01020304,
                     .source_context = 0xAAAA,
                     .destination_context = 0xBBBB,
                     .psn = Psn(0x123456),
                     .cc_type = 2,
                     .cc_flags = 1,
                     .timestamp_ticks = 0x7788};
  expect_golden(packet,
                "dd 00 ffff 00 00abcd 00 123456 |"
                "0000 0b 99 01020304 aaaa bbbb 00 123456 21 00 7788");
}

TEST(CodecGolden, ReliabilityProbe) {
  Packet packet{.bth = bth_of(Opcode::kProbe, 0x000777, 0), .body = {}};
  packet.body = Probe{.vendor_info = 0x42,
                      .probe_id = 0xBEEF,
                      .source_context = 0x0003,
                      .destination_context = 0x0777,
                      .timestamp = {.ticks = 0x1020, .microseconds = true}};
  expect_golden(packet,
                "de 00 ffff 00 000777 00 000000 | 0000 00 42 beef 0000 0003 0777 1020 8001");
}

TEST(CodecGolden, EndpointRequests) {
  Packet packet{.bth = bth_of(Opcode::kEndpointRequest, 2, 0x001234), .body = {}};
  packet.body = EndpointRequest{.op = EndpointOp::kPortStatusUpdate,
                                .vendor_info = 0,
                                .port_status = 0x000000FB,
                                .timestamp = {.ticks = 0xFFFF, .microseconds = false}};
  expect_golden(packet, "d8 00 ffff 00 000002 00 001234 | 0000 00 00 000000fb 00000000 ffff 0001");
  packet.body = EndpointRequest{.op = EndpointOp::kEvProbe,
                                .vendor_info = 1,
                                .port_status = 0,
                                .timestamp = {.ticks = 0x0102, .microseconds = true}};
  expect_golden(packet, "d8 00 ffff 00 000002 00 001234 | 0001 00 01 00000000 00000000 0102 8001");
}

TEST(CodecGolden, EndpointResponses) {
  Packet packet{.bth = bth_of(Opcode::kEndpointResponse, 2, 0x00FFFF), .body = {}};
  packet.body = EndpointResponse{.op = EndpointOp::kEvProbe, .timestamp_ticks = 0xA55A};
  expect_golden(packet,
                "d9 00 ffff 00 000002 00 00ffff | 0004 0000"
                "000000000000000000000000 000000000000000000000000 a55a 000000000000");
  packet.body = EndpointResponse{.op = EndpointOp::kPortStatusUpdate, .timestamp_ticks = 1};
  expect_golden(packet,
                "d9 00 ffff 00 000002 00 00ffff | 0000 0000"
                "000000000000000000000000 000000000000000000000000 0001 000000000000");
}

TEST(CodecGolden, ControlPacketsHaveTheirKnownUdpPayloadLength) {
  const auto udp_payload = [](Opcode opcode) {
    Packet packet;
    packet.bth.opcode = opcode;
    return header_length(packet) + kIcrcLength;
  };
  EXPECT_EQ(udp_payload(Opcode::kSack), 52u);
  EXPECT_EQ(udp_payload(Opcode::kNack), 36u);
  EXPECT_EQ(udp_payload(Opcode::kProbe), 32u);
  EXPECT_EQ(udp_payload(Opcode::kEndpointRequest), 32u);
  EXPECT_EQ(udp_payload(Opcode::kEndpointResponse), 52u);
  EXPECT_EQ(udp_payload(Opcode::kAck), 20u);
}

TEST(CodecGolden, ReservedBitsAreIgnoredOnReceive) {
  // The NACK above with every bit set that no field owns, and takes_header_check not.
  const Bytes wire =
      hex("dd 00 ffff ff 00abcd 5e 123456 |"
          "ffff 0b 99 01020304 aaaa bbbb ff 123456 21 ff 7788");
  Packet packet;
  std::span<const std::byte> payload;
  ASSERT_EQ(parse_transport(wire, packet, payload), DropReason::kNone);
  EXPECT_FALSE(packet.bth.has_timestamp);
  EXPECT_FALSE(packet.bth.retransmission);
  const auto& nack = std::get<Nack>(packet.body);
  EXPECT_EQ(nack.psn, Psn(0x123456));
  EXPECT_EQ(nack.timestamp_ticks, 0x7788);
  Bytes built(header_length(packet));
  ASSERT_EQ(build_transport(packet, built), built.size());
  EXPECT_EQ(to_hex(built), to_hex(hex("dd 00 ffff 00 00abcd 00 123456"
                                      "0000 0b 99 01020304 aaaa bbbb 00 123456 21 00 7788")));
}

}  // namespace
}  // namespace mrc::wire
