#include <gtest/gtest.h>

#include <array>

#include "unit/wire/wire_samples.h"
#include "wire/reader.h"
#include "wire/writer.h"

namespace mrc::wire {
namespace {

using test::hex;
using test::to_hex;

TEST(ByteReader, ReadsBigEndianFieldsInOrder) {
  const auto bytes = hex("01 0203 040506 0708090a 0b0c0d0e0f101112 aabb");
  ByteReader reader(bytes);
  EXPECT_EQ(reader.u8(), 0x01);
  EXPECT_EQ(reader.u16(), 0x0203);
  EXPECT_EQ(reader.u24(), 0x040506u);
  EXPECT_EQ(reader.u32(), 0x0708090Au);
  EXPECT_EQ(reader.u64(), 0x0B0C0D0E0F101112u);
  EXPECT_EQ(to_hex(reader.rest()), "aabb");
  EXPECT_FALSE(reader.failed());
}

TEST(ByteReader, YieldsZeroForAFieldThatIsCutOffAndStaysFailed) {
  const auto bytes = hex("010203");
  ByteReader reader(bytes);
  EXPECT_EQ(reader.u32(), 0u);
  EXPECT_TRUE(reader.failed());
  EXPECT_EQ(reader.left(), 0u);
  EXPECT_EQ(reader.u8(), 0);
  reader.skip(0);
  EXPECT_TRUE(reader.failed());
}

TEST(ByteReader, FillsWithZerosWhatCannotBeCopied) {
  const auto bytes = hex("0102");
  ByteReader reader(bytes);
  std::array<std::uint8_t, 4> out{9, 9, 9, 9};
  reader.copy_to(std::span(out));
  EXPECT_TRUE(reader.failed());
  EXPECT_EQ(out, (std::array<std::uint8_t, 4>{0, 0, 0, 0}));
}

TEST(ByteReader, TakesEverythingButNotMore) {
  const auto bytes = hex("0102");
  ByteReader reader(bytes);
  EXPECT_EQ(reader.take(2).size(), 2u);
  EXPECT_FALSE(reader.failed());
  EXPECT_TRUE(reader.take(1).empty());
  EXPECT_TRUE(reader.failed());
}

TEST(ByteWriter, WritesBigEndianFieldsInOrder) {
  std::array<std::byte, 20> out{};
  ByteWriter writer(out);
  writer.u8(0x01);
  writer.u16(0x0203);
  writer.u24(0x040506);
  writer.u32(0x0708090A);
  writer.u64(0x0B0C0D0E0F101112);
  writer.zeros(1);
  EXPECT_EQ(writer.written(), 19u);
  EXPECT_EQ(writer.left(), 1u);
  EXPECT_EQ(to_hex(out), "0102030405060708090a0b0c0d0e0f1011120000");
}

TEST(ByteWriter, WritesNothingOfAFieldThatDoesNotFitAndStaysFailed) {
  std::array<std::byte, 4> out{};
  ByteWriter writer{std::span(out).first(3)};
  writer.u16(0x1111);
  writer.u16(0x2222);
  EXPECT_TRUE(writer.failed());
  EXPECT_EQ(writer.written(), 0u);
  EXPECT_EQ(writer.left(), 0u);
  writer.u8(0x33);
  EXPECT_TRUE(writer.failed());
  EXPECT_EQ(to_hex(out), "11110000");
}

}  // namespace
}  // namespace mrc::wire
