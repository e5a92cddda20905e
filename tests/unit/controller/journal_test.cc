#include "controller/journal.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <stdexcept>

#include "support/temporary_directory.h"

namespace mrc::controller {
namespace {

class JournalTest : public testing::Test {
 protected:
  static std::string text_with_ids(const std::vector<int>& ids) {
    std::string text;
    for (const int id : ids)
      text += "[[cc_profile]]\nid = " + std::to_string(id) + "\n";
    return text;
  }
  std::vector<std::uint64_t> known_ids() const {
    std::vector<std::uint64_t> ids;
    const controller::Setup known = journal_.known();
    for (const CcSpec& spec : known.cc_profiles)
      ids.push_back(spec.id);
    return ids;
  }
  using Ids = std::vector<std::uint64_t>;

  test::TemporaryDirectory directory_;
  Journal journal_{directory_.path()};
};

TEST_F(JournalTest, NothingIsKnownAtFirst) { EXPECT_EQ(known_ids(), Ids{}); }

TEST_F(JournalTest, WhatWasAppliedIsKnown) {
  journal_.begin(text_with_ids({1, 2}));
  journal_.commit();
  EXPECT_EQ(known_ids(), (Ids{1, 2}));
}

TEST_F(JournalTest, WhatWasBegunMayBeThereAsWell) {
  journal_.begin(text_with_ids({1, 2}));
  journal_.commit();
  journal_.begin(text_with_ids({2, 3}));
  EXPECT_EQ(known_ids(), (Ids{1, 2, 3}));
}

TEST_F(JournalTest, WhatWasAbandonedIsForgotten) {
  journal_.begin(text_with_ids({1}));
  journal_.commit();
  journal_.begin(text_with_ids({2}));
  journal_.abandon();
  EXPECT_EQ(known_ids(), (Ids{1}));
}

TEST_F(JournalTest, WhatSeveralKilledProcessesBeganIsKnown) {
  Journal(directory_.path()).begin(text_with_ids({1}));
  Journal(directory_.path()).begin(text_with_ids({2}));
  EXPECT_EQ(known_ids(), (Ids{1, 2}));
  journal_.begin(text_with_ids({3}));
  EXPECT_EQ(known_ids(), (Ids{1, 2, 3}));
  journal_.commit();
  EXPECT_EQ(known_ids(), (Ids{3})) << "the rest has been removed from the device";
}

TEST_F(JournalTest, AnotherFormOfTheSameIdIsKnownAsWell) {
  journal_.begin(text_with_ids({1}));
  journal_.commit();
  journal_.begin("[[cc_profile]]\nid = 1\nalgorithm = \"none\"\n");
  EXPECT_EQ(known_ids(), (Ids{1, 1}));
}

TEST_F(JournalTest, TheSameFileAgainIsOneRecord) {
  const std::string text = text_with_ids({1});
  for (int start = 0; start < 3; ++start)
    Journal(directory_.path()).begin(text);
  EXPECT_TRUE(std::filesystem::exists(directory_ / "controller.begun.1.toml"));
  EXPECT_FALSE(std::filesystem::exists(directory_ / "controller.begun.2.toml"));
  journal_.begin(text);
  journal_.abandon();
  EXPECT_EQ(known_ids(), (Ids{1})) << "one before us may have created it";
}

TEST_F(JournalTest, AProcessKilledWhileItWritesForgetsNothing) {
  Journal(directory_.path()).begin(text_with_ids({1}));
  std::ofstream(directory_ / "controller.begun.2.toml.new") << "[[cc_prof";
  EXPECT_EQ(known_ids(), (Ids{1}));
}

TEST_F(JournalTest, ABrokenFileCountsAsNone) {
  std::ofstream(directory_ / "controller.toml") << "[[cc_profile";
  EXPECT_EQ(known_ids(), Ids{});
}

TEST_F(JournalTest, WhatCannotBeWrittenIsAnError) {
  EXPECT_THROW(Journal(directory_ / "missing").begin(text_with_ids({1})), std::runtime_error);
  EXPECT_THROW(journal_.commit(), std::runtime_error);
}

TEST_F(JournalTest, FilesThatWeDoNotWriteAreNoRecords) {
  for (const char* const name : {"007", "0", "+7", "7x", "-1", "", "99999999999"}) {
    const std::string path = std::string("controller.begun.") + name + ".toml";
    std::ofstream(directory_ / path) << text_with_ids({9});
  }
  std::ofstream(directory_ / "controller.begun.toml") << text_with_ids({9});
  EXPECT_EQ(known_ids(), Ids{});
  journal_.begin(text_with_ids({1}));
  EXPECT_EQ(known_ids(), (Ids{1}));
  journal_.commit();
  EXPECT_TRUE(std::filesystem::exists(directory_ / "controller.begun.007.toml"));
}

TEST_F(JournalTest, NumbersDoNotRunOut) {
  std::ofstream(directory_ / "controller.begun.4294967295.toml") << text_with_ids({9});
  journal_.begin(text_with_ids({1}));
  EXPECT_EQ(known_ids(), (Ids{1, 9}));
  journal_.commit();
  EXPECT_EQ(known_ids(), (Ids{1}));
}

TEST_F(JournalTest, FilesThatTakeTurnsLeaveOneRecordEach) {
  for (int start = 0; start < 3; ++start) {
    Journal(directory_.path()).begin(text_with_ids({1}));
    Journal(directory_.path()).begin(text_with_ids({2}));
  }
  EXPECT_FALSE(std::filesystem::exists(directory_ / "controller.begun.3.toml"));
  EXPECT_EQ(known_ids(), (Ids{1, 2}));
}

}  // namespace
}  // namespace mrc::controller
