// Transactions on a device: from one setup to another, or not at all.
#include "controller/apply.h"

#include <gtest/gtest.h>

#include <fstream>

#include "controller/setup_keeper.h"
#include "controller/words.h"
#include "fabric/input_error.h"
#include "unit/api/api_fixture.h"

namespace mrc::controller {
namespace {

constexpr std::uint64_t kProfile = 7;
constexpr std::uint64_t kFormat = 1;  // of somebody else, and there all the time

EvSpec profile_of(std::uint64_t id, const std::vector<const char*>& evs) {
  EvSpec spec{.id = id,
              .mode = MRC_CTL_EV_MODE_EXP,
              .has_format = true,
              .format = kFormat,
              .min_active = 1};
  for (const char* const ev : evs)
    spec.evs.push_back(parse_ev(ev));
  return spec;
}

controller::Setup setup_of(std::vector<EvSpec> profiles, std::vector<DenySpec> denies = {}) {
  controller::Setup setup;
  setup.ev_profiles = std::move(profiles);
  setup.denies = std::move(denies);
  return setup;
}

class Apply : public testing::Test {
 protected:
  Apply() : node_(api_test::PrivateNode::instance()), session_("") {
    create(session_, FormatSpec{.id = kFormat, .widths = {16, 16}});
  }
  void TearDown() override {
    for (const std::uint64_t id : session_.ev_ids())
      remove(session_, Kind::kEv, id);
    for (const std::uint64_t id : session_.cc_ids())
      remove(session_, Kind::kCc, id);
    remove(session_, Kind::kFormat, kFormat);
  }

  std::string states_of(std::uint64_t id) const {
    std::string text;
    for (const mrc_ctl_ev_op_entry& entry : read_evs(session_, id))
      text += (text.empty() ? "" : " ") + std::string(ev_state_text(entry.state));
    return text;
  }
  bool exists(Kind kind, std::uint64_t id) const {
    return state_of(session_, kind, id) != MRC_CTL_PROFILE_INIT;
  }

