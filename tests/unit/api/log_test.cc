#include "api/log.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <string>
#include <vector>

#include "openmrc_log.h"

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

std::vector<std::string> heard;

void listen(openmrc_log_level level, const char* message) {
  heard.push_back(std::to_string(level) + " " + message);
}

TEST(LogTest, HandsMessagesToTheProgramAsLongAsItListens) {
  heard.clear();
  openmrc_set_log_function(listen);
  log(LogLevel::kError, "plane %d is gone", 3);
  log(LogLevel::kDebug, "not shown at the usual level");
  openmrc_set_log_function(nullptr);
  log(LogLevel::kError, "nobody listens");
  EXPECT_EQ(heard, std::vector<std::string>{"1 plane 3 is gone"});
}

}  // namespace
}  // namespace mrc::api
