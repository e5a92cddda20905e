#include "core/ev_profile.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <vector>

#include "base/prng.h"

namespace mrc::core {
namespace {

EvEntry entry(std::uint32_t entropy, unsigned port = 1) {
  return {.entropy = entropy, .port = PortId{static_cast<std::uint8_t>(port)}};
}

std::vector<EvEntry> entries(unsigned count) {
  std::vector<EvEntry> list;
  for (unsigned i = 0; i < count; ++i)
    list.push_back(entry(i * 2654435761U, 1 + i % kMaxPorts));
  return list;
}

ErrorCode create_error(const std::vector<EvEntry>& list, std::uint32_t mask = 0xFFFF'FFFF) {
  return EvProfile::create(list, mask).status().code();
}

TEST(EvProfile, RefusesAnEmptyList) { EXPECT_EQ(create_error({}), ErrorCode::kInvalidArgument); }

TEST(EvProfile, TakesOneToOneThousandTwentyFourEntries) {
  EXPECT_EQ(create_error(entries(1)), ErrorCode::kOk);
  EXPECT_EQ(create_error(entries(1024)), ErrorCode::kOk);
  EXPECT_EQ(create_error(entries(1025)), ErrorCode::kTooLong);
}

TEST(EvProfile, RefusesPortsOutsideOneToSixteen) {
  EXPECT_EQ(create_error({entry(1, 1), entry(2, 16)}), ErrorCode::kOk);
  EXPECT_EQ(create_error({entry(1, 0)}), ErrorCode::kInvalidArgument);
  EXPECT_EQ(create_error({entry(1, 1), entry(2, 17)}), ErrorCode::kInvalidArgument);
  EXPECT_EQ(create_error({entry(1, 255)}), ErrorCode::kInvalidArgument);
}

// An EV is its value and its port, and a profile may hold copies of one. An echo that fits several
// entries names none of them by itself; the record of the packet does.
TEST(EvProfile, TakesEntriesThatLookAlike) {
  const std::vector<EvEntry> list = {entry(3, 1), entry(4, 1), entry(3, 2), entry(3, 2)};
  const EvProfile profile = EvProfile::create(list).value();
  ASSERT_EQ(profile.size(), 4U);
  EXPECT_EQ(profile.find(4), EvIndex{1});
  EXPECT_EQ(profile.find(3), kNoEv);
  for (const std::uint16_t copy : {0, 2, 3})
    EXPECT_TRUE(profile.matches(EvIndex{copy}, 3));
  EXPECT_EQ(profile.ports(), PortMask::first(2));
  const EvProfile masked =
      EvProfile::create(std::vector{entry(0x1'0003), entry(0x2'0003), entry(4)}, 0xFFFF).value();
  EXPECT_EQ(masked.find(0x1'0003), kNoEv);
  EXPECT_EQ(masked.find(0x7'0004), EvIndex{2});
}

TEST(EvProfile, ListsTheEvsOfAPlaneInTheirOrderWhereThatMatters) {
  const std::vector<EvEntry> list = {entry(9, 2), entry(8, 5), entry(7, 2), entry(6, 5),
                                     entry(5, 2)};
  EXPECT_TRUE(EvProfile::create(list).value().listed(0).empty());
  const EvProfile profile = EvProfile::create(list, 0xFFFF'FFFF, EvOrder::kAsListed).value();
  const auto of = [&](unsigned plane) {
    const auto listed = profile.listed(plane);
    return std::vector<EvIndex>(listed.begin(), listed.end());
  };
  EXPECT_EQ(of(0), (std::vector{EvIndex{0}, EvIndex{2}, EvIndex{4}}));
  EXPECT_EQ(of(1), (std::vector{EvIndex{1}, EvIndex{3}}));
}

TEST(EvProfile, FindsEveryEntryAndNothingElse) {
  const std::vector<EvEntry> list = entries(1000);
  const EvProfile profile = EvProfile::create(list).value();
  for (unsigned i = 0; i < list.size(); ++i) {
    const EvIndex ev{static_cast<std::uint16_t>(i)};
    EXPECT_EQ(profile.find(list[i].entropy), ev);
    EXPECT_TRUE(profile.matches(ev, list[i].entropy));
    EXPECT_FALSE(profile.matches(ev, list[i].entropy ^ 1));
  }
  Prng prng(4);
  for (int i = 0; i < 1000; ++i) {
    const std::uint32_t guess = prng.next32();
    const EvIndex found = profile.find(guess);
    EXPECT_TRUE(found == kNoEv || profile.entry(found).entropy == guess);
  }
  EXPECT_EQ(profile.find(list.back().entropy + 1), kNoEv);
}

TEST(EvProfile, FindsByTheBitsTheNetworkCarries) {
  const EvProfile profile =
      EvProfile::create(std::vector{entry(0xAAAA'0007), entry(0xBBBB'0001)}, 0xFFFF).value();
  EXPECT_EQ(profile.find(0x0007), EvIndex{0});
  EXPECT_EQ(profile.find(0x1234'0001), EvIndex{1});
  EXPECT_EQ(profile.find(0x0008), kNoEv);
  EXPECT_EQ(profile.find(0x0000), kNoEv);
  EXPECT_TRUE(profile.matches(EvIndex{0}, 7));
}

TEST(EvProfile, WithoutEntriesFindsNothing) { EXPECT_EQ(EvProfile().find(0), kNoEv); }

TEST(EvProfile, KnowsItsPortsAndDenials) {
  EvProfile profile =
      EvProfile::create(std::vector{entry(1, 2), entry(2, 16), entry(3, 2)}).value();
  EXPECT_EQ(profile.size(), 3U);
  EXPECT_EQ(profile.ports().bits(), 0x8002U);
  EXPECT_EQ(profile.port(EvIndex{1}), PortId{16});
  EXPECT_FALSE(profile.entry(EvIndex{2}).denied);
  profile.set_denied(EvIndex{2}, true);
  EXPECT_TRUE(profile.entry(EvIndex{2}).denied);
}

}  // namespace
}  // namespace mrc::core
