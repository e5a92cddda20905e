// Transactions on a device: from one setup to another, or not at all.
#include "controller/apply.h"

#include <gtest/gtest.h>

#include "controller/words.h"
#include "fabric/input_error.h"
#include "unit/controller/apply_fixture.h"

namespace mrc::controller {
namespace {

using Apply = ApplyTest;

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

// A process was killed before it had changed anything: the device has what is wanted, and whoever
// uses it need not notice.
TEST_F(Apply, AProfileThatMayHaveTwoFormsStaysWhereItIsAsWanted) {
  controller::Setup wanted = setup_of({two_});
  wanted.formats.push_back({.id = 2, .widths = {8, 24}});
  wanted.ev_profiles.front().format = 2;
  wanted.cc_profiles.push_back({.id = 3, .algorithm = parse_algorithm("nscc")});
  wanted.cc_profiles.front().config.disable_qa = 2;
  apply_setup(session_, {}, wanted);
  controller::Setup known = wanted;
  known.formats.push_back({.id = 2, .widths = {32}});
  known.ev_profiles.push_back(profile_of(kProfile, {"1:00000009"}));
  known.cc_profiles.push_back({.id = 3});
  const Applied applied = apply_setup(session_, known, wanted);
  EXPECT_EQ(applied.kept, 3U);
  EXPECT_EQ(applied.created + applied.removed, 0U);
}

// How many EVs the device would choose it does not say, so eight may be its choice or the file's.
TEST_F(Apply, ACountLeftToTheDeviceIsNotGuessed) {
  const EvSpec eight{.id = kProfile, .count = 8, .min_active = 1};
  const EvSpec any{.id = kProfile, .min_active = 1};
  apply_setup(session_, {}, setup_of({eight}));
  EXPECT_EQ(apply_setup(session_, setup_of({any, eight}), setup_of({any})).created, 1U);
}

TEST_F(Apply, DenialsOfOldThatFitNothingDoNotMatter) {
  apply_setup(session_, {}, setup_of({two_}, {{.profile = kProfile, .evs = {"1"}}}));
  const controller::Setup known = setup_of(
      {two_}, {{.profile = kProfile, .evs = {"4", "nonsense", "1:0000beef", "port=3", "1"}}});
  EXPECT_EQ(apply_setup(session_, known, setup_of({two_})).kept, 1U);
  EXPECT_EQ(states_of(kProfile), "good good") << "the one that fits is given back";
}

TEST_F(Apply, AFailureGivesBackTheFormThatWasThere) {
  const EvSpec three = profile_of(kProfile, {"1:00000001", "1:00000002", "1:00000003"});
  apply_setup(session_, {}, setup_of({three}));
  EXPECT_THROW(apply_setup(session_, setup_of({two_, three}),
                           setup_of({profile_of(kProfile, {"1:00000005"})},
                                    {{.profile = kProfile, .evs = {"9"}}})),
               fabric::InputError);
  EXPECT_EQ(states_of(kProfile), "good good good");
}

// What a killed process may have denied was not denied in fact, and does not fit besides.
TEST_F(Apply, AFailureGivesBackTheDenialsThatWereThere) {
  const EvSpec three = profile_of(kProfile, {"1:00000001", "1:00000002", "1:00000003"});
  apply_setup(session_, {}, setup_of({three}, {{.profile = kProfile, .evs = {"0"}}}));
  set_ev_states(session_, kProfile, {parse_ev("1:00000003")}, MRC_CTL_EV_DENIED);  // by hand
  const controller::Setup known = setup_of({three, two_}, {{.profile = kProfile, .evs = {"0"}},
                                                           {.profile = kProfile, .evs = {"1"}},
                                                           {.profile = kProfile, .evs = {"5"}}});
  const std::vector<DenySpec> bad{{.profile = kProfile, .evs = {"9"}}};
  EXPECT_THROW(apply_setup(session_, known, setup_of({two_}, bad)), fabric::InputError);
  EXPECT_EQ(states_of(kProfile), "denied good denied") << "made anew";
  EXPECT_THROW(apply_setup(session_, known, setup_of({three}, bad)), fabric::InputError);
  EXPECT_EQ(states_of(kProfile), "denied good denied") << "kept";
}

// The EVs are drawn anew: what the file says of positions holds for the new ones.
TEST_F(Apply, AFailureGivesBackDenialsOfDrawnEvsByPosition) {
  const EvSpec drawn{.id = kProfile, .count = 3, .min_active = 1};
  const controller::Setup before = setup_of({drawn}, {{.profile = kProfile, .evs = {"0-1", "9"}}});
  apply_setup(session_, {}, setup_of({drawn}, {{.profile = kProfile, .evs = {"1"}}}));
  EXPECT_THROW(
      apply_setup(session_, before, setup_of({two_}, {{.profile = kProfile, .evs = {"9"}}})),
      fabric::InputError);
  EXPECT_EQ(states_of(kProfile), "good denied good");
}

TEST_F(Apply, AFailureLeavesPortsAsTheyWere) {
  set_port(session_, 2, false);  // by hand
  controller::Setup known;
  known.disabled_ports = {1, 16};  // of a process that was killed, and did not come to that
  controller::Setup wanted = setup_of({two_}, {{.profile = kProfile, .evs = {"9"}}});
  wanted.disabled_ports = {2};
  EXPECT_THROW(apply_setup(session_, known, wanted), fabric::InputError);
  EXPECT_TRUE(port_enabled(session_, 1));
  EXPECT_FALSE(port_enabled(session_, 2));
}

TEST_F(Apply, APortOfOldThatTheDeviceDoesNotHaveDoesNotMatter) {
  controller::Setup known;
  known.disabled_ports = {16};
  EXPECT_EQ(apply_setup(session_, known, setup_of({two_})).created, 1U);
}

// What was there is not what is known of it, and cannot be made again.
TEST_F(Apply, WhatCannotBeUndoneIsTold) {
  create(session_, two_);
  const controller::Setup known = setup_of({profile_of(kProfile, {"9:00000001"})});
  const controller::Setup wanted =
      setup_of({profile_of(kProfile, {"1:00000003"})}, {{.profile = kProfile, .evs = {"9"}}});
  try {
    apply_setup(session_, known, wanted);
    ADD_FAILURE() << "position 9 of a profile of one EV";
  } catch (const DeviceChanged& error) {
    const std::string line = error.what();
    EXPECT_NE(line.find("the profile has EVs 0 to 0"), std::string::npos) << line;
    EXPECT_NE(line.find("; not undone: EV profile 7: "), std::string::npos) << line;
  }
}

}  // namespace
}  // namespace mrc::controller
