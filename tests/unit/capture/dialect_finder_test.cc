// Captures made in every dialect that matters, and what is found in them.
#include "capture/dialect_finder.h"

#include <gtest/gtest.h>

#include <random>

#include "conversation.h"

namespace mrc::capture::test {
namespace {

DialectFinder find(std::span<const std::byte> file) {
  DialectFinder finder;
  CapturedFrame frame;
  for (CaptureFile survey(file); survey.next(frame);)
    finder.survey(frame);
  for (CaptureFile study(file); study.next(frame);)
    finder.study(frame);
  return finder;
}

Bytes file_of(const std::vector<Bytes>& frames, std::size_t captured = SIZE_MAX) {
  PcapngText text;
  for (const Bytes& frame : frames)
    text.add(frame, captured);
  return text.bytes;
}

Finding finding(const DialectFinder& finder, std::string_view field) {
  for (const Finding& each : finder.findings()) {
    if (each.field->name == field) return each;
  }
  ADD_FAILURE() << "no field " << field;
  return {};
}

// Fields that this conversation shows, each as the dialect has it.
void expect_found(const DialectFinder& finder, const wire::Dialect& dialect,
                  std::initializer_list<std::string_view> open) {
  for (const Finding& each : finder.findings()) {
    const bool may_be_open = std::find(open.begin(), open.end(), each.field->name) != open.end();
    const auto name =
        std::string(each.field->name) + " of " + std::string(wire::dialect_text(dialect).view());
    EXPECT_EQ(each.verdict, may_be_open ? Verdict::kOpen : Verdict::kFound) << name << each.note;
    if (each.verdict != Verdict::kFound) continue;
    EXPECT_EQ(each.value, wire::dialect_value(dialect, *each.field).view()) << name;
    EXPECT_GT(each.evidence[0].packets, 0U);
  }
}

TEST(DialectFinder, FindsEveryValueOfEveryFieldOverIpv6) {
  for (const wire::DialectField& field : wire::dialect_fields()) {
    std::vector<std::uint16_t> values;
    for (const wire::DialectChoice& choice : field.choices)
      values.push_back(choice.value);
    if (values.empty()) values = {field.min, static_cast<std::uint16_t>(field.min + 1)};
    for (const std::uint16_t value : values) {
      wire::Dialect dialect;
      field.set(dialect, value);
      Conversation conversation(dialect, Carriage::kIpv6);
      conversation.talk();
      expect_found(find(file_of(conversation.frames)), dialect,
                   {"ev_label", "srv6_icrc", "window", "unknown_nak"});
    }
  }
}

TEST(DialectFinder, FindsAnyCombinationOnAnyCarriage) {
  std::mt19937 random(3);
  for (int round = 0; round < 300; ++round) {
    wire::Dialect dialect;
    for (const wire::DialectField& field : wire::dialect_fields()) {
      if (field.choices.empty()) {
        field.set(dialect, static_cast<std::uint16_t>(
                               field.min + random() % std::min(4, field.max - field.min + 1)));
      } else {
        field.set(dialect, field.choices[random() % field.choices.size()].value);
      }
    }
    if (dialect.srv6_icrc == wire::Srv6Icrc::kUnchecked) dialect.srv6_icrc = {};
    const auto carriage = static_cast<Carriage>(random() % 3);
    Conversation conversation(dialect, carriage);
    conversation.outer_label_differs = carriage == Carriage::kTunnel;
    conversation.talk();
    const DialectFinder finder = find(file_of(conversation.frames));
    if (carriage == Carriage::kTunnel) {
      expect_found(finder, dialect, {"window", "unknown_nak"});
    } else {
      expect_found(finder, dialect, {"ev_label", "srv6_icrc", "window", "unknown_nak"});
    }
    EXPECT_EQ(finder.traffic().mrc, conversation.frames.size());
    EXPECT_EQ(finder.traffic().verified, conversation.frames.size());
  }
}

TEST(DialectFinder, FindsTheUdpPort) {
  Conversation conversation(wire::kCard, Carriage::kIpv4);
  conversation.udp_port = 4971;
  conversation.talk();
  EXPECT_EQ(find(file_of(conversation.frames)).udp_port(), 4971);
}

TEST(DialectFinder, OtherTrafficChangesNothing) {
  Conversation conversation(wire::kCard, Carriage::kIpv4);
  conversation.talk();
  std::vector<Bytes> frames = noise();
  const std::size_t others = frames.size();
  for (std::size_t i = 0; i < conversation.frames.size(); ++i) {
    const std::size_t place = std::min(2 * i, frames.size());
    frames.insert(frames.begin() + static_cast<std::ptrdiff_t>(place), conversation.frames[i]);
  }
  const DialectFinder finder = find(file_of(frames));
  expect_found(finder, wire::kCard, {"ev_label", "srv6_icrc", "window", "unknown_nak"});
  EXPECT_EQ(finder.traffic().other, others);
  EXPECT_EQ(finder.traffic().udp_ports.size(), 1U);
}

TEST(DialectFinder, NoiseAloneTellsNothing) {
  const DialectFinder finder = find(file_of(noise()));
  EXPECT_EQ(finder.traffic().mrc, 0U);
  EXPECT_FALSE(finder.udp_port().has_value());
  for (const Finding& each : finder.findings()) {
    EXPECT_EQ(each.verdict, Verdict::kOpen) << each.field->name;
    EXPECT_FALSE(each.note.empty());
  }
}

TEST(DialectFinder, TwoDialectsContradictEachOther) {
  wire::Dialect other = wire::kCard;
  other.ev_order = wire::EvOrder::kHighInPort;
  Conversation first(wire::kCard, Carriage::kIpv6);
  Conversation second(other, Carriage::kIpv6);
  first.message(0x100, 5'000, 0, 0, true);
  second.message(0x200, 9'000, 0, 0, true);
  first.frames.insert(first.frames.end(), second.frames.begin(), second.frames.end());
  const Finding order = finding(find(file_of(first.frames)), "ev_order");
  EXPECT_EQ(order.verdict, Verdict::kContradicted);
  ASSERT_EQ(order.evidence.size(), 2U);
  EXPECT_EQ(order.evidence[0].packets, 1U);
  EXPECT_EQ(order.evidence[1].packets, 1U);
}

TEST(DialectFinder, FramesCutByTheCaptureStillTell) {
  Conversation conversation(wire::kCard, Carriage::kIpv6);
  conversation.talk();
  const DialectFinder finder = find(file_of(conversation.frames, 14 + 40 + 8 + 44));
  EXPECT_EQ(finder.traffic().mrc, conversation.frames.size());
  EXPECT_GT(finder.traffic().unverified, 0U);
  EXPECT_EQ(finding(finder, "ev_order").value, "low_in_port");
  EXPECT_EQ(finding(finder, "first_msn").value, "0");
}

TEST(DialectFinder, ACaptureFromTheMiddleSaysNothingOfBeginnings) {
  Conversation conversation(wire::kCard, Carriage::kIpv6);
  for (std::uint16_t i = 0; i < 20; ++i)
    conversation.message(0x100, 7'000U + i, static_cast<std::uint16_t>(500 + i), 90, false);
  const DialectFinder finder = find(file_of(conversation.frames));
  EXPECT_EQ(finding(finder, "first_msn").verdict, Verdict::kOpen);
  EXPECT_EQ(finding(finder, "first_rqmsn").verdict, Verdict::kOpen);
  EXPECT_EQ(finding(finder, "ack_msn").value, "next");
}

// Each plane has addresses of its own, and the second message of a connection may be the first on
// its plane.
TEST(DialectFinder, AConnectionOverSeveralPlanesBeginsOnce) {
  Conversation conversation(wire::kCard, Carriage::kIpv4);
  for (std::uint16_t i = 0; i < 8; ++i) {
    conversation.plane = i % 2;
    conversation.message(0x100, 7'000U + i, i, i, true);
  }
  const DialectFinder finder = find(file_of(conversation.frames));
  EXPECT_EQ(finding(finder, "first_msn").value, "0");
  EXPECT_EQ(finding(finder, "first_rqmsn").value, "0");
  EXPECT_EQ(finding(finder, "first_msn").evidence[0].packets, 1U);
}

TEST(DialectFinder, UnknownRefusalsAndWindowsAreSeen) {
  Conversation conversation(wire::kCard, Carriage::kIpv4);
  conversation.window_units = 4;
  conversation.talk();
  wire::Packet nak = Conversation::packet(wire::Opcode::kAck, 0x77, 1);
  nak.body = wire::Ack{.syndrome = 0x6A};
  conversation.send(nak, 0xD000, false);
  const DialectFinder finder = find(file_of(conversation.frames));
  EXPECT_EQ(finding(finder, "unknown_nak").value, "act");
  EXPECT_EQ(finding(finder, "window").value, "4");
  EXPECT_EQ(finder.traffic().nak_codes.at(0x6A), 1U);
}

TEST(DialectFinder, ATunnelWithAnUnknownIcrcIsSaidToBeOne) {
  Conversation conversation(wire::kCard, Carriage::kTunnel);
  conversation.talk();
  for (Bytes& frame : conversation.frames)
    frame.back() ^= std::byte{0x55};
  const DialectFinder finder = find(file_of(conversation.frames));
  const Finding icrc = finding(finder, "srv6_icrc");
  EXPECT_EQ(icrc.verdict, Verdict::kOpen);
  EXPECT_NE(icrc.note.find("no rule we know"), std::string::npos) << icrc.note;
  EXPECT_EQ(finding(finder, "ev_order").value, "low_in_port");
}

TEST(DialectFinder, PacketsDamagedOnTheWayDoNotCount) {
  wire::Dialect other = wire::kCard;
  other.ack_msn = wire::AckMsn::kLast;
  Conversation good(wire::kCard, Carriage::kIpv4);
  Conversation bad(other, Carriage::kIpv4);
  good.talk();
  bad.talk();
  for (Bytes& frame : bad.frames)
    frame.back() ^= std::byte{1};
  good.frames.insert(good.frames.end(), bad.frames.begin(), bad.frames.end());
  EXPECT_EQ(finding(find(file_of(good.frames)), "ack_msn").value, "next");
}

TEST(DialectFinder, NothingInAFileDoesHarm) {
  Conversation conversation(wire::kCard, Carriage::kTunnel);
  conversation.talk();
  const Bytes whole = file_of(conversation.frames);
  for (std::size_t length = 0; length < whole.size(); length += 7) {
    const DialectFinder cut = find(std::span(whole).first(length));
    EXPECT_LE(cut.traffic().mrc, conversation.frames.size());
  }
  std::mt19937 random(5);
  for (int round = 0; round < 400; ++round) {
    Bytes damaged = whole;
    for (unsigned flips = 1 + random() % 64; flips > 0; --flips)
      damaged[random() % damaged.size()] ^= static_cast<std::byte>(1U << random() % 8);
    find(damaged).findings();
  }
}

}  // namespace
}  // namespace mrc::capture::test
