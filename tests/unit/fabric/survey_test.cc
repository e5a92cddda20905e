#include "fabric/survey.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <map>

#include "fabric/input_error.h"

namespace mrc::fabric {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

constexpr const char* kCable = "t0:0/t1:2/plane:1";
constexpr const char* kOther = "t0:1/t1:0/plane:0";

TopologySpec small() { return {.planes = 2, .hosts = 4, .t0 = 2, .t1 = 4}; }

using Losses = std::map<std::string, double>;  // of one crossing, by part

// What each host counts in one look, to the nearest probe.
std::vector<HostResults> look(std::uint64_t probes, const Losses& losses) {
  const Topology topology(small());
  std::vector<HostResults> results;
  for (unsigned host = 0; host < topology.hosts(); ++host) {
    HostResults own{.fabric = small(), .host = host};
    for (const Loop& loop : loops_of(topology, host, true)) {
      double share = 1;
      for (const Crossing& crossing : crossings(topology, loop)) {
        const auto found = losses.find(part_name(crossing.part));
        if (found != losses.end()) share *= std::pow(1 - found->second, crossing.times);
      }
      const double answered = static_cast<double>(probes) * share;
      own.loops.push_back({loop, probes, static_cast<std::uint64_t>(std::lround(answered))});
    }
    results.push_back(own);
  }
  return results;
}

std::vector<std::string> names(const std::vector<Finding>& findings) {
  std::vector<std::string> list;
  for (const Finding& finding : findings)
    list.push_back(part_name(finding.part) + (finding.down() ? " down" : " lossy"));
  return list;
}

TEST(Survey, AddsUpWhatAllHostsCounted) {
  const std::vector<HostResults> once = look(100, {{kCable, 1.0}});
  std::vector<HostResults> twice = once;
  twice.insert(twice.end(), once.begin(), once.end());
  const Survey single = survey(once);
  const Survey both = survey(twice);
  EXPECT_THAT(both.hosts, ElementsAre(0, 1, 2, 3));
  EXPECT_EQ(both.loops, single.loops);
  EXPECT_EQ(both.sent, 2 * single.sent);
  EXPECT_EQ(both.answered, 2 * single.answered);
  EXPECT_LT(single.answered, single.sent);
  EXPECT_THAT(names(both.diagnosis.findings), ElementsAre(std::string(kCable) + " down"));
}

TEST(Survey, NeedsResultsOfOneFabric) {
  EXPECT_THROW(survey({}), InputError);
  std::vector<HostResults> results = look(10, {});
  results.back().fabric.t1 = 8;
  EXPECT_THROW(survey(results), InputError);
  results.back().fabric = small();
  results.back().fabric.host_link.bits_per_second = 1;  // rates do not matter
  EXPECT_NO_THROW(survey(results));
}

// A loss that one look is too short for.
TEST(SurveyWindow, LossesAddUpOverTheWindow) {
  const Losses grey = {{kCable, 0.01}};
  SurveyWindow window({.every_s = 1, .window_s = 10});
  window.add(look(50, grey));
  EXPECT_THAT(window.survey().diagnosis.findings, IsEmpty());
  for (int i = 0; i < 9; ++i)
    window.add(look(50, grey));
  EXPECT_THAT(names(window.survey().diagnosis.findings),
              ElementsAre(std::string(kCable) + " lossy"));
}

TEST(SurveyWindow, WhatIsDownIsDownInTheLookThatSeesIt) {
  SurveyWindow window({.every_s = 1, .window_s = 10});
  for (int i = 0; i < 9; ++i)
    window.add(look(50, {}));
  window.add(look(50, {{kCable, 1.0}}));
  const Survey now = window.survey();
  EXPECT_THAT(names(now.diagnosis.findings), ElementsAre(std::string(kCable) + " down"));
}

TEST(SurveyWindow, ForgetsWhatIsOlder) {
  SurveyWindow window({.every_s = 1, .window_s = 3});
  window.add(look(50, {{kCable, 1.0}}));
  window.add(look(50, {}));
  window.add(look(50, {}));
  EXPECT_THAT(names(window.survey().diagnosis.findings),
              ElementsAre(std::string(kCable) + " lossy"));
  EXPECT_EQ(window.survey().sent, 3 * survey(look(50, {})).sent);
  window.add(look(50, {}));
  EXPECT_THAT(window.survey().diagnosis.findings, IsEmpty());
  EXPECT_EQ(window.survey().sent, 3 * survey(look(50, {})).sent);
}

TEST(ChangeTracker, TellsEachFaultOnceAndWhenItIsOver) {
  const auto diagnosis = [](const Losses& losses) { return survey(look(500, losses)).diagnosis; };
  const Losses both = {{kCable, 1.0}, {kOther, 0.1}};
  ChangeTracker changes;
  EXPECT_EQ(changes.update(diagnosis({})).faults.size(), 0U);
  EXPECT_THAT(names(changes.update(diagnosis({{kOther, 0.1}})).faults),
              ElementsAre(std::string(kOther) + " lossy"));
  EXPECT_THAT(names(changes.update(diagnosis(both)).faults),
              ElementsAre(std::string(kCable) + " down"));
  EXPECT_EQ(changes.update(diagnosis(both)).faults.size(), 0U);
  const News over = changes.update(diagnosis({{kOther, 0.1}}));
  EXPECT_THAT(over.faults, IsEmpty());
  EXPECT_THAT(over.healed, ElementsAre(kCable));
}

TEST(ChangeTracker, GoingDownIsNewsAndRecoveringSlowlyIsNot) {
  const auto diagnosis = [](double loss) { return survey(look(500, {{kCable, loss}})).diagnosis; };
  ChangeTracker changes;
  EXPECT_EQ(changes.update(diagnosis(0.1)).faults.size(), 1U);
  EXPECT_EQ(changes.update(diagnosis(0.7)).faults.size(), 1U);
  const News down = changes.update(diagnosis(1.0));
  ASSERT_EQ(down.faults.size(), 1U);
  EXPECT_TRUE(down.faults[0].silent());
  EXPECT_EQ(changes.update(diagnosis(1.0)).faults.size(), 0U);
  EXPECT_EQ(changes.update(diagnosis(0.3)).faults.size(), 0U);
  EXPECT_THAT(changes.update(diagnosis(0)).healed, ElementsAre(kCable));
}

}  // namespace
}  // namespace mrc::fabric
