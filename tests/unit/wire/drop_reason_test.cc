#include "wire/drop_reason.h"

#include <gtest/gtest.h>

#include <set>
#include <string>

namespace mrc {
namespace {

TEST(DropReason, EveryReasonHasANameOfItsOwn) {
  std::set<std::string> names;
  for (std::size_t i = 0; i < kDropReasonCount; ++i) {
    const std::string name = drop_reason_name(static_cast<DropReason>(i));
    EXPECT_NE(name, "unknown") << i;
    EXPECT_EQ(name.find_first_not_of("abcdefghijklmnopqrstuvwxyz_"), std::string::npos) << name;
    EXPECT_TRUE(names.insert(name).second) << name;
  }
}

TEST(DropReason, ANumberThatIsNoReasonIsCalledUnknown) {
  EXPECT_STREQ(drop_reason_name(DropReason::kCount), "unknown");
  EXPECT_STREQ(drop_reason_name(static_cast<DropReason>(255)), "unknown");
}

TEST(DropReason, NamesThatToolsReadDoNotChange) {
  EXPECT_STREQ(drop_reason_name(DropReason::kNone), "none");
  EXPECT_STREQ(drop_reason_name(DropReason::kBadIcrc), "bad_icrc");
  EXPECT_STREQ(drop_reason_name(DropReason::kFarOutOfWindow), "far_out_of_window");
}

}  // namespace
}  // namespace mrc
