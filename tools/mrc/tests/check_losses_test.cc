#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "commands/check/transfer.h"

namespace mrc::tool::check {
namespace {

using doctor::Findings;
using doctor::Verdict;
using ::testing::HasSubstr;

perf::Losses of_one(const perf::QpLosses& qp) { return {.queue_pairs = {qp}}; }

Findings judged(const perf::Losses& losses, double most_loss = 0.001) {
  Findings findings;
  judge_losses(losses, "to peer", most_loss, findings);
  return findings;
}

TEST(CheckLosses, MoreThanTheShareIsBroken) {
  perf::QpLosses qp{
      .number = 0x12, .packets = 10'000, .by_path_order = 4, .by_time = 6, .lost = 10};
  EXPECT_EQ(judged(of_one(qp)).at(0).verdict, Verdict::kOk);
  qp.by_timeout = 1;
  qp.lost = 11;
  const Findings findings = judged(of_one(qp));
  ASSERT_EQ(findings.size(), 1u);
  EXPECT_EQ(findings[0].verdict, Verdict::kBroken);
  EXPECT_EQ(findings[0].what, "queue pair 0x12 to peer");
  EXPECT_THAT(findings[0].found,
              HasSubstr("lost 11 of 10,000 packets, 0.11 %; its sender missed by path order 4, "
                        "by time 6, by timeout 1"));
  EXPECT_FALSE(findings[0].fix.empty());
  EXPECT_EQ(judged(of_one(qp), 0.01).at(0).verdict, Verdict::kOk);
}

TEST(CheckLosses, WhatTheSenderMissedAndArrivedIsNotLost) {
  perf::Losses own = of_one({.packets = 1'000, .by_time = 100, .arrived = 480});
  perf::Losses theirs =
      of_one({.packets = 500, .by_time = 9, .trimmed = 7, .refused = 3, .arrived = 1'000});
  perf::settle(own, theirs);
  EXPECT_EQ(own.queue_pairs[0].lost, 0u);
  EXPECT_EQ(theirs.queue_pairs[0].lost, 10u);  // 500 without 480, 7 and 3
  EXPECT_EQ(judged(own).at(0).verdict, Verdict::kOk);
  EXPECT_EQ(judged(theirs).at(0).verdict, Verdict::kBroken);
  EXPECT_EQ(judged(of_one({})).at(0).verdict, Verdict::kOk);  // nothing was sent
}

// A busy host takes for lost what comes late, on any plane.
TEST(CheckLosses, APlaneLosesWhatWasSentAndDidNotArrive) {
  perf::Losses own = of_one({.packets = 100, .arrived = 100});
  perf::Losses theirs = of_one({.packets = 100, .arrived = 70});
  own.planes = {{.plane = 0, .sent = 50, .arrived = 49}, {.plane = 1, .sent = 60, .arrived = 50}};
  theirs.planes = {{.plane = 1, .sent = 50, .arrived = 30}, {.plane = 2, .sent = 9}};
  perf::settle(own, theirs);
  EXPECT_EQ(own.planes[0].lost, 0u);  // the peer does not tell
  EXPECT_EQ(own.planes[1].lost, 30u);
  EXPECT_EQ(theirs.planes[0].lost, 0u);
  EXPECT_EQ(theirs.planes[1].lost, 0u);
  EXPECT_THAT(judged(own).at(0).found, HasSubstr("plane 1 has 100.0 %"));
}

TEST(CheckLosses, NameThePlaneWithMost) {
  perf::Losses losses = of_one({.number = 1, .packets = 100, .lost = 20});
  EXPECT_THAT(judged(losses).at(0).found, Not(HasSubstr("plane")));
  losses.planes = {{.plane = 1, .lost = 1}, {.plane = 2, .lost = 19}, {.plane = 3, .lost = 0}};
  EXPECT_THAT(judged(losses).at(0).found, HasSubstr("plane 2 has 95.0 %"));
}

TEST(CheckLosses, BadPathsAreOneLinePerPlane) {
  perf::Losses losses{.queue_pairs = {{.number = 7, .packets = 100, .paths = 32, .paths_bad = 6}},
                      .planes = {{.plane = 1}, {.plane = 2}}};
  for (std::uint32_t entropy = 1; entropy <= 5; ++entropy)
    losses.bad_paths.push_back({.queue_pair = 7, .plane = 2, .entropy = entropy});
  losses.bad_paths.push_back({.queue_pair = 7, .plane = 4, .entropy = 9});
  const Findings findings = judged(losses);
  ASSERT_EQ(findings.size(), 3u);
  EXPECT_EQ(findings[1].what, "plane 2 to peer");
  EXPECT_EQ(findings[1].found,
            "5 paths are bad at the end: 0x7/0x1, 0x7/0x2, 0x7/0x3, 0x7/0x4 ... (queue pair/EV)");
  EXPECT_EQ(findings[2].found, "1 path is bad at the end: 0x7/0x9 (queue pair/EV)");
  EXPECT_EQ(findings[2].verdict, Verdict::kBroken);
}

TEST(CheckLosses, BadPathsOfASilentProcessAreFoundByQueuePair) {
  const Findings findings =
      judged(of_one({.number = 7, .packets = 1, .paths = 32, .paths_bad = 6}));
  ASSERT_EQ(findings.size(), 2u);
  EXPECT_EQ(findings[1].found, "6 of 32 paths are bad at the end");
}

}  // namespace
}  // namespace mrc::tool::check
