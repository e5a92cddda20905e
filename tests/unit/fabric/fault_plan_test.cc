#include "fabric/fault_plan.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>

#include "fabric/input_error.h"
#include "fabric_samples.h"

namespace mrc::fabric {
namespace {

using testing::ElementsAre;

constexpr Picoseconds kUs = 1'000'000;

TEST(FaultKind, EveryKindIsNamedAsItIsWritten) {
  EXPECT_STREQ(fault_kind_name(FaultKind::kDown), "down");
  EXPECT_STREQ(fault_kind_name(FaultKind::kRate), "rate");
  EXPECT_STREQ(fault_kind_name(FaultKind::kLoss), "loss");
  EXPECT_STREQ(fault_kind_name(FaultKind::kCorrupt), "corrupt");
  EXPECT_STREQ(fault_kind_name(FaultKind::kFlap), "flap");
  EXPECT_STREQ(fault_kind_name(FaultKind::kBlackHole), "blackhole");
}

class FaultTimeline : public testing::Test {
 protected:
  // The actions of the plan as text, one per link: time in us, position, kind, value in percent.
  std::vector<std::string> changes(const std::vector<std::string>& lines, Picoseconds end_ps) {
    std::vector<Fault> plan;
    for (const std::string& line : lines)
      plan.push_back(parse_fault(line, topology_));
    std::vector<std::string> result;
    for (const FaultAction& action : timeline(plan, end_ps)) {
      std::string text = std::to_string(action.time_ps / kUs) + " " + std::to_string(action.fault) +
                         " " + (action.begins ? "" : "end of ") + fault_kind_name(action.kind);
      if (action.value != 0) text += " " + std::to_string(static_cast<int>(action.value * 100));
      result.push_back(text);
    }
    return result;
  }

  Topology topology_{two_tier()};  // 2 planes, 16 hosts, 4 T0, 4 T1
};

TEST_F(FaultTimeline, AFaultEndsWhenItsDurationIsOver) {
  EXPECT_THAT(changes({"t0:3>t1:2/plane:0 down @10us for 5us"}, 100 * kUs),
              ElementsAre("10 0 down", "15 0 end of down"));
  EXPECT_THAT(changes({"t0:3>t1:2/plane:0 rate 25% @10us for 5us"}, 100 * kUs),
              ElementsAre("10 0 rate 25", "15 0 end of rate 25"));
  EXPECT_THAT(changes({"t0:3>t1:2/plane:0 loss 2% @10us for 5us"}, 100 * kUs),
              ElementsAre("10 0 loss 2", "15 0 end of loss 2"));
  EXPECT_THAT(changes({"t0:3>t1:2/plane:0 corrupt 2% @10us for 5us"}, 100 * kUs),
              ElementsAre("10 0 corrupt 2", "15 0 end of corrupt 2"));
  EXPECT_THAT(changes({"t0:3/plane:0 blackhole t1:2 @10us for 5us"}, 100 * kUs),
              ElementsAre("10 0 blackhole", "15 0 end of blackhole"));
}

TEST_F(FaultTimeline, AFaultWithoutDurationNeverEnds) {
  EXPECT_THAT(changes({"t0:3>t1:2/plane:0 down @10us"}, kForever), ElementsAre("10 0 down"));
}

TEST_F(FaultTimeline, ActsOnEveryLinkOfAFault) {
  EXPECT_THAT(changes({"t0:3/t1:2/plane:0 down @10us for 5us"}, 100 * kUs),
              ElementsAre("10 0 down", "10 0 down", "15 0 end of down", "15 0 end of down"));
}

TEST_F(FaultTimeline, IsSortedByTimeThenByPositionInThePlan) {
  EXPECT_THAT(changes({"t0:3>t1:2/plane:0 down @30us", "t0:1>t1:2/plane:0 down @10us for 20us",
                       "t0:2>t1:2/plane:0 down @30us"},
                      100 * kUs),
              ElementsAre("10 1 down", "30 0 down", "30 1 end of down", "30 2 down"));
}

TEST_F(FaultTimeline, LeavesOutWhatHappensAfterTheEnd) {
  EXPECT_THAT(
      changes({"t0:3>t1:2/plane:0 down @10us for 5us", "t0:1>t1:2/plane:0 down @15us"}, 14 * kUs),
      ElementsAre("10 0 down"));
}

TEST_F(FaultTimeline, AFlapRepeatsUntilItsDurationIsOverAndEndsUp) {
  EXPECT_THAT(changes({"t0:3>t1:2/plane:0 flap 2us/3us @10us for 11us"}, 100 * kUs),
              ElementsAre("10 0 down", "12 0 end of down", "15 0 down", "17 0 end of down",
                          "20 0 down", "21 0 end of down"));
  EXPECT_THAT(changes({"t0:3>t1:2/plane:0 flap 2us/3us @10us for 10us"}, 100 * kUs),
              ElementsAre("10 0 down", "12 0 end of down", "15 0 down", "17 0 end of down"));
}

TEST_F(FaultTimeline, AFlapForEverRepeatsUntilTheEnd) {
  EXPECT_THAT(
      changes({"t0:3>t1:2/plane:0 flap 2us/3us @10us"}, 20 * kUs),
      ElementsAre("10 0 down", "12 0 end of down", "15 0 down", "17 0 end of down", "20 0 down"));
  EXPECT_EQ(changes({"t0:3>t1:2/plane:0 flap 1000000s/1000000s @1us"}, kForever).size(), 5u);
}

TEST_F(FaultTimeline, AFlapTooFastToExecuteIsRefusedBeforeAnythingIsMadeOfIt) {
  EXPECT_THROW(changes({"t0:*/t1:*/plane:* flap 1ps/1ps @0"}, 1'000'000'000'000), InputError);
  const std::vector<Fault> plan(1000, parse_fault("t0:3/t1:2/plane:0 flap 1ns/1ns @0", topology_));
  const auto begin = std::chrono::steady_clock::now();
  for (unsigned i = 0; i < 1000; ++i)
    EXPECT_THROW(timeline(plan, kForever), InputError);
  // Eight million actions each time would take minutes.
  EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(10));
}

TEST_F(FaultTimeline, SeveralFaultsTogetherAreBoundedAsOneIs) {
  const std::string flap = "t0:3>t1:2/plane:0 flap 1us/1us @0 for 6s";  // six million actions
  EXPECT_THROW(changes({flap, flap}, kForever), InputError);
}

}  // namespace
}  // namespace mrc::fabric
