#include "controller/healing.h"

#include <gtest/gtest.h>

namespace mrc::controller {
namespace {

using Kind = Proposal::Kind;
using Names = std::set<std::string>;

constexpr HealingPolicy kPolicy{.least_loss = 0.001, .deny_after = 3, .allow_after = 4, .limit = 2};

Look losing(const std::vector<std::string>& parts, double loss = 0.01) {
  Look look;
  for (const std::string& part : parts)
    look.faults.push_back({.part = part, .loss = loss});
  return look;
}

// Does what is proposed, as whoever asks does.
class Fabric {
 public:
  explicit Fabric(const HealingPolicy& policy = kPolicy) : healing_(policy) {}

  std::vector<Proposal> look(const Look& look, const Names& others = {}) {
    auto proposals = healing_.take(look, denied, others);
    for (const Proposal& proposal : proposals) {
      if (proposal.kind == Kind::kDeny && refuses.contains(proposal.part)) {
        healing_.refused(proposal.part);
        continue;
      }
      if (proposal.kind == Kind::kDeny) denied.insert(proposal.part);
      if (proposal.kind == Kind::kAllow) denied.erase(proposal.part);
    }
    return proposals;
  }
  // How many such looks it takes until something is proposed.
  unsigned looks_until_news(const Look& what) {
    for (unsigned count = 1; count < 1'000; ++count)
      if (!look(what).empty()) return count;
    return 0;
  }

  Names denied;
  Names refuses;

 private:
  Healing healing_;
};

TEST(Healing, DeniesWhatIsAtFaultInSeveralLooksInARow) {
  Fabric fabric;
  EXPECT_TRUE(fabric.look(losing({"a"})).empty());
  EXPECT_TRUE(fabric.look(losing({"a"})).empty());
  EXPECT_TRUE(fabric.look({}).empty());
  EXPECT_EQ(fabric.looks_until_news(losing({"a"})), kPolicy.deny_after);
  EXPECT_EQ(fabric.denied, Names{"a"});
}

TEST(Healing, LeavesAloneWhatLosesLittleOrIsNotTheOnlySuspect) {
  Fabric fabric;
  Look unsure = losing({"a"});
  unsure.faults[0].certain = false;
  unsure.in_doubt = {"b"};
  EXPECT_EQ(fabric.looks_until_news(losing({"a"}, 0.0009)), 0U);
  EXPECT_EQ(fabric.looks_until_news(unsure), 0U);
}

TEST(Healing, GivesBackWhatIsSoundForLongAndLaterEachTime) {
  Fabric fabric;
  fabric.looks_until_news(losing({"a"}));
  for (unsigned times = 0; times < 3; ++times) {
    EXPECT_EQ(fabric.looks_until_news({}), kPolicy.allow_after << times);
    EXPECT_TRUE(fabric.denied.empty());
    EXPECT_EQ(fabric.looks_until_news(losing({"a"})), kPolicy.deny_after);
  }
}

TEST(Healing, DoesNotWaitForEverHoweverOftenItFailed) {
  Fabric fabric;
  for (unsigned times = 0; times < 20; ++times) {
    fabric.looks_until_news(losing({"a"}));
    EXPECT_LE(fabric.looks_until_news({}), kPolicy.allow_after << 5);
  }
}

TEST(Healing, APartThatStaysSoundBeginsAnew) {
  Fabric fabric;
  fabric.looks_until_news(losing({"a"}));
  fabric.looks_until_news({});
  for (unsigned i = 0; i < 8 * kPolicy.allow_after; ++i)
    EXPECT_TRUE(fabric.look({}).empty());
  fabric.looks_until_news(losing({"a"}));
  EXPECT_EQ(fabric.looks_until_news({}), kPolicy.allow_after);
}

TEST(Healing, ALookThatFindsItAtFaultOrDoesNotSeeItStartsTheCountAnewOrStopsIt) {
  Fabric fabric;
  fabric.looks_until_news(losing({"a"}));
  for (unsigned i = 1; i < kPolicy.allow_after; ++i)
    EXPECT_TRUE(fabric.look({}).empty());
  EXPECT_TRUE(fabric.look(losing({"a"})).empty());
  EXPECT_TRUE(fabric.look({}).empty());
  Look unseen;
  unseen.in_doubt = {"a"};
  EXPECT_EQ(fabric.looks_until_news(unseen), 0U);
  EXPECT_EQ(fabric.looks_until_news({}), kPolicy.allow_after - 1);
}

TEST(Healing, KeepsToTheLimitAndSaysSoOnce) {
  Fabric fabric;
  const Look three = losing({"a", "b", "c"});
  std::vector<Proposal> all;
  for (unsigned i = 0; i < 10; ++i)
    for (const Proposal& proposal : fabric.look(three))
      all.push_back(proposal);
  EXPECT_EQ(fabric.denied, (Names{"a", "b"}));
  ASSERT_EQ(all.size(), 3U);
  EXPECT_EQ(all[2].kind, Kind::kOverLimit);
  EXPECT_EQ(all[2].part, "c");
  // When one of them comes back there is room.
  EXPECT_EQ(fabric.looks_until_news(losing({"b", "c"})), kPolicy.allow_after);
  EXPECT_EQ(fabric.denied, (Names{"b", "c"}));
}

TEST(Healing, TheWorstGoesFirst) {
  HealingPolicy one = kPolicy;
  one.limit = 1;
  Fabric fabric(one);
  Look look = losing({"a"});
  look.faults.push_back({.part = "b", .loss = 0.5});
  EXPECT_EQ(fabric.looks_until_news(look), kPolicy.deny_after);
  EXPECT_EQ(fabric.denied, Names{"b"});
}

TEST(Healing, WhatOthersDrainedIsTheirs) {
  Fabric fabric;
  for (unsigned i = 0; i < 10; ++i)
    EXPECT_TRUE(fabric.look(losing({"a"}), {"a"}).empty());
  for (unsigned i = 0; i < 100; ++i)
    EXPECT_TRUE(fabric.look({}, {"a"}).empty());
}

TEST(Healing, WhatWasRefusedIsProposedAgainLaterAndIsInNobodysWay) {
  HealingPolicy one = kPolicy;
  one.limit = 1;
  Fabric fabric(one);
  fabric.refuses = {"a"};
  Look look = losing({"b"});
  look.faults.push_back({.part = "a", .loss = 0.5});
  EXPECT_EQ(fabric.looks_until_news(look), kPolicy.deny_after);
  EXPECT_EQ(fabric.looks_until_news(look), 1U);
  EXPECT_EQ(fabric.denied, Names{"b"});
  fabric.denied.clear();
  EXPECT_EQ(fabric.looks_until_news(losing({"a"})), kPolicy.allow_after - 1);
}

TEST(Healing, TakesOverWhatWasDeniedBeforeItBegan) {
  Fabric fabric;
  fabric.denied = {"a"};
  EXPECT_EQ(fabric.looks_until_news({}), kPolicy.allow_after);
}

}  // namespace
}  // namespace mrc::controller
