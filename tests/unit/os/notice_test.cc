#include "os/notice.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace mrc::os {
namespace {

std::vector<std::string>& heard() {
  static std::vector<std::string> lines;
  return lines;
}

TEST(Notice, GoesToTheSinkAndNowhereWithoutOne) {
  notice("before");
  set_notice_sink([](const char* line) { heard().emplace_back(line); });
  notice("with");
  set_notice_sink(nullptr);
  notice("after");
  EXPECT_EQ(heard(), std::vector<std::string>{"with"});
}

}  // namespace
}  // namespace mrc::os
