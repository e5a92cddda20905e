#include "fabric/link_condition.h"

#include <gtest/gtest.h>

#include "fabric_samples.h"

namespace mrc::fabric {
namespace {

constexpr Picoseconds kUs = 1'000'000;
constexpr LinkId kLink{7};

FaultAction action(FaultKind kind, std::uint32_t fault, double value = 0) {
  return {.link = kLink, .kind = kind, .value = value, .fault = fault};
}
FaultAction ended(FaultAction of) {
  of.begins = false;
  return of;
}

TEST(LinkFaults, ALinkWithoutFaultsIsHealthyAndDeliversFromTheFirstMomentOn) {
  const LinkFaults link;
  EXPECT_EQ(link.condition(), LinkCondition{});
  EXPECT_EQ(link.condition().rate_share, 1);
  EXPECT_TRUE(link.delivers(0));
}

TEST(LinkFaults, ALinkIsDownUntilTheLastFaultThatHoldsItDownEnds) {
  const FaultAction of_switch = action(FaultKind::kDown, 0);
  const FaultAction of_cable = action(FaultKind::kDown, 1);
  for (const auto& [first, last] : {std::pair(of_switch, of_cable), {of_cable, of_switch}}) {
    LinkFaults link;
    link.apply(of_switch);
    link.apply(of_cable);
    link.apply(ended(first));
    EXPECT_TRUE(link.condition().down);
    link.apply(ended(last));
    EXPECT_EQ(link.condition(), LinkCondition{});
  }
}

TEST(LinkFaults, OfSeveralValuesTheOneThatBeganLastHolds) {
  LinkFaults link;
  for (const FaultKind kind : {FaultKind::kRate, FaultKind::kLoss, FaultKind::kCorrupt}) {
    const auto value = [&] {
      const LinkCondition& c = link.condition();
      return kind == FaultKind::kRate   ? c.rate_share
             : kind == FaultKind::kLoss ? c.loss
                                        : c.corrupt;
    };
    const double healthy = value();
    link.apply(action(kind, 0, 0.5));
    link.apply(action(kind, 1, 0.25));
    link.apply(action(kind, 2, 0.75));
    EXPECT_EQ(value(), 0.75);
    link.apply(ended(action(kind, 1, 0.25)));  // had nothing to say
    EXPECT_EQ(value(), 0.75);
    link.apply(ended(action(kind, 2, 0.75)));
    EXPECT_EQ(value(), 0.5);
    link.apply(ended(action(kind, 0, 0.5)));
    EXPECT_EQ(value(), healthy);
  }
  EXPECT_EQ(link.condition(), LinkCondition{});
}

TEST(LinkFaults, AFaultMayBeginAgain) {
  LinkFaults link;
  for (unsigned i = 0; i < 3; ++i) {
    link.apply(action(FaultKind::kDown, 4));
    EXPECT_TRUE(link.condition().down);
    link.apply(ended(action(FaultKind::kDown, 4)));
    EXPECT_FALSE(link.condition().down);
  }
}

TEST(LinkFaults, KindsDoNotTouchEachOther) {
  LinkFaults link;
  link.apply(action(FaultKind::kRate, 0, 0.25));
  link.apply(action(FaultKind::kLoss, 1, 0.01));
  link.apply(action(FaultKind::kDown, 2));
  link.apply(action(FaultKind::kBlackHole, 3));
  link.apply(action(FaultKind::kCorrupt, 4, 0.02));
  const LinkCondition all{
      .rate_share = 0.25, .loss = 0.01, .corrupt = 0.02, .black_hole = true, .down = true};
  EXPECT_EQ(link.condition(), all);
  link.apply(ended(action(FaultKind::kDown, 2)));
  LinkCondition rest = all;
  rest.down = false;
  EXPECT_EQ(link.condition(), rest);
}

TEST(LinkFaults, OnlyWhatBeganCanEnd) {
  LinkFaults link;
  link.apply(action(FaultKind::kDown, 0));
  EXPECT_DEATH(link.apply(ended(action(FaultKind::kDown, 1))), "");
  EXPECT_DEATH(link.apply(ended(action(FaultKind::kLoss, 0))), "");
}

TEST(LinkFaults, WhatIsOnALinkThatGoesDownIsLostThoughItIsUpAgain) {
  LinkFaults link;
  link.apply(action(FaultKind::kDown, 0));
  link.lose_flight(10 * kUs);
  link.apply(ended(action(FaultKind::kDown, 0)));
  EXPECT_FALSE(link.delivers(9 * kUs));
  EXPECT_FALSE(link.delivers(10 * kUs));
  EXPECT_TRUE(link.delivers(10 * kUs + 1));
  link.lose_flight(5 * kUs);  // of an earlier time: nothing comes back to life
  EXPECT_FALSE(link.delivers(10 * kUs));
}

TEST(LinkCondition, SpoilsWhatItLosesOrDamagesButNotWhatItDelays) {
  EXPECT_FALSE(LinkCondition{.rate_share = 0.1}.spoils());
  EXPECT_FALSE(LinkCondition{.down = true}.spoils());
  EXPECT_TRUE(LinkCondition{.loss = 0.1}.spoils());
  EXPECT_TRUE(LinkCondition{.corrupt = 0.1}.spoils());
  EXPECT_TRUE(LinkCondition{.black_hole = true}.spoils());
}

TEST(LinkCondition, InWords) {
  EXPECT_EQ(in_words({}), "");
  EXPECT_EQ(in_words({.loss = 0.005, .down = true}), "down, loss 0.5 %");
  EXPECT_EQ(in_words({.rate_share = 0.25, .loss = 0.01, .corrupt = 0.02, .black_hole = true}),
            "rate 25 %, loss 1 %, corrupt 2 %, black hole");
}

// A plan, played up to some time.
class PlayedPlan : public testing::Test {
 protected:
  void play(const std::vector<std::string>& lines, Picoseconds until) {
    std::vector<Fault> plan;
    for (const std::string& line : lines)
      plan.push_back(parse_fault(line, topology_));
    for (const FaultAction& next : timeline(plan, until))
      faults_.apply(next);
  }

