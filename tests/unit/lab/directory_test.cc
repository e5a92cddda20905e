#include "lab/directory.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <atomic>
#include <filesystem>
#include <stdexcept>
#include <string>
#include <system_error>
#include <thread>

namespace mrc::lab {
namespace {

std::string own_base() {
  return std::filesystem::temp_directory_path() /
         ("mrc-directory-test-" + std::to_string(getpid()));
}

TEST(LabDirectory, ItsLockIsHadOnce) {
  Directory first(own_base(), "once");
  Directory second(own_base(), "once");
  ASSERT_TRUE(first.lock());
  EXPECT_FALSE(second.lock());
  EXPECT_EQ(second.state(), Directory::State::kUp);
  first.remove();
  EXPECT_EQ(second.state(), Directory::State::kAbsent);
}

// `mrc lab down` waits for the lock of a lab that removes its folder, and the one around it, at the
// same time.
TEST(LabDirectory, WhoWaitsForTheLockSurvivesItsRemoval) {
  std::atomic<bool> over{false};
  const auto lock_and_remove = [&over] {
    for (unsigned i = 0; i < 2'000 && !over; ++i) {
      Directory directory(own_base(), "race");
      try {
        if (directory.lock()) directory.remove();
      } catch (const std::system_error& error) {
        over = true;
        ADD_FAILURE() << error.what();
      }
    }
  };
  std::thread other(lock_and_remove);
  lock_and_remove();
  other.join();
  EXPECT_FALSE(std::filesystem::exists(own_base()));
}

TEST(LabDirectory, AFolderWithoutALockIsALeftover) {
  const std::string base = own_base() + "-leftover";
  Directory directory(base, "lab");
  EXPECT_EQ(directory.state(), Directory::State::kAbsent);
  std::filesystem::create_directories(directory.path());
  EXPECT_EQ(directory.state(), Directory::State::kLeftover);
  std::filesystem::remove_all(base);
  // A file stands where the folder of labs would.
  EXPECT_EQ(Directory("/dev/null", "lab").state(), Directory::State::kAbsent);
}

// Links in a circle are refused to root as well, as folders of others are to everybody else.
TEST(LabDirectory, WhatMayNotBeLookedAtIsNotDead) {
  const std::string base = own_base() + "-closed";
  std::filesystem::create_directories(base);
  std::filesystem::create_symlink("lab", base + "/lab");
  try {
    Directory(base, "lab").state();
    ADD_FAILURE() << "it has a state";
  } catch (const std::runtime_error& error) {
    const std::string text = error.what();
    EXPECT_EQ(text.find("the lab in " + base + "/lab cannot be looked at: Too many levels"), 0U)
        << text;
  }
  std::filesystem::remove_all(base);
}

TEST(LabDirectory, APlaceThatCannotBeMadeIsAnError) {
  Directory directory("/proc/mrc-lab/nowhere", "lab");
  EXPECT_THROW(directory.lock(), std::system_error);
}

}  // namespace
}  // namespace mrc::lab
