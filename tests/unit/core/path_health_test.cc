// The table of what follows from which signal, as code and as the documents print it.
#include "core/path_health.h"

#include <gtest/gtest.h>

#include <fstream>
#include <sstream>
#include <string>

#include "unit/core/path_set_fixture.h"

namespace mrc::core {
namespace {

using enum PathSignal;
using Outcome = PathHealth::Outcome;

struct Health {
  explicit Health(unsigned planes = 1, unsigned evs_per_plane = 4)
      : profile(striped_profile(planes, evs_per_plane)), health(profile) {}
  EvProfile profile;
  PathHealth health;
};

TEST(PathHealth, ALossMakesAnEvLeaveAndSpeaksAgainstIt) {
  Health h;
  EXPECT_EQ(h.health.on(kLost, ev_at(0)), Outcome::kMustLeave);
  EXPECT_EQ(h.health.standing(ev_at(0)), PathStanding::kInUse) << "the caller decides";
  h.health.go_bad(ev_at(0));
  EXPECT_EQ(h.health.on(kLost, ev_at(0)), Outcome::kStays);
  EXPECT_EQ(h.health.on(kSpuriousLoss, ev_at(0)), Outcome::kMayReturn);
}

TEST(PathHealth, EveryLossMustBeExcused) {
  Health h;
  h.health.go_bad(ev_at(0));
  h.health.on(kLost, ev_at(0));
  h.health.on(kLost, ev_at(0));
  EXPECT_EQ(h.health.on(kSpuriousLoss, ev_at(0)), Outcome::kStays);
  EXPECT_EQ(h.health.on(kSpuriousLoss, ev_at(0)), Outcome::kMayReturn);
}

TEST(PathHealth, NoExcuseHelpsAgainstTheWordOfThePeerOrASilentProbe) {
  Health h;
  for (const unsigned ev : {0U, 1U}) {
    h.health.go_bad(ev_at(ev));
    h.health.on(kLost, ev_at(ev));
  }
  h.health.on(kAlwaysSkip, ev_at(0));
  EXPECT_TRUE(h.health.is_doubtful(ev_at(0)));
  EXPECT_EQ(h.health.on(kSpuriousLoss, ev_at(0)), Outcome::kStays);
  h.health.on(kProbeSent, ev_at(1));
  h.health.on(kProbeSent, ev_at(1));
  EXPECT_EQ(h.health.on(kSpuriousLoss, ev_at(1)), Outcome::kStays);
}

TEST(PathHealth, TwoAnswersInARowBringAnEvBackOrOneWhereThatIsEnough) {
  Health h;
  h.health.go_bad(ev_at(0));
  EXPECT_EQ(h.health.on(kProbeAnswered, ev_at(0)), Outcome::kStays) << "nothing was asked";
  h.health.on(kProbeSent, ev_at(0));
  EXPECT_EQ(h.health.on(kProbeAnswered, ev_at(0)), Outcome::kAskAgain);
  h.health.on(kProbeSent, ev_at(0));
  EXPECT_EQ(h.health.on(kProbeAnswered, ev_at(0)), Outcome::kMayReturn);
  h.health.come_back(ev_at(0));
  h.health.go_bad(ev_at(0));
  h.health.on(kProbeSent, ev_at(0));
  EXPECT_EQ(h.health.on(kProbeAnswered, ev_at(0), true), Outcome::kMayReturn);
}

TEST(PathHealth, ForgetsProbesOfAPlaneThatWasAway) {
  Health h(2, 2);
  h.health.go_bad(ev_at(0));  // port 1
  h.health.go_bad(ev_at(1));  // port 2
  for (const unsigned ev : {0U, 1U})
    h.health.on(kProbeSent, ev_at(ev));
  h.health.forget_probes(port_at(1));
  EXPECT_FALSE(h.health.is_doubtful(ev_at(0)));
  EXPECT_TRUE(h.health.is_doubtful(ev_at(1)));
}

TEST(PathHealth, KnowsWhichIsBadForLongestOnEachPlane) {
  Health h(2, 3);
  for (const unsigned ev : {4U, 2U, 0U, 3U})
    h.health.go_bad(ev_at(ev));
  EXPECT_EQ(h.health.longest_bad(port_at(1)), ev_at(4));
  EXPECT_EQ(h.health.last_bad(port_at(1)), ev_at(0));
  h.health.come_back(ev_at(4));
  EXPECT_EQ(h.health.longest_bad(port_at(1)), ev_at(2));
  EXPECT_EQ(h.health.bad_count(), 3U);
  h.health.come_back(ev_at(3));
  EXPECT_EQ(h.health.longest_bad(port_at(2)), kNoEv);
  EXPECT_EQ(h.health.bad_ports(), PortMask::of(port_at(1)));
}

TEST(PathHealth, DenialIsTheControllersAlone) {
  Health h;
  EXPECT_EQ(h.health.on(kAllow, ev_at(1)), Outcome::kStays);
  EXPECT_EQ(h.health.on(kDeny, ev_at(1)), Outcome::kIsDenied);
  for (const PathSignal signal : {kLost, kAlwaysSkip, kSpuriousLoss, kProbeSent, kProbeAnswered})
    EXPECT_EQ(h.health.on(signal, ev_at(1), true), Outcome::kStays);
  EXPECT_EQ(h.health.on(kAllow, ev_at(1)), Outcome::kIsAllowed);
  h.health.go_bad(ev_at(1));
  EXPECT_EQ(h.health.on(kDeny, ev_at(1)), Outcome::kIsDenied);
  EXPECT_EQ(h.health.bad_count(), 0U);
}

std::string words(PathSignal signal) {
  switch (signal) {
    case kLost:
      return "a packet on it was lost";
    case kAlwaysSkip:
      return "the peer said ALWAYS_SKIP";
    case kSpuriousLoss:
      return "a declared loss was none";
    case kProbeSent:
      return "a probe leaves on it";
    case kProbeAnswered:
      return "a probe is answered";
    case kDeny:
      return "the controller denies it";
    case kAllow:
      return "the controller allows it";
  }
  return {};
}

std::string words(PathReaction reaction) {
  switch (reaction) {
    case PathReaction::kNone:
      return "-";
    case PathReaction::kLeave:
      return "ASSUMED_BAD, unless the floor needs it";
    case PathReaction::kCharge:
      return "one loss more";
    case PathReaction::kExcuse:
      return "one loss less; in use when it was the last and nothing else is known";
    case PathReaction::kBlame:
      return "blamed; answers in a row start anew";
    case PathReaction::kAwait:
      return "blamed if the one before is unanswered";
    case PathReaction::kCredit:
      return "in use after the second in a row";
    case PathReaction::kTakeOut:
      return "DENIED";
    case PathReaction::kLetIn:
      return "in use";
  }
  return {};
}

std::string table() {
  std::string text = "| signal | in use (GOOD, SKIP) | ASSUMED_BAD | DENIED |\n|---|---|---|---|\n";
  for (unsigned signal = 0; signal < kPathSignals; ++signal) {
    text += "| " + words(static_cast<PathSignal>(signal)) + " |";
    for (const auto& reactions : kReactions)
      text += " " + words(reactions[signal]) + " |";
    text += "\n";
  }
  return text;
}

TEST(PathHealth, TheDocumentsPrintTheTable) {
  const std::string source = __FILE__;
  const std::string root = source.substr(0, source.find("tests/unit/core"));
  std::ifstream file(root + "docs/protocol.md");
  std::stringstream text;
  text << file.rdbuf();
  EXPECT_NE(text.str().find(table()), std::string::npos) << "docs/protocol.md must contain\n"
                                                         << table();
}

}  // namespace
}  // namespace mrc::core