  api_test::PrivateNode& node_;
  Session session_;
  const EvSpec two_ = profile_of(kProfile, {"1:00000001", "1:00000002"});
};

TEST_F(Apply, CreatesWhatIsWanted) {
  const Applied applied = apply_setup(session_, {}, setup_of({two_}));
  EXPECT_EQ(applied.created, 1U);
  EXPECT_EQ(states_of(kProfile), "good good");
}

TEST_F(Apply, WhatIsTheSameStays) {
  const controller::Setup setup = setup_of({two_});
  apply_setup(session_, {}, setup);
  const Applied again = apply_setup(session_, setup, setup);
  EXPECT_EQ(again.kept, 1U);
  EXPECT_EQ(again.created + again.removed, 0U);
}

TEST_F(Apply, WhatDiffersIsMadeAnew) {
  const controller::Setup before = setup_of({two_});
  apply_setup(session_, {}, before);
  const Applied applied =
      apply_setup(session_, before, setup_of({profile_of(kProfile, {"1:00000003"})}));
  EXPECT_EQ(applied.removed, 1U);
  EXPECT_EQ(applied.created, 1U);
  EXPECT_EQ(states_of(kProfile), "good");
}

TEST_F(Apply, WhatIsNoLongerWantedGoes) {
  const controller::Setup before = setup_of({two_});
  apply_setup(session_, {}, before);
  EXPECT_EQ(apply_setup(session_, before, {}).removed, 1U);
  EXPECT_FALSE(exists(Kind::kEv, kProfile));
}

TEST_F(Apply, DenialsComeAndGoWithTheSetup) {
  const controller::Setup denied = setup_of({two_}, {{.profile = kProfile, .evs = {"1"}}});
  apply_setup(session_, {}, denied);
  EXPECT_EQ(states_of(kProfile), "good denied");
  apply_setup(session_, denied, setup_of({two_}));
  EXPECT_EQ(states_of(kProfile), "good good");
}

TEST_F(Apply, AnIdOfSomebodyElseIsRefusedAndNothingChanges) {
  create(session_, two_);
  controller::Setup wanted = setup_of({profile_of(kProfile, {"1:00000009"})});
  wanted.cc_profiles.push_back({.id = 3});
  EXPECT_THROW(apply_setup(session_, {}, wanted), CtlError);
  EXPECT_FALSE(exists(Kind::kCc, 3));
  EXPECT_EQ(read_evs(session_, kProfile).size(), 2U);
}

// Everything was done but the last step, which names an EV that is not there.
TEST_F(Apply, AFailureAtTheEndUndoesEverything) {
  const controller::Setup before = setup_of({two_}, {{.profile = kProfile, .evs = {"0"}}});
  apply_setup(session_, {}, before);
  controller::Setup wanted =
      setup_of({profile_of(kProfile, {"1:00000005"}), profile_of(8, {"1:00000006"})},
               {{.profile = 8, .place = "file:9:1", .evs = {"4"}}});
  wanted.cc_profiles.push_back({.id = 3});
  try {
    apply_setup(session_, before, wanted);
    ADD_FAILURE() << "position 4 of a profile of one EV";
  } catch (const fabric::InputError& error) {
    EXPECT_EQ(std::string(error.what()).find("file:9:1: "), 0U) << error.what();
  }
  EXPECT_EQ(states_of(kProfile), "denied good");
  EXPECT_FALSE(exists(Kind::kEv, 8));
  EXPECT_FALSE(exists(Kind::kCc, 3));
}

TEST_F(Apply, AKeeperKnowsWhatAnEarlierOneHasSet) {
  const test::TemporaryDirectory directory;
  const std::string file = directory / "controller.toml";
  std::ofstream(file) << "[[ev_profile]]\nid = 7\nmode = \"explicit\"\nformat = 1\n"
                         "min_active = 1\nevs = [\"1:00000001\"]\n";
  EXPECT_EQ(SetupKeeper(session_).apply(file).created, 1U);
  EXPECT_EQ(SetupKeeper(session_).apply(file).kept, 1U);
  std::ofstream(file) << "[[cc_profile]]\nid = 3\n";
  const Applied changed = SetupKeeper(session_).apply(file);
  EXPECT_EQ(changed.removed, 1U);
  EXPECT_EQ(changed.created, 1U);
  EXPECT_FALSE(exists(Kind::kEv, kProfile));
}

// A process was killed between creating the second form of a profile and saying so; the file now
// wants the first one back.
TEST_F(Apply, AProfileThatMayHaveTwoFormsIsMadeAnew) {
  const controller::Setup first = setup_of({profile_of(kProfile, {"1:00000001"})});
  const controller::Setup second = setup_of({profile_of(kProfile, {"1:00000002"})});
  apply_setup(session_, {}, second);
  controller::Setup known = first;
  known.ev_profiles.push_back(second.ev_profiles.front());
  EXPECT_EQ(apply_setup(session_, known, first).created, 1U);
  EXPECT_EQ(ev_text(read_evs(session_, kProfile).front().ev, false), "1:00000001");
}

TEST_F(Apply, AKeeperDoesNotCallItsOwnWhatSomebodyElseMade) {
  create(session_, CcSpec{.id = 44});
  const test::TemporaryDirectory directory;
  const std::string file = directory / "controller.toml";
  std::ofstream(file) << "[[cc_profile]]\nid = 44\n";
  EXPECT_THROW(SetupKeeper(session_).apply(file), CtlError);
  EXPECT_THROW(SetupKeeper(session_).apply(file), CtlError) << "nor does the next one";
}

TEST_F(Apply, AKeeperGoesOnFromWhereItWasAfterABrokenFile) {
  const test::TemporaryDirectory directory;
  const std::string file = directory / "controller.toml";
  SetupKeeper keeper(session_);
  std::ofstream(file) << "[[cc_profile]]\nid = 3\n";
  keeper.apply(file);
  std::ofstream(file) << "[[cc_profile";
  EXPECT_THROW(keeper.apply(file), fabric::InputError);
  EXPECT_TRUE(exists(Kind::kCc, 3));
  std::ofstream(file) << "[[cc_profile]]\nid = 3\n";
  EXPECT_EQ(keeper.apply(file).kept, 1U);
}

}  // namespace
}  // namespace mrc::controller
