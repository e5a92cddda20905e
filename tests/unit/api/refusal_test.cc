#include "api/refusal.h"

#include <gtest/gtest.h>

#include <cerrno>
#include <cstdlib>

#include "api/guard.h"

namespace mrc::api {
namespace {

// The level of the log is read once for each process, so that each of these has one of its own.
class Refusal : public ::testing::Test {
 protected:
  void SetUp() override { GTEST_FLAG_SET(death_test_style, "threadsafe"); }

  [[noreturn]] static void call(const char* level, int (*body)()) {
    ::setenv("MRC_LOG_LEVEL", level, 1);
    ::unsetenv("MRC_LOG_FILE");
    std::exit(value_on_error(body) == EINVAL ? 0 : 1);
  }
};

int no_cqe() { return refused(EINVAL, "cqe", 0, "from 1 to the device's max_cqe"); }

TEST_F(Refusal, NamesFieldValueAndRule) {
  EXPECT_EXIT(call("info", no_cqe), ::testing::ExitedWithCode(0),
              "^mrc.* info: refused .EINVAL.: cqe 0: from 1 to the device's max_cqe\n$");
}

TEST_F(Refusal, WithoutAReasonNamesTheCall) {
  EXPECT_EXIT(call("info", [] { return EINVAL; }), ::testing::ExitedWithCode(0),
              "^mrc.* info: refused .EINVAL.: call: an argument or a handle");
}

TEST_F(Refusal, OfAFullDiskIsToldUnasked) {
  EXPECT_EXIT(
      {
        ::setenv("MRC_LOG_LEVEL", "warn", 1);
        const int code = minus_one_on_error([] { return ENOSPC; }, {EINVAL}, "mrc_ctl_modify_port");
        std::exit(code == -1 && errno == EIO ? 0 : 1);
      },
      ::testing::ExitedWithCode(0),
      "warn: mrc_ctl_modify_port: the state of the device cannot be written: No space left");
}

TEST_F(Refusal, IsSilentUnlessAskedFor) {
  EXPECT_EXIT(call("warn", no_cqe), ::testing::ExitedWithCode(0), "^$");
}

TEST_F(Refusal, IsNothingThatHappensInTheCourseOfThings) {
  EXPECT_EXIT(
      {
        ::setenv("MRC_LOG_LEVEL", "info", 1);
        std::exit(value_on_error([] { return EAGAIN; }) == EAGAIN ? 0 : 1);
      },
      ::testing::ExitedWithCode(0), "^$");
}

}  // namespace
}  // namespace mrc::api
