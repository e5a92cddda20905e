#include "controller/setup_file.h"

#include <gtest/gtest.h>

#include <fstream>

#include "fabric/input_error.h"
#include "support/temporary_directory.h"

namespace mrc::controller {
namespace {

class SetupFile : public testing::Test {
 protected:
  controller::Setup read(const std::string& text) {
    std::ofstream(path_) << text;
    return read_setup(path_);
  }
  void expect_refused(const std::string& text, const std::string& part) {
    try {
      read(text);
      ADD_FAILURE() << "taken, though: " << part;
    } catch (const fabric::InputError& error) {
      EXPECT_NE(std::string(error.what()).find(part), std::string::npos) << error.what();
    }
  }

  test::TemporaryDirectory directory_;
  std::string path_ = directory_ / "controller.toml";
};

TEST_F(SetupFile, EverythingThereIs) {
  const controller::Setup setup = read(R"(
disabled_ports = [2, 4]
[[format]]
id = 1
mode = "stev"
widths = [16, 16]
[[ev_profile]]
id = 7
mode = "generated"
format = 1
count = 64
min_active = 8
events = "bad"
fields = ["16:0xC000:0x3FFF", "16:1"]
[[ev_profile]]
id = 8
mode = "explicit"
evs = ["1:00000001", "2:00000002"]
[[cc_profile]]
id = 3
eta = 0.5
[[deny]]
profile = 8
evs = ["0", "port=2"]
)");
  EXPECT_EQ(setup.disabled_ports, (std::vector<unsigned>{2, 4}));
  ASSERT_EQ(setup.formats.size(), 1U);
  EXPECT_EQ(setup.formats[0].widths, (std::vector<std::uint8_t>{16, 16}));
  ASSERT_EQ(setup.ev_profiles.size(), 2U);
  const EvSpec& generated = setup.ev_profiles[0];
  EXPECT_TRUE(generated.has_format);
  EXPECT_EQ(generated.count, 64U);
  EXPECT_EQ(generated.min_active, 8U);
  EXPECT_EQ(generated.event_mask, MRC_CTL_EV_ASSUMED_BAD);
  EXPECT_EQ(generated.fields.size(), 2U);
  EXPECT_FALSE(setup.ev_profiles[1].has_format);
  EXPECT_EQ(setup.ev_profiles[1].evs.size(), 2U);
  ASSERT_EQ(setup.cc_profiles.size(), 1U);
  EXPECT_FLOAT_EQ(setup.cc_profiles[0].config.eta, 0.5F);
  ASSERT_EQ(setup.denies.size(), 1U);
  EXPECT_EQ(setup.denies[0].evs, (std::vector<std::string>{"0", "port=2"}));
}

TEST_F(SetupFile, AnEmptyFileWantsNothing) {
  const controller::Setup setup = read("");
  EXPECT_TRUE(setup.formats.empty());
  EXPECT_TRUE(setup.ev_profiles.empty());
  EXPECT_TRUE(setup.cc_profiles.empty());
}

TEST_F(SetupFile, ErrorsNameFileAndPosition) {
  expect_refused("[[format]]\nid = 1\nmode = \"seven\"\n", path_ + ":3:8: the mode of a format");
  expect_refused("[[format]]\nid = 1\ncolour = 3\n", path_ + ":3:1: 'colour' means nothing");
  expect_refused("[[format]]\nmode = \"udp\"\n", "has no id");
  expect_refused("disabled_ports = [17]\n", "0 to 16");
  expect_refused("[[ev_profile]]\nid = 1\nevs = [\"0:01\"]\n", path_ + ":3:");
  expect_refused("[[ev_profile\n", path_);
}

TEST_F(SetupFile, IdsAreUniqueAndWhatIsReferredToIsThere) {
  expect_refused("[[cc_profile]]\nid = 1\n[[cc_profile]]\nid = 1\n", "id 1 is taken");
  expect_refused("[[deny]]\nprofile = 9\nevs = [\"all\"]\n", "no EV profile 9");
  expect_refused("[[ev_profile]]\nid = 9\n[[deny]]\nprofile = 9\n", "names no evs");
  expect_refused("[[deny]]\nevs = [\"all\"]\n", "has no profile");
}

TEST_F(SetupFile, ComparesByWhatIsAskedForAndNotByItsPlace) {
  const std::string text = "[[ev_profile]]\nid = 7\nevs = [\"1:00000001\"]\n";
  const controller::Setup first = read(text);
  const controller::Setup moved = read("\n\n" + text);
  EXPECT_NE(first.ev_profiles[0].place, moved.ev_profiles[0].place);
  EXPECT_TRUE(same(first.ev_profiles[0], moved.ev_profiles[0]));
  const controller::Setup other = read("[[ev_profile]]\nid = 7\nevs = [\"1:00000002\"]\n");
  EXPECT_FALSE(same(first.ev_profiles[0], other.ev_profiles[0]));
  const controller::Setup cc =
      read("[[cc_profile]]\nid = 1\neta = 0.5\n[[cc_profile]]\nid = 2\neta = 0.5\n");
  EXPECT_FALSE(same(cc.cc_profiles[0], cc.cc_profiles[1]));
}

}  // namespace
}  // namespace mrc::controller
