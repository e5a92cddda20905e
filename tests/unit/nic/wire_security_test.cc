// Sealed frames over cables, with the test in the place of the switch between the two ends.
#include <gtest/gtest.h>

#include <algorithm>
#include <optional>
#include <string>
#include <vector>

#include "seal/layout.h"
#include "unit/nic/key_folder.h"
#include "unit/nic/wire_fixture.h"
#include "wire/datagram_frame.h"

namespace mrc::nic::test {
namespace {

using Frame = std::vector<std::byte>;

// Host 1 sends, host 2 receives, and what goes from one to the other is up to the test.
class Wiretap {
 public:
  Wiretap(const char* test, const std::string& sender_key, const std::string& receiver_key,
          bool is_v4 = false)
      : to_(wire_device((std::string(test) + "b").c_str(), 1, 2, true, is_v4)),
        a_(must_open(
            sealed(wire_device((std::string(test) + "a").c_str(), 1, 1, true, is_v4), sender_key))),
        b_(must_open(sealed(to_, receiver_key))),
        near_(plug_in(cable_name((std::string(test) + "a").c_str(), 0))),
        far_(plug_in(cable_name((std::string(test) + "b").c_str(), 0))) {
    EXPECT_TRUE(settle({a_.get(), b_.get()},
                       [&] { return !a_->link_up().empty() && !b_->link_up().empty(); }));
  }

