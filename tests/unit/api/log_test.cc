#include "api/log.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <string>

namespace mrc::api {
namespace {

TEST(LogTest, FillsInThePlaceholdersOfAFileName) {
  const std::string process = std::to_string(getpid());
  EXPECT_EQ(log_file_name("/tmp/plain"), "/tmp/plain");
  EXPECT_EQ(log_file_name("a-%p.log"), "a-" + process + ".log");
  EXPECT_EQ(log_file_name("%%p%"), "%p%");
  EXPECT_EQ(log_file_name("%x"), "%x");
  std::string host(256, '\0');
  ASSERT_EQ(gethostname(host.data(), host.size() - 1), 0);
  EXPECT_EQ(log_file_name("%h"), host.c_str());
}

}  // namespace
}  // namespace mrc::api
