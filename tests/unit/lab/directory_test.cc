#include "lab/directory.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <atomic>
#include <filesystem>
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

TEST(LabDirectory, APlaceThatCannotBeMadeIsAnError) {
  Directory directory("/proc/mrc-lab/nowhere", "lab");
  EXPECT_THROW(directory.lock(), std::system_error);
}

}  // namespace
}  // namespace mrc::lab