  Topology topology_{two_tier()};
  FabricFaults faults_;
};

TEST_F(PlayedPlan, TouchesTheLinksItNamesAndNoOthers) {
  play({"t1:2/plane:0 down @0", "t0:3>t1:2/plane:0 rate 25% @0"}, 0);
  EXPECT_EQ(faults_.of(topology_.t0_up(0, 3, 2)).condition(),
            (LinkCondition{.rate_share = 0.25, .down = true}));
  EXPECT_EQ(faults_.of(topology_.t0_up(0, 1, 2)).condition(), (LinkCondition{.down = true}));
  EXPECT_EQ(faults_.of(topology_.t0_up(1, 3, 2)).condition(), LinkCondition{});
}

TEST_F(PlayedPlan, CountsEveryDownLinkOnce) {
  const std::vector<std::string> plan = {"t1:2/plane:0 down @10us for 20us",
                                         "t0:3/t1:2/plane:0 down @20us for 30us"};
  for (const auto& [until_us, down] :
       {std::pair(9, false), {10, true}, {20, true}, {30, true}, {49, true}, {50, false}}) {
    faults_ = {};
    play(plan, until_us * kUs);
    EXPECT_EQ(faults_.any_down(), down) << until_us << " us";
    EXPECT_EQ(faults_.is_down(topology_.t0_up(0, 3, 2)), down) << until_us << " us";
    EXPECT_EQ(faults_.is_down(topology_.t0_up(0, 1, 2)), until_us >= 10 && until_us < 30);
  }
}

TEST_F(PlayedPlan, OfFaultsThatBeginAtOnceTheLaterInThePlanHolds) {
  const std::string link = "t0:3>t1:2/plane:0 ";
  play({link + "loss 1% @10us", link + "loss 2% @10us", link + "loss 3% @5us"}, 10 * kUs);
  EXPECT_EQ(faults_.of(topology_.t0_up(0, 3, 2)).condition().loss, 0.02);
}

TEST_F(PlayedPlan, AFaultThatEndsWhenAnotherBeginsLeavesThatOneAlone) {
  const std::string link = "t0:3>t1:2/plane:0 ";
  play({link + "rate 50% @20us", link + "rate 10% @10us for 10us"}, 20 * kUs);
  EXPECT_EQ(faults_.of(topology_.t0_up(0, 3, 2)).condition().rate_share, 0.5);
}

}  // namespace
}  // namespace mrc::fabric
