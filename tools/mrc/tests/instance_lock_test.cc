#include "instance_lock.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/file.h>
#include <unistd.h>

#include <cstdlib>
#include <string>

namespace mrc::tool {
namespace {

class InstanceLockTest : public testing::Test {
 public:
  InstanceLockTest(const InstanceLockTest&) = delete;
  InstanceLockTest& operator=(const InstanceLockTest&) = delete;

 protected:
  InstanceLockTest() : file_(::mkstemp(path_.data())) { EXPECT_GE(file_, 0); }
  ~InstanceLockTest() override {
    ::close(file_);
    ::unlink(path_.c_str());
  }

  // Who holds it, when another holds it and has written this.
  int holder_after(const std::string& text) {
    EXPECT_EQ(::flock(file_, LOCK_EX), 0);
    EXPECT_EQ(::ftruncate(file_, 0), 0);
    EXPECT_EQ(::pwrite(file_, text.data(), text.size(), 0), static_cast<ssize_t>(text.size()));
    const InstanceLock lock(path_);
    EXPECT_FALSE(lock.held());
    return lock.holder();
  }

  std::string path_ = testing::TempDir() + "mrc-lock-XXXXXX";
  int file_;
};

TEST_F(InstanceLockTest, TellsWhoHoldsIt) {
  {
    const InstanceLock lock(path_);
    EXPECT_TRUE(lock.held());
    const InstanceLock second(path_);
    EXPECT_FALSE(second.held());
    EXPECT_EQ(second.holder(), ::getpid());
  }
  EXPECT_EQ(holder_after("4321\n"), 4321);
}

// A signal to 0, 1 or less would go to many processes.
TEST_F(InstanceLockTest, WhatIsNoProcessIsUnknown) {
  for (const char* text : {"", "\n", "0\n", "1\n", "-1\n", "-4321\n", "4321x\n", "x\n", "43",
                           "99999999999999999999\n"})
    EXPECT_EQ(holder_after(text), 0) << text;
}

}  // namespace
}  // namespace mrc::tool
