#include "wire/srv6.h"

#include <gtest/gtest.h>

#include <array>
#include <string>
#include <vector>

namespace mrc::wire {
namespace {

IpAddress address(std::string_view text) { return parse_address(text).value(); }
std::string text(const IpAddress& value) { return std::string(format_address(value).view()); }

TEST(Srv6, ACarrierIsBlockThenUsidsInVisitingOrder) {
  const std::array usids{Usid{0x1000}, Usid{0x8000}, Usid{0x1001}, Usid{0x0100}};
  const auto carrier = build_carrier(UsidBlock{0xFC000001}, usids);
  ASSERT_TRUE(carrier.ok());
  EXPECT_EQ(text(carrier.value()), "fc00:1:1000:8000:1001:100::");
  EXPECT_EQ(carrier_block(carrier.value()), UsidBlock{0xFC000001});
  EXPECT_EQ(usid_count(carrier.value()), 4u);
  for (unsigned i = 0; i < usids.size(); ++i)
    EXPECT_EQ(usid_at(carrier.value(), i), usids[i]);
  EXPECT_EQ(usid_at(carrier.value(), 4), kNoUsid);
  EXPECT_EQ(usid_at(carrier.value(), 6), kNoUsid);
}

TEST(Srv6, SixUsidsFillAnAddressAndSevenDoNotFit) {
  std::vector<Usid> usids(6, Usid{0x1234});
  const auto full = build_carrier(UsidBlock{1}, usids);
  ASSERT_TRUE(full.ok());
  EXPECT_EQ(usid_count(full.value()), 6u);
  usids.push_back(Usid{1});
  EXPECT_EQ(build_carrier(UsidBlock{1}, usids).status().code(), ErrorCode::kTooLong);
}

TEST(Srv6, AnEmptyPathAndAZeroUsidAreRefused) {
  EXPECT_EQ(build_carrier(UsidBlock{1}, {}).status().code(), ErrorCode::kInvalidArgument);
  const std::array usids{Usid{1}, kNoUsid, Usid{2}};
  EXPECT_EQ(build_carrier(UsidBlock{1}, usids).status().code(), ErrorCode::kInvalidArgument);
}

TEST(Srv6, ShiftingMovesTheTailBySixteenBitsAndKeepsTheBlock) {
  const IpAddress start = address("fc00:1:aaaa:bbbb:cccc:dddd:eeee:ffff");
  EXPECT_EQ(text(shift_carrier(start)), "fc00:1:bbbb:cccc:dddd:eeee:ffff:0");
  EXPECT_EQ(text(shift_carrier(shift_carrier(start))), "fc00:1:cccc:dddd:eeee:ffff::");
}

TEST(Srv6, APacketVisitsEveryHopAndThenEnds) {
  IpAddress carrier = address("fc00:1:1000:8000:1001:100::");
  Segment none;
  std::vector<Usid> visited;
  for (;;) {
    visited.push_back(active_usid(carrier));
    if (advance(carrier, none) == UsidStep::kEnd) break;
  }
  EXPECT_EQ(visited, (std::vector{Usid{0x1000}, Usid{0x8000}, Usid{0x1001}, Usid{0x0100}}));
  EXPECT_TRUE(at_last_usid(carrier));
  EXPECT_EQ(text(carrier), "fc00:1:100::");
}

TEST(Srv6, TheRoutingHeaderGoesOnWhereTheCarrierEnds) {
  IpAddress carrier = address("fc00:1:a::");
  Segment segment{.address = address("fc00:1:b:c::"), .left = 1};
  EXPECT_EQ(advance(carrier, segment), UsidStep::kNextSegment);
  EXPECT_EQ(text(carrier), "fc00:1:b:c::");
  EXPECT_EQ(segment.left, 0);
  EXPECT_EQ(advance(carrier, segment), UsidStep::kShifted);
  EXPECT_EQ(advance(carrier, segment), UsidStep::kEnd);
  EXPECT_EQ(text(carrier), "fc00:1:c::");
}

TEST(Srv6, AFullCarrierEndsAfterSixHops) {
  IpAddress carrier = address("fc00:1:1:2:3:4:5:6");
  Segment none;
  int steps = 0;
  while (advance(carrier, none) == UsidStep::kShifted) {
    ++steps;
  }
  EXPECT_EQ(steps, 5);
  EXPECT_EQ(text(carrier), "fc00:1:6::");
}

TEST(UsidPlan, APathAcrossT1NamesSourceT0ThenT1ThenDestinationT0ThenHostPort) {
  const UsidPlan plan;
  EXPECT_TRUE(check_usid_plan(plan).ok());
  const auto carrier = path_carrier(
      plan,
      PathAcrossT1{
          .plane = PortId{3}, .source_t0 = 1, .t1 = 2, .destination_t0 = 511, .host_port = 255});
  ASSERT_TRUE(carrier.ok());
  EXPECT_EQ(text(carrier.value()), "fc00:3:1001:8002:11ff:1ff::");
}

TEST(UsidPlan, APathWithinAT0NamesItAndTheHostPort) {
  const auto carrier =
      path_carrier(UsidPlan{}, PathWithinT0{.plane = PortId{1}, .t0 = 7, .host_port = 0});
  ASSERT_TRUE(carrier.ok());
  EXPECT_EQ(text(carrier.value()), "fc00:1:1007:100::");
}

TEST(UsidPlan, ADeviceBeyondItsRangeIsRefused) {
  const UsidPlan plan;
  EXPECT_FALSE(path_carrier(plan, PathAcrossT1{.source_t0 = plan.t0.count}).ok());
  EXPECT_FALSE(path_carrier(plan, PathAcrossT1{.t1 = plan.t1.count}).ok());
  EXPECT_FALSE(path_carrier(plan, PathAcrossT1{.destination_t0 = 0xFFFFFFFF}).ok());
  EXPECT_FALSE(path_carrier(plan, PathAcrossT1{.host_port = plan.host_port.count}).ok());
  EXPECT_FALSE(path_carrier(plan, PathWithinT0{.t0 = plan.t0.count}).ok());
  EXPECT_FALSE(path_carrier(plan, PathWithinT0{.host_port = plan.host_port.count}).ok());
}

TEST(UsidPlan, RangesThatAreEmptyOrOverlapAreRefused) {
  UsidPlan plan;
  plan.t0.count = 0;
  EXPECT_FALSE(check_usid_plan(plan).ok());
  plan = {};
  plan.host_port.first = 0;
  EXPECT_FALSE(check_usid_plan(plan).ok());
  plan = {};
  plan.t1 = {.first = 0xF000, .count = 0x1001};
  EXPECT_FALSE(check_usid_plan(plan).ok());
  plan.t1.count = 0x1000;
  EXPECT_TRUE(check_usid_plan(plan).ok());
  plan.t0 = {.first = 0x0FFF, .count = 1};
  EXPECT_FALSE(check_usid_plan(plan).ok());
  plan.t0 = {.first = 0xF800, .count = 1};
  EXPECT_FALSE(check_usid_plan(plan).ok());
  plan = {};
  plan.host_port = {.first = 0x8100, .count = 1};
  EXPECT_FALSE(check_usid_plan(plan).ok());
  plan = {};
  plan.t2 = {.first = 0xBFFF, .count = 2};
  EXPECT_FALSE(check_usid_plan(plan).ok());
}

}  // namespace
}  // namespace mrc::wire
