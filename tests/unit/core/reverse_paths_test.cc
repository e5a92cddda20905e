// Where answers go, and when there is doubt; PathSet's tests see the rest at work.
#include "core/reverse_paths.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <vector>

#include "unit/core/path_set_fixture.h"

namespace mrc::core {
namespace {

struct Answers {
  Answers(unsigned planes, unsigned evs_per_plane)
      : profile(striped_profile(planes, evs_per_plane)),
        rotation(profile, 0, nullptr, prng),
        health(profile),
        reverse(profile, rotation, 11) {}

  EvIndex choose(PortMask free_ports, unsigned preferred = 0) {
    return reverse.choose(rotation, health, prng, free_ports, usable, port_at(preferred));
  }
  void go_bad(unsigned ev) {
    rotation.leave(ev_at(ev), kNoEv, prng);
    health.go_bad(ev_at(ev));
  }

  Prng prng{5};
  EvProfile profile;
  Rotation rotation;
  PathHealth health;
  ReversePaths reverse;
  PortMask usable = kAllPorts;
};

TEST(ReversePaths, PreferThePlaneOfTheQuestion) {
  Answers answers(4, 2);
  for (unsigned i = 0; i < 8; ++i)
    EXPECT_EQ(answers.profile.port(answers.choose(kAllPorts, 3)), port_at(3));
}

TEST(ReversePaths, GiveEverySecondAnswerToTheLastSignOfLife) {
  Answers answers(1, 8);
  unsigned confirmed = 0;
  for (unsigned i = 0; i < 400; ++i) {
    if (i % 4 == 0) answers.reverse.confirm(ev_at(6));
    if (answers.choose(kAllPorts, 1) == ev_at(6)) ++confirmed;
  }
  EXPECT_GT(confirmed, 160U);
  EXPECT_LT(confirmed, 290U);
}

TEST(ReversePaths, GoNowhereWhileThePlanesInUseAreBusy) {
  Answers answers(2, 1);
  answers.go_bad(0);
  EXPECT_EQ(answers.choose(PortMask(0b01)), kNoEv);
  EXPECT_EQ(answers.choose(PortMask(0b11)), ev_at(1));
  answers.go_bad(1);
  EXPECT_EQ(answers.choose(PortMask(0b01)), ev_at(0)) << "nothing is in use any more";
}

TEST(ReversePaths, AreInDoubtAfterThirtyTwoSendsWithoutAnAnswer) {
  Answers answers(1, 2);
  for (unsigned i = 0; i < 31; ++i)
    answers.reverse.note_silence();
  EXPECT_FALSE(answers.reverse.in_doubt());
  answers.reverse.note_silence();
  EXPECT_TRUE(answers.reverse.hears_nothing());
  answers.reverse.note_life();
  EXPECT_FALSE(answers.reverse.in_doubt());
}

TEST(ReversePaths, AreInDoubtAfterEightQuestionsAndNothingNew) {
  Answers answers(1, 2);
  for (unsigned i = 0; i < 20; ++i)
    answers.reverse.on_asked_again();
  EXPECT_TRUE(answers.reverse.answers_in_doubt());
  for (unsigned i = 0; i < 8; ++i)
    answers.reverse.on_peer_progress();
  EXPECT_TRUE(answers.reverse.answers_in_doubt()) << "sixteen questions count at most";
  answers.reverse.on_peer_progress();
  EXPECT_FALSE(answers.reverse.answers_in_doubt());
}

TEST(ReversePaths, TryBadEvsInDoubtOnly) {
  Answers answers(2, 4);
  answers.go_bad(3);
  answers.go_bad(4);
  const auto used_of = [&answers](unsigned packets) {
    std::set<EvIndex> used;
    for (unsigned i = 0; i < packets; ++i)
      used.insert(answers.choose(kAllPorts));
    return used;
  };
  EXPECT_EQ(used_of(200).size(), 6U);
  for (unsigned i = 0; i < 8; ++i)
    answers.reverse.on_asked_again();
  EXPECT_EQ(used_of(200).size(), 8U);
}

TEST(ReversePaths, SweepAllPlanesInTurn) {
  Answers answers(4, 2);
  answers.usable = PortMask(0b0001);  // what the peer said of its ports does not count
  std::vector<unsigned> used(8);
  for (unsigned i = 0; i < 16; ++i)
    ++used[index_of(answers.reverse.sweep(answers.health, kAllPorts, answers.usable))];
  EXPECT_EQ(used, std::vector<unsigned>(8, 2));
  EXPECT_EQ(answers.reverse.sweep(answers.health, PortMask(0xFFF0), answers.usable), kNoEv);
}

}  // namespace
}  // namespace mrc::core
