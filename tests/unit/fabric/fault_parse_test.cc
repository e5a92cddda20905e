// The text form of faults. Its header is that of the plan.
#include "fabric/fault_plan.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "fabric/input_error.h"
#include "fabric_samples.h"

namespace mrc::fabric {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::UnorderedElementsAre;

constexpr Picoseconds kUs = 1'000'000;

class FaultParse : public testing::Test {
 protected:
  std::vector<std::string> links_of(std::string_view text) const {
    return names(parse_fault(text, topology_), topology_);
  }
  static std::vector<std::string> names(const Fault& fault, const Topology& topology) {
    std::vector<std::string> result;
    for (const LinkId link : fault.links)
      result.push_back(link_name(topology, link));
    return result;
  }
  std::string objection(std::string_view text) const {
    try {
      parse_fault(text, topology_);
      return "";
    } catch (const InputError& error) {
      return error.what();
    }
  }

  Topology topology_{two_tier()};  // 2 planes, 16 hosts, 4 T0, 4 T1
};

TEST_F(FaultParse, ACableGoesDownInBothDirections) {
  const Fault fault = parse_fault("t0:3/t1:2/plane:0 down @10us for 2ms", topology_);
  EXPECT_EQ(fault.kind, FaultKind::kDown);
  EXPECT_EQ(fault.text, "t0:3/t1:2/plane:0 down @10us for 2ms");
  EXPECT_EQ(fault.start_ps, 10 * kUs);
  EXPECT_EQ(fault.duration_ps, 2'000 * kUs);
  EXPECT_TRUE(fault.link_state_visible);
  EXPECT_THAT(names(fault, topology_),
              UnorderedElementsAre("t0:3>t1:2/plane:0", "t1:2>t0:3/plane:0"));
}

TEST_F(FaultParse, TheEndsOfACableMayComeInAnyOrder) {
  EXPECT_EQ(links_of("t1:2/t0:3/plane:0 down @0"), links_of("t0:3/t1:2/plane:0 down @0"));
}

TEST_F(FaultParse, AnArrowMeansOneDirection) {
  EXPECT_THAT(links_of("t0:3>t1:2/plane:1 down @10us"), ElementsAre("t0:3>t1:2/plane:1"));
  EXPECT_THAT(links_of("t1:2>t0:3/plane:1 down @10us"), ElementsAre("t1:2>t0:3/plane:1"));
  EXPECT_EQ(parse_fault("t0:3>t1:2/plane:1 down @10us", topology_).duration_ps, kForever);
}

TEST_F(FaultParse, OfSeveralCablesAllOrOneFail) {
  const Topology topology({.planes = 2, .hosts = 4, .t0 = 2, .t1 = 2, .cables = 3});
  const auto links = [&](std::string_view text) {
    return names(parse_fault(text, topology), topology);
  };
  EXPECT_EQ(links("t0:1/t1:0/plane:1 down").size(), 6u);
  EXPECT_EQ(links("t0:1/t1:0/cable:*/plane:1 down").size(), 6u);
  EXPECT_THAT(links("t0:1/t1:0/cable:2/plane:1 loss 1%"),
              UnorderedElementsAre("t0:1>t1:0/cable:2/plane:1", "t1:0>t0:1/cable:2/plane:1"));
  EXPECT_THAT(links("t0:1>t1:0/cable:0/plane:0 down"), ElementsAre("t0:1>t1:0/cable:0/plane:0"));
  for (const char* text :
       {"t0:1/t1:0/cable:3/plane:1 down", "t0:1/cable:0/plane:1 down",
        "t0:1/t1:0/cable:0/t1:1/plane:0 down", "t0:1/t1:0>cable:0/plane:0 down",
        "t0:1/t1:0/plane:0/cable:0 down", "t0:1/t1:0/cable:0/cable:1/plane:0 down"})
    EXPECT_THROW(parse_fault(text, topology), InputError) << text;
}

TEST_F(FaultParse, ASwitchFailsWithAllItsCables) {
  EXPECT_EQ(links_of("t1:2/plane:0 down @1ms for 500us").size(), 2u * 4);
  EXPECT_EQ(links_of("t0:2/plane:0 down @1ms").size(), 2u * (4 + 4));
}

TEST_F(FaultParse, ANicPortIsAHostInOnePlane) {
  EXPECT_THAT(links_of("host:7/plane:1 down @20us"),
              UnorderedElementsAre("host:7>t0:1/plane:1", "t0:1>host:7/plane:1"));
  EXPECT_EQ(links_of("host:7/t0:1/plane:1 down @20us"), links_of("host:7/plane:1 down @20us"));
}

TEST_F(FaultParse, RateLossAndCorruptionHaveAShare) {
  const Fault rate = parse_fault("t0:3/t1:2/plane:0 rate 25% @0", topology_);
  EXPECT_EQ(rate.kind, FaultKind::kRate);
  EXPECT_EQ(rate.value, 0.25);
  EXPECT_EQ(rate.start_ps, 0);
  EXPECT_FALSE(rate.link_state_visible);
  const Fault loss = parse_fault("t0:3/t1:2/plane:0 loss 0.1% @1us", topology_);
  EXPECT_EQ(loss.kind, FaultKind::kLoss);
  EXPECT_EQ(loss.value, 0.001);
  EXPECT_EQ(parse_fault("t0:3/t1:2/plane:0 corrupt 1% @0", topology_).kind, FaultKind::kCorrupt);
}

TEST_F(FaultParse, AFlapHasATimeDownAndATimeUp) {
  const Fault flap = parse_fault("t0:3/t1:2/plane:0 flap 100us/300us @1ms for 10ms", topology_);
  EXPECT_EQ(flap.kind, FaultKind::kFlap);
  EXPECT_EQ(flap.flap_down_ps, 100 * kUs);
  EXPECT_EQ(flap.flap_up_ps, 300 * kUs);
  EXPECT_TRUE(flap.link_state_visible);
}

TEST_F(FaultParse, ABlackHoleSwallowsWhatASwitchSendsToOneNeighbour) {
  const Fault hole = parse_fault("t0:3/plane:0 blackhole t1:2 @10us", topology_);
  EXPECT_EQ(hole.kind, FaultKind::kBlackHole);
  EXPECT_FALSE(hole.link_state_visible);
  EXPECT_THAT(names(hole, topology_), ElementsAre("t0:3>t1:2/plane:0"));
  EXPECT_THAT(links_of("t0:0/plane:1 blackhole host:3 @0"), ElementsAre("t0:0>host:3/plane:1"));
}

TEST_F(FaultParse, AStarStandsForEveryNumber) {
  EXPECT_EQ(links_of("t0:*/t1:2/plane:0 down @0").size(), 2u * 4);
  EXPECT_EQ(links_of("t0:*/t1:*/plane:*  down @0").size(), 2u * 2 * 16);
  EXPECT_EQ(links_of("t1:*/plane:* loss 1% @0").size(), 2u * 2 * 16);
  EXPECT_EQ(links_of("host:7/plane:* down @0").size(), 2u * 2);
  EXPECT_EQ(links_of("t0:*/plane:0 blackhole t1:* @0").size(), 16u);
}

TEST_F(FaultParse, AFabricOfOnePlaneNeedsNoPlaneInTheName) {
  const Topology one(three_tier());
  EXPECT_THAT(names(parse_fault("t1:4/t2:5 down @0", one), one),
              UnorderedElementsAre("t1:4>t2:5/plane:0", "t2:5>t1:4/plane:0"));
  EXPECT_EQ(parse_fault("t0:*/t1:* down @0", one).links.size(), 2u * 6 * 3);
  EXPECT_THROW(parse_fault("t0:0/t1:3 down @0", one), InputError) << "of another pod";
}

TEST_F(FaultParse, AnErrorNamesTheFaultAndTheReason) {
  EXPECT_EQ(objection("t0:9/t1:2/plane:0 down @10us"),
            "fault 't0:9/t1:2/plane:0 down @10us': there is no t0:9, the fabric has t0:0 to t0:3");
}

TEST_F(FaultParse, TargetsThatNameNothingAreRefused) {
  EXPECT_THAT(objection(""), HasSubstr("the line ends where a target"));
  EXPECT_THAT(objection("down @0"), HasSubstr("'down' names no device"));
  EXPECT_THAT(objection("t3:1/plane:0 down @0"), HasSubstr("'t3:1' names no device"));
  EXPECT_THAT(objection("plane:0 down @0"), HasSubstr("'plane:0' names no device"));
  EXPECT_THAT(objection("t0:x/plane:0 down @0"), HasSubstr("needs a number or *"));
  EXPECT_THAT(objection("t0:-1/plane:0 down @0"), HasSubstr("needs a number or *"));
  EXPECT_THAT(objection("t0:/plane:0 down @0"), HasSubstr("needs a number or *"));
  EXPECT_THAT(objection("t0:1 down @0"), HasSubstr("names no plane"));
  EXPECT_THAT(objection("t0:1/plane:2 down @0"), HasSubstr("there is no plane:2"));
  EXPECT_THAT(objection("t0:3/t1:2/cable:1/plane:0 down @0"),
              HasSubstr("there is no cable:1, the fabric has cable:0 alone"));
  EXPECT_THAT(objection("t2:0/plane:0 down @0"),
              HasSubstr("there is no t2:0, the fabric has none"));
  EXPECT_THAT(objection("t2:*/plane:0 down @0"), HasSubstr("the fabric has none"));
  EXPECT_THAT(objection("host:0/t1:0/plane:0 down @0"),
              HasSubstr("no cable joins host:0 and t1:0"));
  EXPECT_THAT(objection("t0:0/t0:1/plane:0 down @0"), HasSubstr("no cable joins"));
  EXPECT_THAT(objection("host:0/t0:0/t1:0/plane:0 down @0"), HasSubstr("more than two devices"));
  EXPECT_THAT(objection("t0:1/plane:0/t1:1 down @0"), HasSubstr("nothing may follow the plane"));
  EXPECT_THAT(objection("t0:1>plane:0 down @0"), HasSubstr("names no device"));
  EXPECT_THAT(objection("t0:1/ down @0"), HasSubstr("ends too early"));
  EXPECT_THAT(objection("t0:1//plane:0 down @0"), HasSubstr("names no device"));
}

TEST_F(FaultParse, VerbsAndTheirArgumentsAreChecked) {
  const std::string cable = "t0:3/t1:2/plane:0 ";
  EXPECT_THAT(objection(cable), HasSubstr("the line ends where down, rate"));
  EXPECT_THAT(objection(cable + "melts @0"), HasSubstr("'melts' is no fault"));
  EXPECT_THAT(objection(cable + "rate @0"), HasSubstr("'@0' is no rate"));
  EXPECT_THAT(objection(cable + "rate 0% @0"), HasSubstr("above 0%"));
  EXPECT_THAT(objection(cable + "loss 101% @0"), HasSubstr("'101%' is no loss"));
  EXPECT_THAT(objection(cable + "loss 50 @0"), HasSubstr("'50' is no loss"));
  EXPECT_THAT(objection(cable + "flap 100us @0"), HasSubstr("is no flap"));
  EXPECT_THAT(objection(cable + "flap 0us/1us @0"), HasSubstr("is no time down"));
  EXPECT_THAT(objection(cable + "flap 1us/ @0"), HasSubstr("is no time up"));
  EXPECT_THAT(objection(cable + "blackhole t1:2 @0"), HasSubstr("only a switch"));
  EXPECT_THAT(objection("host:0/plane:0 blackhole t0:0 @0"), HasSubstr("only a switch"));
  EXPECT_THAT(objection("t0:0/plane:0 blackhole @0"), HasSubstr("'@0' names no device"));
  EXPECT_THAT(objection("t0:0/plane:0 blackhole host:9 @0"), HasSubstr("is no neighbour of t0:0"));
}

TEST_F(FaultParse, WithoutAStartItIsAtOnce) {
  const Fault for_ever = parse_fault("t0:3/t1:2/plane:0 down", topology_);
  EXPECT_EQ(for_ever.start_ps, 0);
  const Fault flat = parse_fault("t0:3/t1:2/plane:0 corrupt 0.03 for 2ms", topology_);
  EXPECT_EQ(flat.start_ps, 0);
  EXPECT_EQ(flat.duration_ps, 2'000'000'000);
  EXPECT_EQ(flat.value, parse_fault("t0:3/t1:2/plane:0 corrupt 3%", topology_).value);
}

TEST_F(FaultParse, TimesAreChecked) {
  const std::string down = "t0:3/t1:2/plane:0 down";
  EXPECT_THAT(objection(down + " 10us"), HasSubstr("expected the start, such as @10us"));
  EXPECT_THAT(objection(down + " @"), HasSubstr("'@' is no time"));
  EXPECT_THAT(objection(down + " @10"), HasSubstr("'@10' is no time"));
  EXPECT_THAT(objection(down + " @1us until 2us"), HasSubstr("expected 'for'"));
  EXPECT_THAT(objection(down + " @1us for"), HasSubstr("the line ends where a duration"));
  EXPECT_THAT(objection(down + " @1us for 0"), HasSubstr("is no duration"));
  EXPECT_THAT(objection(down + " @1us for ever"), HasSubstr("'ever' is no duration"));
  EXPECT_THAT(objection(down + " @1us for 1us now"), HasSubstr("not 'now'"));
}

TEST_F(FaultParse, AFileHasOneFaultPerLine) {
  const std::vector<Fault> plan = parse_fault_file(
      "# a bad day\n\n  t0:3/t1:2/plane:0 down @10us\r\n\t# later\nhost:7/plane:1 loss 1% @0",
      "day.txt", topology_);
  ASSERT_EQ(plan.size(), 2u);
  EXPECT_EQ(plan[0].text, "t0:3/t1:2/plane:0 down @10us");
  EXPECT_EQ(plan[1].kind, FaultKind::kLoss);
  EXPECT_TRUE(parse_fault_file("", "day.txt", topology_).empty());
}

TEST_F(FaultParse, AnErrorInAFileNamesTheLine) {
  try {
    parse_fault_file("\n# x\nt0:3/t1:2/plane:0 sings @0\n", "day.txt", topology_);
    FAIL() << "accepted";
  } catch (const InputError& error) {
    EXPECT_THAT(error.what(), HasSubstr("day.txt:3: 'sings' is no fault"));
  }
}

}  // namespace
}  // namespace mrc::fabric
