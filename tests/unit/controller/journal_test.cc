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
  std::string file_with_ids(const std::string& name, const std::vector<int>& ids) {
    const std::string path = directory_ / name;
    std::ofstream file(path);
    for (const int id : ids)
      file << "[[cc_profile]]\nid = " << id << "\n";
    return path;
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
  journal_.begin(file_with_ids("wanted.toml", {1, 2}));
  journal_.commit();
  EXPECT_EQ(known_ids(), (Ids{1, 2}));
}

TEST_F(JournalTest, WhatWasBegunMayBeThereAsWell) {
  journal_.begin(file_with_ids("first.toml", {1, 2}));
  journal_.commit();
  journal_.begin(file_with_ids("second.toml", {2, 3}));
  EXPECT_EQ(known_ids(), (Ids{1, 2, 3}));
}

TEST_F(JournalTest, WhatWasAbandonedIsForgotten) {
  journal_.begin(file_with_ids("first.toml", {1}));
  journal_.commit();
  journal_.begin(file_with_ids("second.toml", {2}));
  journal_.abandon();
  EXPECT_EQ(known_ids(), (Ids{1}));
}

TEST_F(JournalTest, WhatSeveralKilledProcessesBeganIsKnown) {
  Journal(directory_.path()).begin(file_with_ids("first.toml", {1}));
  Journal(directory_.path()).begin(file_with_ids("second.toml", {2}));
  EXPECT_EQ(known_ids(), (Ids{1, 2}));
  journal_.begin(file_with_ids("third.toml", {3}));
  EXPECT_EQ(known_ids(), (Ids{1, 2, 3}));
  journal_.commit();
  EXPECT_EQ(known_ids(), (Ids{3})) << "the rest has been removed from the device";
}

TEST_F(JournalTest, AnotherFormOfTheSameIdIsKnownAsWell) {
  journal_.begin(file_with_ids("first.toml", {1}));
  journal_.commit();
  const std::string file = directory_ / "second.toml";
  std::ofstream(file) << "[[cc_profile]]\nid = 1\nalgorithm = \"none\"\n";
  journal_.begin(file);
  EXPECT_EQ(known_ids(), (Ids{1, 1}));
}

TEST_F(JournalTest, TheSameFileAgainIsOneRecord) {
  const std::string file = file_with_ids("wanted.toml", {1});
  for (int start = 0; start < 3; ++start)
    Journal(directory_.path()).begin(file);
  EXPECT_TRUE(std::filesystem::exists(directory_ / "controller.begun.1.toml"));
  EXPECT_FALSE(std::filesystem::exists(directory_ / "controller.begun.2.toml"));
  journal_.begin(file);
  journal_.abandon();
  EXPECT_EQ(known_ids(), (Ids{1})) << "one before us may have created it";
}

TEST_F(JournalTest, AProcessKilledWhileItWritesForgetsNothing) {
  Journal(directory_.path()).begin(file_with_ids("first.toml", {1}));
  std::ofstream(directory_ / "controller.begun.2.toml.new") << "[[cc_prof";
  EXPECT_EQ(known_ids(), (Ids{1}));
}

TEST_F(JournalTest, ABrokenFileCountsAsNone) {
  std::ofstream(directory_ / "controller.toml") << "[[cc_profile";
  EXPECT_EQ(known_ids(), Ids{});
}

TEST_F(JournalTest, WhatCannotBeWrittenIsAnError) {
  EXPECT_THROW(journal_.begin(directory_ / "missing.toml"), std::runtime_error);
  EXPECT_THROW(journal_.commit(), std::runtime_error);
}

}  // namespace
}  // namespace mrc::controller
