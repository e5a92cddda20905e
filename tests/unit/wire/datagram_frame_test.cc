#include "wire/datagram_frame.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "unit/wire/frame_samples.h"
#include "wire/codec.h"

namespace mrc::wire {
namespace {

using test::Bytes;
using test::Encapsulation;
using test::frame_bytes;
using test::frame_header;
using test::kAllEncapsulations;
using test::numbered_bytes;

Packet write_packet() {
  Packet packet;
  packet.bth.opcode = Opcode::kWriteMiddle;
  packet.body = Write{.receive_msn = 5, .msn = 6, .message_length = 9000};
  return packet;
}

Bytes sample_frame(Encapsulation kind, std::size_t payload) {
  return frame_bytes({}, frame_header(kind), write_packet(), numbered_bytes(payload));
}

std::span<const std::byte> datagram_of(std::span<const std::byte> frame, FrameHeader& header) {
  std::span<const std::byte> datagram;
  EXPECT_EQ(find_datagram({}, frame, header, datagram), DropReason::kNone);
  return datagram;
}

TEST(DatagramFrame, HeadersAreThoseOfAnyFrame) {
  for (const Encapsulation kind : kAllEncapsulations) {
    const Bytes frame = sample_frame(kind, 100);
    FrameHeader header;
    const auto datagram = datagram_of(frame, header);
    Bytes built(frame.size());
    const std::size_t before = build_frame_headers({}, frame_header(kind), datagram.size(), built);
    ASSERT_EQ(before, frame.size() - datagram.size());
    EXPECT_TRUE(std::equal(built.begin(), built.begin() + static_cast<std::ptrdiff_t>(before),
                           frame.begin()));
    OpenedFrame opened;
    ASSERT_EQ(open_frame({}, frame, opened), DropReason::kNone);
    EXPECT_EQ(header, opened.header);
    EXPECT_EQ(datagram.size(), opened.transport.size() + kIcrcLength);
    EXPECT_EQ(datagram.data(), opened.transport.data());
  }
}

TEST(DatagramFrame, WhatDoesNotFitIsNotWritten) {
  for (const Encapsulation kind : kAllEncapsulations) {
    const FrameHeader header = frame_header(kind);
    const std::size_t before = frame_overhead({}, header);
    Bytes room(before + 100);
    EXPECT_EQ(build_frame_headers({}, header, 100, room), before);
    EXPECT_EQ(build_frame_headers({}, header, 101, room), 0U);
    Bytes large(before + 70'000);
    EXPECT_EQ(build_frame_headers({}, header, 65'536, large), 0U);
  }
}

TEST(DatagramFrame, TrimsToAnyLengthAndSaysSo) {
  for (const Encapsulation kind : kAllEncapsulations) {
    for (const bool last_hop : {true, false}) {
      Bytes frame = sample_frame(kind, 1000);
      FrameHeader header;
      const std::size_t before = frame.size() - datagram_of(frame, header).size();
      const Bytes whole = frame;
      const std::size_t left = trim_frame_to({}, frame, last_hop, 48);
      ASSERT_EQ(left, before + 48);
      frame.resize(left);
      const auto datagram = datagram_of(frame, header);
      EXPECT_EQ(header.trim, last_hop ? TrimMark::kTrimmedLastHop : TrimMark::kTrimmed);
      EXPECT_TRUE(std::ranges::equal(datagram, std::span(whole).subspan(before, 48)));
      // Once is enough, and nothing grows.
      EXPECT_EQ(trim_frame_to({}, frame, last_hop, 40), 0U);
      Bytes again = whole;
      EXPECT_EQ(trim_frame_to({}, again, last_hop, whole.size() - before), 0U);
      EXPECT_EQ(again, whole);
    }
  }
}

TEST(DatagramFrame, NoBytesAreReadBehindTheEnd) {
  for (const Encapsulation kind : kAllEncapsulations) {
    const Bytes frame = sample_frame(kind, 64);
    for (std::size_t length = 0; length < frame.size(); ++length) {
      FrameHeader header;
      std::span<const std::byte> datagram;
      const Bytes cut(frame.begin(), frame.begin() + static_cast<std::ptrdiff_t>(length));
      EXPECT_NE(find_datagram({}, cut, header, datagram), DropReason::kNone) << length;
    }
  }
}

}  // namespace
}  // namespace mrc::wire
