#include "core/work.h"

#include <gtest/gtest.h>

#include <set>
#include <string_view>

namespace mrc::core {
namespace {

TEST(CompletionStatusNames, EveryStatusHasOneOfItsOwn) {
  std::set<std::string_view> names;
  constexpr auto kLast = static_cast<std::uint8_t>(CompletionStatus::kLocalProtection);
  for (std::uint8_t i = 0; i <= kLast; ++i)
    names.insert(completion_status_name(CompletionStatus{i}));
  EXPECT_EQ(names.size(), kLast + 1U);
  EXPECT_EQ(names.count("unknown"), 0U);
  EXPECT_STREQ(completion_status_name(CompletionStatus{200}), "unknown");
}

TEST(CompletionStatusNames, SayWhatWentWrong) {
  EXPECT_STREQ(completion_status_name(CompletionStatus::kSuccess), "success");
  EXPECT_STREQ(completion_status_name(CompletionStatus::kRetryExceeded), "retry_exceeded");
  EXPECT_STREQ(completion_status_name(CompletionStatus::kRemoteAccess), "remote_access");
}

TEST(SendRequest, UsesAReceiveWithAnImmediateOrAsASend) {
  EXPECT_FALSE(SendRequest{}.uses_receive());
  EXPECT_TRUE(SendRequest{.with_immediate = true}.uses_receive());
  EXPECT_TRUE(SendRequest{.into_receive = true}.uses_receive());
}

TEST(SendKeys, AreTheTwoHighestAndNoOthers) {
  EXPECT_TRUE(is_send_key(Rkey{0xFFFF'FFFE}));
  EXPECT_TRUE(is_send_key(Rkey{0xFFFF'FFFF}));
  EXPECT_FALSE(is_send_key(Rkey{0xFFFF'FFFD}));
  EXPECT_FALSE(is_send_key(Rkey{0}));
}

}  // namespace
}  // namespace mrc::core
