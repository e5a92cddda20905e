#include "base/types.h"

#include <gtest/gtest.h>

#include <vector>

namespace mrc {
namespace {

std::vector<unsigned> numbers(PortMask mask) {
  std::vector<unsigned> found;
  for (const PortId port : mask)
    found.push_back(static_cast<unsigned>(port));
  return found;
}

TEST(PortMask, IsVisitedFromTheLowestPortOn) {
  EXPECT_EQ(numbers(PortMask(0b1010'0000'0000'0001)), (std::vector<unsigned>{1, 14, 16}));
  EXPECT_EQ(numbers(PortMask()), std::vector<unsigned>{});
  EXPECT_EQ(numbers(PortMask(0x8000'0000)), std::vector<unsigned>{32});
  EXPECT_EQ(numbers(PortMask::first(3)), (std::vector<unsigned>{1, 2, 3}));
}

TEST(PortMask, KnowsItsLowestPortAndHowManyThereAre) {
  static_assert(PortMask(0b1100).lowest() == PortId{3});
  EXPECT_EQ(PortMask(0b1100).count(), 2U);
  EXPECT_EQ(PortMask().count(), 0U);
  EXPECT_EQ(PortMask::first(kMaxPorts).count(), kMaxPorts);
}

TEST(PortMask, SetsAreJoinedCutAndTakenAway) {
  const PortMask low(0b0111);
  const PortMask high(0b1110);
  EXPECT_EQ(low & high, PortMask(0b0110));
  EXPECT_EQ(low | high, PortMask(0b1111));
  EXPECT_EQ(low - high, PortMask(0b0001));
  EXPECT_EQ(low ^ high, PortMask(0b1001));
  EXPECT_EQ(low.without(PortId{2}).with(PortId{4}), PortMask(0b1101));
}

TEST(Psn, DistancesWrapAt24Bits) {
  EXPECT_EQ(Psn(2).distance_from(Psn(0xFF'FFFE)), 4);
  EXPECT_EQ(Psn(0xFF'FFFE).distance_from(Psn(2)), -4);
  EXPECT_EQ(Psn(0x80'0000).distance_from(Psn(0)), -0x80'0000);
}

}  // namespace
}  // namespace mrc
