#include "capture/capture_file.h"

#include <gtest/gtest.h>

#include "conversation.h"

namespace mrc::capture::test {
namespace {

Bytes numbered(std::size_t length) {
  Bytes bytes(length);
  for (std::size_t i = 0; i < length; ++i)
    bytes[i] = static_cast<std::byte>(i);
  return bytes;
}

std::vector<Bytes> frames_of(std::span<const std::byte> file, std::string* problem = nullptr) {
  std::vector<Bytes> frames;
  CaptureFile capture(file);
  CapturedFrame frame;
  while (capture.next(frame))
    frames.emplace_back(frame.bytes.begin(), frame.bytes.end());
  if (problem != nullptr) *problem = capture.problem();
  return frames;
}

TEST(CaptureFile, ReadsBothByteOrdersAndSkipsWhatItDoesNotKnow) {
  for (const bool big_endian : {false, true}) {
    PcapngText text(big_endian);
    text.add(numbered(61));
    text.add_unknown();
    text.add(numbered(64), 20);
    std::string problem;
    const auto frames = frames_of(text.bytes, &problem);
    EXPECT_EQ(problem, "");
    ASSERT_EQ(frames.size(), 2U);
    EXPECT_EQ(frames[0], numbered(61));
    EXPECT_EQ(frames[1], numbered(20));
  }
}

TEST(CaptureFile, SaysWhetherAFrameIsWhole) {
  PcapngText text;
  text.add(numbered(64), 20);
  text.add(numbered(64));
  CaptureFile capture(text.bytes);
  CapturedFrame frame;
  ASSERT_TRUE(capture.next(frame));
  EXPECT_FALSE(frame.whole);
  ASSERT_TRUE(capture.next(frame));
  EXPECT_TRUE(frame.whole);
  EXPECT_EQ(frame.link, 1);
}

TEST(CaptureFile, ReadsTheOlderFormat) {
  Bytes file;
  const auto put32 = [&](std::uint32_t value) {
    for (unsigned i = 0; i < 4; ++i)
      file.push_back(static_cast<std::byte>(value >> 8 * i));
  };
  put32(0xA1B23C4D), put32(0x00040002), put32(0), put32(0), put32(65535), put32(101);
  put32(1), put32(2), put32(8), put32(9);
  for (const std::byte b : numbered(8))
    file.push_back(b);
  CaptureFile capture(file);
  CapturedFrame frame;
  ASSERT_TRUE(capture.next(frame));
  EXPECT_EQ(frame.link, 101);
  EXPECT_FALSE(frame.whole);
  EXPECT_EQ(frame.bytes.size(), 8U);
  EXPECT_FALSE(capture.next(frame));
  EXPECT_EQ(capture.problem(), "");
}

TEST(CaptureFile, SaysWhereItIsDamagedAndKeepsWhatCameBefore) {
  PcapngText text;
  text.add(numbered(64));
  const std::size_t good = text.bytes.size();
  text.add(numbered(64));
  std::string problem;
  EXPECT_EQ(frames_of(std::span(text.bytes).first(good + 30), &problem).size(), 1U);
  EXPECT_EQ(problem, "cut in a block, or its length is wrong, at byte " + std::to_string(good));
  text.bytes.back() ^= std::byte{1};
  EXPECT_EQ(frames_of(text.bytes, &problem).size(), 1U);
  EXPECT_EQ(problem, "a block whose lengths differ, at byte " + std::to_string(good));
}

TEST(CaptureFile, RefusesWhatIsNoCapture) {
  std::string problem;
  EXPECT_TRUE(frames_of(numbered(500), &problem).empty());
  EXPECT_EQ(problem, "no capture: begins like neither pcapng nor pcap, at byte 0");
  EXPECT_TRUE(frames_of({}, &problem).empty());
  EXPECT_EQ(problem, "no capture: shorter than the header of one, at byte 0");
}

TEST(CaptureFile, APacketOfNoInterfaceIsLeftOut) {
  PcapngText text;
  text.add(numbered(40));
  text.bytes[48 + 8] = std::byte{9};  // its interface
  std::string problem;
  EXPECT_TRUE(frames_of(text.bytes, &problem).empty());
  EXPECT_EQ(problem, "");
}

}  // namespace
}  // namespace mrc::capture::test
