// Values of the reference implementation: key 00 01 .. 0f, input 00 01 .. of the given length. They
// are printed there byte by byte, low byte first.
#include "seal/siphash.h"

#include <gtest/gtest.h>

#include "unit/wire/wire_samples.h"

namespace mrc::seal {
namespace {

using wire::test::Bytes;

Bytes counted(std::size_t length) {
  Bytes bytes(length);
  for (std::size_t i = 0; i < length; ++i)
    bytes[i] = static_cast<std::byte>(i);
  return bytes;
}

SipHash reference_start() { return SipHash(std::span<const std::byte, 16>(counted(16))); }

TEST(SipHash, GivesTheReferenceValues) {
  constexpr struct {
    std::size_t length;
    std::uint64_t value;
  } kReference[] = {{0, 0x726f'db47'dd0e'0e31},  {1, 0x74f8'39c5'93dc'67fd},
                    {7, 0xab02'00f5'8b01'd137},  {8, 0x93f5'f579'9a93'2462},
                    {15, 0xa129'ca61'49be'45e5}, {16, 0x3f2a'cc7f'57c2'9bdb},
                    {20, 0xbed6'5cf2'1aa2'ee98}, {63, 0x958a'324c'eb06'4572}};
  for (const auto& [length, value] : kReference)
    EXPECT_EQ(reference_start().finish(counted(length)), value) << length;
}

TEST(SipHash, IsTheSameInPieces) {
  const Bytes input = counted(63);
  for (std::size_t first = 0; first <= 56; first += 8) {
    SipHash hash = reference_start();
    hash.add(std::span(input).first(first));
    EXPECT_EQ(hash.finish(std::span(input).subspan(first)), reference_start().finish(input));
  }
}

}  // namespace
}  // namespace mrc::seal