  // What the sender puts on its cable for a write of `payload`.
  Frame frame_of(const std::vector<std::byte>& payload,
                 core::TrafficClass traffic_class = core::TrafficClass::kTrimmable) {
    send_bytes(*a_, route_to(*b_, to_.planes[0].address, 1, 0x1234'5678),
               write_packet(7, payload.size()), payload, traffic_class);
    a_->flush();
    return read(near_);
  }
  // What becomes of a frame at the receiver.
  Collector deliver(const Frame& frame) {
    EXPECT_EQ(::send(far_.get(), frame.data(), frame.size(), 0),
              static_cast<ssize_t>(frame.size()));
    Collector got;
    EXPECT_TRUE(collect(*b_, got, 1));
    return got;
  }
  // What the receiver sends of its own accord.
  Frame answer() {
    b_->on_wake();
    return read(far_);
  }
  Backend& sender() { return *a_; }
  Backend& receiver() { return *b_; }

 private:
  static Frame read(const os::Descriptor& cable) {
    Frame frame(16'384);
    pollfd wait{.fd = cable.get(), .events = POLLIN, .revents = 0};
    if (::poll(&wait, 1, 10'000) != 1) return {};
    frame.resize(static_cast<std::size_t>(::recv(cable.get(), frame.data(), frame.size(), 0)));
    return frame;
  }

  node::DeviceConfig to_;
  std::unique_ptr<Backend> a_;
  std::unique_ptr<Backend> b_;
  os::Descriptor near_;
  os::Descriptor far_;
};

std::span<const std::byte> datagram_of(const Frame& frame) {
  wire::FrameHeader header;
  std::span<const std::byte> datagram;
  EXPECT_EQ(wire::find_datagram({}, frame, header, datagram), DropReason::kNone);
  return datagram;
}

void trim(Frame& frame) {
  const std::size_t keep = seal::trimmed_length(datagram_of(frame));
  frame.resize(wire::trim_frame_to({}, frame, false, keep));
}

TEST(WireSecurity, WholeFramesAreSealedAndOpened) {
  const KeyFolder keys;
  const std::string key = keys.add("key");
  for (const bool is_v4 : {false, true}) {
    Wiretap tap("seal_whole", key, key, is_v4);
    for (const std::size_t length : {0U, 1U, 63U, 1000U, 4096U}) {
      const auto payload = pattern(length);
      const Frame frame = tap.frame_of(payload);
      EXPECT_EQ(seal::transport_version(datagram_of(frame)), seal::kSealedVersion);
      if (length > 16) {
        EXPECT_EQ(std::search(frame.begin(), frame.end(), payload.begin(), payload.begin() + 16),
                  frame.end());
      }
      const Collector got = tap.deliver(frame);
      ASSERT_EQ(got.arrived.size(), 1U) << length;
      EXPECT_EQ(got.arrived[0].trim, core::TrimState::kWhole);
      wire::Packet packet;
      std::span<const std::byte> data;
      ASSERT_EQ(wire::parse_transport(got.arrived[0].transport, packet, data), DropReason::kNone);
      EXPECT_EQ(packet.bth.psn, Psn(7));
      EXPECT_TRUE(std::ranges::equal(data, payload));
    }
  }
}

TEST(WireSecurity, TrimmedFramesProveThemselves) {
  const KeyFolder keys;
  const std::string key = keys.add("key");
  Wiretap tap("seal_trim", key, key);
  Frame frame = tap.frame_of(pattern(1000));
  const std::size_t whole = frame.size();
  trim(frame);
  ASSERT_LT(frame.size(), whole);
  const Collector got = tap.deliver(frame);
  ASSERT_EQ(got.arrived.size(), 1U);
  EXPECT_EQ(got.arrived[0].trim, core::TrimState::kTrimmed);
  wire::Packet packet;
  ASSERT_EQ(wire::parse_trimmed_transport(got.arrived[0].transport, packet), DropReason::kNone);
  EXPECT_EQ(packet.bth.psn, Psn(7));
  // One that says another number is nobody's, and so is one that lost part of its proof.
  Frame forged = tap.frame_of(pattern(1000));
  trim(forged);
  const std::size_t bth = forged.size() - datagram_of(forged).size();
  forged[bth + 11] ^= std::byte{1};
  EXPECT_EQ(tap.deliver(forged).dropped, std::vector{DropReason::kBadSeal});
  Frame shorter = tap.frame_of(pattern(1000));
  shorter.resize(
      wire::trim_frame_to({}, shorter, false, seal::trimmed_length(datagram_of(shorter)) - 1));
  EXPECT_EQ(tap.deliver(shorter).dropped, std::vector{DropReason::kBadSeal});
}

TEST(WireSecurity, NoFrameIsTakenTwice) {
  const KeyFolder keys;
  const std::string key = keys.add("key");
  Wiretap tap("seal_again", key, key);
  const Frame first = tap.frame_of(pattern(100));
  Frame second = tap.frame_of(pattern(100));
  EXPECT_EQ(tap.deliver(second).arrived.size(), 1U);
  EXPECT_EQ(tap.deliver(first).arrived.size(), 1U);  // overtaken, not seen
  EXPECT_EQ(tap.deliver(first).dropped, std::vector{DropReason::kBadSeal});
  trim(second);
  EXPECT_EQ(tap.deliver(second).dropped, std::vector{DropReason::kBadSeal});
}

TEST(WireSecurity, EveryBitBehindTheIpHeadersIsProved) {
  const KeyFolder keys;
  const std::string key = keys.add("key");
  Wiretap tap("seal_bits", key, key);
  const Frame frame = tap.frame_of(pattern(64));
  const std::size_t transport = frame.size() - datagram_of(frame).size();
  for (std::size_t at = transport; at < frame.size(); ++at) {
    Frame changed = frame;
    changed[at] ^= static_cast<std::byte>(1U << (at % 8));
    EXPECT_EQ(tap.deliver(changed).arrived.size(), 0U) << at - transport;
  }
  EXPECT_EQ(tap.deliver(frame).arrived.size(), 1U);
}

TEST(WireSecurity, PlainFramesAreRefusedAndSaidAtBothEnds) {
  const KeyFolder keys;
  Wiretap tap("seal_plain", "", keys.add("key"));
  EXPECT_EQ(tap.deliver(tap.frame_of(pattern(100))).dropped, std::vector{DropReason::kPlainPacket});
  EXPECT_EQ(tap.deliver(tap.frame_of(pattern(100))).dropped, std::vector{DropReason::kPlainPacket});
  const std::vector<std::string> lines = tap.receiver().take_notices();
  ASSERT_EQ(lines.size(), 1U);
  EXPECT_NE(lines[0].find("plain packets from"), std::string::npos) << lines[0];
  EXPECT_EQ(seal::transport_version(datagram_of(tap.answer())), seal::kSealedVersion);
}

TEST(WireSecurity, SealedFramesAtAPlainDeviceAreRefusedAndSaidAtBothEnds) {
  const KeyFolder keys;
  Wiretap tap("plain_seal", keys.add("key"), "");
  Frame trimmed = tap.frame_of(pattern(100));
  trim(trimmed);
  EXPECT_EQ(tap.deliver(trimmed).dropped, std::vector{DropReason::kSealedPacket});
  EXPECT_EQ(tap.deliver(tap.frame_of(pattern(100))).dropped,
            std::vector{DropReason::kSealedPacket});
  EXPECT_EQ(tap.receiver().take_notices().size(), 1U);
  EXPECT_EQ(seal::transport_version(datagram_of(tap.answer())), 0);
}

TEST(WireSecurity, WhatIsWrongWithTheKeyIsOneLine) {
  const KeyFolder keys;
  const node::DeviceConfig config =
      sealed(wire_device("seal_missing", 1, 1, true), keys.add("key") + ".missing");
  const std::string error = open_backend(config).error;
  EXPECT_NE(error.find("security = sealed: "), std::string::npos) << error;
  EXPECT_EQ(error.find('\n'), std::string::npos);
}

}  // namespace
}  // namespace mrc::nic::test
