// Names and texts of dialects, and what each choice does to bytes, written out by hand.
#include "wire/dialect.h"

#include <gtest/gtest.h>

#include <string>

#include "unit/wire/frame_samples.h"
#include "unit/wire/wire_samples.h"
#include "wire/codec.h"
#include "wire/frame.h"

namespace mrc::wire {
namespace {

using test::Bytes;
using test::hex;
using test::to_hex;

std::string text_of(const Dialect& dialect) { return std::string(dialect_text(dialect).view()); }

Bytes built(const Packet& packet, const Dialect& dialect) {
  Bytes bytes(header_length(packet));
  EXPECT_EQ(build_transport(packet, bytes, dialect), bytes.size());
  return bytes;
}

Packet packet_of(Opcode opcode, decltype(Packet::body) body) {
  Packet packet;
  packet.bth.opcode = opcode;
  packet.bth.destination = QpNumber{is_write(opcode) ? 0x123456U : 2U};
  packet.body = body;
  return packet;
}

// `length` bytes from `offset` on, as hex.
std::string at(const Bytes& bytes, std::size_t offset, std::size_t length) {
  return to_hex(std::span(bytes).subspan(offset, length));
}

Packet read_back(const Bytes& bytes, const Dialect& dialect) {
  Packet packet;
  std::span<const std::byte> payload;
  EXPECT_EQ(parse_transport(bytes, packet, payload, dialect), DropReason::kNone);
  return packet;
}

TEST(Dialect, HasTwoNames) {
  ASSERT_NE(find_dialect("openmrc"), nullptr);
  ASSERT_NE(find_dialect("card"), nullptr);
  EXPECT_EQ(*find_dialect("openmrc"), Dialect{});
  EXPECT_EQ(find_dialect("card")->processes, Processes::kByQueuePair);
  EXPECT_EQ(find_dialect("card")->window_units, 4);
  EXPECT_EQ(find_dialect("Card"), nullptr);
  EXPECT_EQ(dialect_name(kCard), "card");
  EXPECT_EQ(dialect_name({.first_msn = 1}), "");
}

TEST(Dialect, EveryValueOfEveryFieldSurvivesItsText) {
  for (const DialectField& field : dialect_fields()) {
    for (const DialectChoice& choice : field.choices) {
      Dialect dialect = kCard;
      field.set(dialect, choice.value);
      const DialectParse read = parse_dialect(dialect_text(dialect).view());
      ASSERT_TRUE(read.ok()) << read.error.view();
      EXPECT_EQ(read.dialect, dialect) << field.name;
      EXPECT_EQ(dialect_value(dialect, field).view(), choice.name);
    }
    if (!field.choices.empty()) continue;
    Dialect dialect;
    field.set(dialect, field.max);
    EXPECT_EQ(parse_dialect(dialect_text(dialect).view()).dialect, dialect) << field.name;
  }
}

TEST(Dialect, TextIsTheNearestNameAndWhatDiffers) {
  EXPECT_EQ(text_of(kOpenMrc), "openmrc");
  EXPECT_EQ(text_of(kCard), "card");
  Dialect dialect = kCard;
  dialect.first_rqmsn = 1;
  dialect.ev_order = EvOrder::kHighInPort;
  EXPECT_EQ(text_of(dialect), "card,first_rqmsn=1,ev_order=high_in_port");
}

TEST(Dialect, LongestTextFits) {
  Dialect dialect{.processes = Processes::kByQueuePair,
                  .first_msn = 65535,
                  .first_rqmsn = 65535,
                  .ack_msn = AckMsn::kLast,
                  .ev_order = EvOrder::kHighInPort,
                  .ev_label = EvLabel::kOuter,
                  .bth_order = BthOrder::kMigrationFirst,
                  .eeth_op = EethOp::kBits54,
                  .srv6_icrc = Srv6Icrc::kUnchecked,
                  .port_bit = 1,
                  .service_time = true,
                  .window_units = 255,
                  .unknown_nak = UnknownNak::kDrop};
  EXPECT_LT(dialect_text(dialect).length, DialectText{}.characters.size());
  EXPECT_EQ(parse_dialect(dialect_text(dialect).view()).dialect, dialect);
}

TEST(Dialect, RefusalNamesFieldValueAndRule) {
  const auto error = [](std::string_view text) {
    return std::string(parse_dialect(text).error.view());
  };
  EXPECT_EQ(error("carp"), "dialect is 'carp' but must begin with openmrc or card");
  EXPECT_EQ(error("card,port_bit=2"), "port_bit is '2' but must be a whole number from 0 to 1");
  EXPECT_EQ(error("card,ev_order=left"),
            "ev_order is 'left' but must be \"low_in_port\" or \"high_in_port\"");
  EXPECT_EQ(error("card,halves=1"), "no field of a dialect: 'halves=1'");
  EXPECT_EQ(error("card,"), "no field of a dialect: ''");
  EXPECT_EQ(error("card,first_msn"), "no field of a dialect: 'first_msn'");
  EXPECT_EQ(error("card,first_msn=65536"),
            "first_msn is '65536' but must be a whole number from 0 to 65535");
  EXPECT_FALSE(parse_dialect(std::string(4096, 'x')).ok());
  EXPECT_FALSE(parse_dialect("card,first_msn=" + std::string(4096, '9')).ok());
}

TEST(Dialect, ConflictIsTheFirstFieldBothMustShare) {
  EXPECT_EQ(first_conflict(kOpenMrc, kOpenMrc), nullptr);
  Dialect own_choices = kOpenMrc;
  own_choices.window_units = 4;
  own_choices.service_time = false;
  own_choices.unknown_nak = UnknownNak::kAct;
  EXPECT_EQ(first_conflict(kOpenMrc, own_choices), nullptr);
  ASSERT_NE(first_conflict(kOpenMrc, kCard), nullptr);
  EXPECT_EQ(first_conflict(kOpenMrc, kCard)->name, "processes");
  Dialect later = kOpenMrc;
  later.port_bit = 1;
  EXPECT_EQ(first_conflict(kOpenMrc, later)->name, "port_bit");
}

TEST(DialectBytes, MessageNumbersBeginWhereItSays) {
  const Dialect dialect{.first_msn = 1, .first_rqmsn = 0xFFFF};
  const Packet packet =
      packet_of(Opcode::kWriteOnlyImm, Write{.receive_msn = 2, .msn = 5, .immediate = 9});
  const Bytes bytes = built(packet, dialect);
  EXPECT_EQ(at(bytes, 12, 4), "00010006");
  EXPECT_EQ(read_back(bytes, dialect), packet);
  EXPECT_EQ(std::get<Write>(read_back(bytes, kOpenMrc).body).msn, 6);
}

TEST(DialectBytes, TrimmedWritesCountAlike) {
  const Dialect dialect{.first_msn = 7, .first_rqmsn = 1};
  const Packet packet = packet_of(Opcode::kWriteOnly, Write{.receive_msn = 3, .msn = 0xFFFF});
  Packet read;
  const Bytes bytes = built(packet, dialect);
  ASSERT_EQ(parse_trimmed_transport(bytes, read, dialect), DropReason::kNone);
  EXPECT_EQ(std::get<Write>(read.body).msn, 0xFFFF);
  EXPECT_EQ(std::get<Write>(read.body).receive_msn, 3);
}

TEST(DialectBytes, AcknowledgementNamesTheLastMessageOrTheNext) {
  const Packet packet = packet_of(Opcode::kAck, Ack{.syndrome = kSyndromeAck, .msn = 1});
  const Dialect last{.ack_msn = AckMsn::kLast};
  const Dialect from_one{.first_msn = 1, .ack_msn = AckMsn::kNext};
  EXPECT_EQ(at(built(packet, kOpenMrc), 12, 4), "1f000001");
  EXPECT_EQ(at(built(packet, last), 12, 4), "1f000000");
  EXPECT_EQ(at(built(packet, from_one), 12, 4), "1f000002");
  for (const Dialect& dialect : {kOpenMrc, last, from_one})
    EXPECT_EQ(read_back(built(packet, dialect), dialect), packet);
  // None complete, as the number before the first.
  const Packet none = packet_of(Opcode::kAck, Ack{.syndrome = kSyndromeAck, .msn = 0});
  EXPECT_EQ(at(built(none, last), 12, 4), "1fffffff");
  EXPECT_EQ(read_back(built(none, last), last), none);
}

TEST(DialectBytes, HalvesOfAnEchoedEvChangePlaces) {
  const Dialect dialect{.ev_order = EvOrder::kHighInPort};
  const Packet sack = packet_of(Opcode::kSack, Sack{.entropy = 0x1234ABCD});
  const Packet nack = packet_of(Opcode::kNack, Nack{.entropy = 0x1234ABCD});
  for (const Packet& packet : {sack, nack}) {
    EXPECT_EQ(at(built(packet, kOpenMrc), 16, 4), "1234abcd");
    EXPECT_EQ(at(built(packet, dialect), 16, 4), "abcd1234");
    EXPECT_EQ(read_back(built(packet, dialect), dialect), packet);
  }
}

TEST(DialectBytes, SolicitedAndMigrationChangePlaces) {
  const Dialect dialect{.bth_order = BthOrder::kMigrationFirst};
  Packet packet = packet_of(Opcode::kWriteOnly, Write{});
  packet.bth.solicited = true;
  EXPECT_EQ(at(built(packet, kOpenMrc), 1, 1), "80");
  EXPECT_EQ(at(built(packet, dialect), 1, 1), "40");
  EXPECT_EQ(read_back(built(packet, dialect), dialect), packet);
  packet.bth.solicited = false;
  packet.bth.migration = true;
  EXPECT_EQ(at(built(packet, dialect), 1, 1), "80");
  EXPECT_EQ(read_back(built(packet, dialect), dialect), packet);
}

TEST(DialectBytes, OpOfAResponseMoves) {
  const Dialect dialect{.eeth_op = EethOp::kBits54};
  const Packet packet =
      packet_of(Opcode::kEndpointResponse, EndpointResponse{.op = EndpointOp::kEvProbe});
  EXPECT_EQ(at(built(packet, kOpenMrc), 12, 2), "0004");
  EXPECT_EQ(at(built(packet, dialect), 12, 2), "0010");
  EXPECT_EQ(read_back(built(packet, dialect), dialect), packet);
}

TEST(DialectBytes, PortMaskBeginsAtItsBit) {
  const Dialect dialect{.port_bit = 1};
  const Packet packet = packet_of(Opcode::kEndpointRequest, EndpointRequest{.port_status = 0b1101});
  EXPECT_EQ(at(built(packet, kOpenMrc), 16, 4), "0000000d");
  EXPECT_EQ(at(built(packet, dialect), 16, 4), "0000001a");
  EXPECT_EQ(read_back(built(packet, dialect), dialect), packet);
}

TEST(DialectBytes, UnknownRefusalsAreHeardWhereItSays) {
  const Dialect acts{.unknown_nak = UnknownNak::kAct};
  Packet read;
  std::span<const std::byte> payload;
  Bytes nack = built(packet_of(Opcode::kNack, Nack{}), kOpenMrc);
  nack[14] = std::byte{0x42};
  EXPECT_EQ(parse_transport(nack, read, payload), DropReason::kBadHeaderField);
  ASSERT_EQ(parse_transport(nack, read, payload, acts), DropReason::kNone);
  EXPECT_EQ(std::get<Nack>(read.body).reason, NackReason::kNoResource);
  Bytes nak = built(packet_of(Opcode::kAck, Ack{.syndrome = 0x7E, .msn = 1}), kOpenMrc);
  ASSERT_EQ(parse_transport(nak, read, payload), DropReason::kNone);
  EXPECT_EQ(std::get<Ack>(read.body).syndrome, 0x7E);
  ASSERT_EQ(parse_transport(nak, read, payload, acts), DropReason::kNone);
  EXPECT_EQ(std::get<Ack>(read.body).syndrome, kSyndromeNakRemoteOperation);
  // Those that are known stay what they are, and credits stay refused.
  for (const std::uint8_t known : {0x61, 0x62, 0x63, 0x65, 0x66}) {
    nak[12] = std::byte{known};
    ASSERT_EQ(parse_transport(nak, read, payload, acts), DropReason::kNone);
    EXPECT_EQ(std::get<Ack>(read.body).syndrome, known);
  }
  nak[12] = std::byte{0x05};
  EXPECT_EQ(parse_transport(nak, read, payload, acts), DropReason::kBadHeaderField);
}

TEST(DialectBytes, AnyPacketSurvivesAnyDialect) {
  test::Random random(7);
  for (int round = 0; round < 2'000; ++round) {
    Dialect dialect;
    for (const DialectField& field : dialect_fields()) {
      const auto count = static_cast<std::uint64_t>(
          field.choices.empty() ? field.max - field.min + 1 : field.choices.size());
      const auto pick = random() % count;
      field.set(dialect, field.choices.empty() ? static_cast<std::uint16_t>(field.min + pick)
                                               : field.choices[pick].value);
    }
    for (const Opcode opcode : test::kAllOpcodes) {
      if (is_write(opcode) && !(starts_message(opcode) && ends_message(opcode))) continue;
      Packet packet = test::random_packet(random, opcode, 0);
      if (auto* request = std::get_if<EndpointRequest>(&packet.body)) {
        request->port_status &= 0xFFFF;
      }
      ASSERT_EQ(read_back(built(packet, dialect), dialect), packet) << text_of(dialect);
    }
  }
}

// --- Frames ---

FrameFormat format_with(Srv6Icrc icrc, EvLabel label = EvLabel::kInner) {
  FrameFormat format;
  format.dialect.srv6_icrc = icrc;
  format.dialect.ev_label = label;
  return format;
}

DropReason read_frame(const FrameFormat& format, const Bytes& frame, FrameHeader& header) {
  Packet packet;
  std::span<const std::byte> payload;
  return parse_frame(format, frame, header, packet, payload);
}

TEST(DialectFrames, IcrcOfATunnelStartsWhereItSays) {
  const Packet packet = packet_of(Opcode::kWriteOnly, Write{});
  FrameHeader read;
  for (const auto kind : {test::Encapsulation::kSrv6, test::Encapsulation::kSrv6WithSegment}) {
    const FrameHeader header = test::frame_header(kind);
    const Bytes inner = test::frame_bytes(format_with(Srv6Icrc::kInner), header, packet, {});
    Bytes outer = test::frame_bytes(format_with(Srv6Icrc::kOuter), header, packet, {});
    EXPECT_EQ(read_frame(format_with(Srv6Icrc::kInner), inner, read), DropReason::kNone);
    EXPECT_EQ(read_frame(format_with(Srv6Icrc::kInner), outer, read), DropReason::kBadIcrc);
    EXPECT_EQ(read_frame(format_with(Srv6Icrc::kOuter), inner, read), DropReason::kBadIcrc);
    EXPECT_EQ(read_frame(format_with(Srv6Icrc::kOuter), outer, read), DropReason::kNone);
    EXPECT_EQ(read_frame(format_with(Srv6Icrc::kUnchecked), outer, read), DropReason::kNone);
    // The path is used up on the way; the source is not.
    outer[kEthernetHeaderLength + 39] ^= std::byte{1};
    EXPECT_EQ(read_frame(format_with(Srv6Icrc::kOuter), outer, read), DropReason::kNone);
    outer[kEthernetHeaderLength + 23] ^= std::byte{1};
    EXPECT_EQ(read_frame(format_with(Srv6Icrc::kOuter), outer, read), DropReason::kBadIcrc);
  }
}

TEST(DialectCode, CarriesWhatBothEndsMustHaveAlike) {
  for (const char* text :
       {"openmrc", "card", "card,first_msn=65535,first_rqmsn=1,ack_msn=last,ev_order=high_in_port",
        "openmrc,bth_order=migration_first,eeth_op=bits_5_4,srv6_icrc=unchecked,port_bit=1",
        "openmrc,ev_label=outer,first_rqmsn=65535"}) {
    const Dialect dialect = parse_dialect(text).dialect;
    const std::uint64_t code = dialect_code(dialect);
    EXPECT_NE(code, 0U);
    const std::optional<Dialect> back = dialect_of_code(code);
    ASSERT_TRUE(back.has_value()) << text;
    EXPECT_EQ(first_conflict(dialect, *back), nullptr) << text;
    EXPECT_EQ(dialect_code(*back), code);
  }
}

TEST(DialectCode, NumbersThatAreNoCodesAreRefused) {
  const std::uint64_t code = dialect_code(kOpenMrc);
  EXPECT_FALSE(dialect_of_code(0).has_value());
  EXPECT_FALSE(dialect_of_code(code ^ (std::uint64_t{3} << 60)).has_value()) << "another version";
  EXPECT_FALSE(dialect_of_code(code | std::uint64_t{1} << 59).has_value()) << "an unknown field";
  EXPECT_FALSE(dialect_of_code(code | 3).has_value()) << "no such way to find a process";
}

TEST(DialectFrames, WithoutATunnelTheIcrcIsAlwaysChecked) {
  const Packet packet = packet_of(Opcode::kWriteOnly, Write{});
  FrameHeader read;
  for (const auto kind : {test::Encapsulation::kIpv4, test::Encapsulation::kIpv6}) {
    Bytes frame = test::frame_bytes({}, test::frame_header(kind), packet, {});
    for (const Srv6Icrc icrc : {Srv6Icrc::kInner, Srv6Icrc::kOuter, Srv6Icrc::kUnchecked})
      EXPECT_EQ(read_frame(format_with(icrc), frame, read), DropReason::kNone);
    frame.back() ^= std::byte{1};
    EXPECT_EQ(read_frame(format_with(Srv6Icrc::kUnchecked), frame, read), DropReason::kBadIcrc);
  }
}

TEST(DialectFrames, LabelIsReadWhereItSays) {
  const Packet packet = packet_of(Opcode::kWriteOnly, Write{});
  Bytes frame = test::frame_bytes({}, test::frame_header(test::Encapsulation::kSrv6), packet, {});
  frame[kEthernetHeaderLength + 3] ^= std::byte{0x0F};  // low byte of the outer label
  FrameHeader read;
  ASSERT_EQ(read_frame(format_with(Srv6Icrc::kInner), frame, read), DropReason::kNone);
  EXPECT_EQ(read.entropy, 0xABCDC001);
  ASSERT_EQ(read_frame(format_with(Srv6Icrc::kInner, EvLabel::kOuter), frame, read),
            DropReason::kNone);
  EXPECT_EQ(read.entropy, 0xABC2C001);
}

}  // namespace
}  // namespace mrc::wire
