#include "seal/replay_window.h"

#include <gtest/gtest.h>

#include <limits>
#include <random>
#include <set>

namespace mrc::seal {
namespace {

using Verdict = ReplayWindow::Verdict;
constexpr std::uint64_t kSize = ReplayWindow::kSize;

TEST(ReplayWindow, TakesEveryNumberOnce) {
  ReplayWindow window;
  EXPECT_EQ(window.check(0), Verdict::kNew);
  window.mark(0);
  EXPECT_EQ(window.check(0), Verdict::kSeen);
  EXPECT_EQ(window.check(1), Verdict::kNew);
}

TEST(ReplayWindow, ReachesBackAsFarAsItSays) {
  ReplayWindow window;
  window.mark(kSize + 9);
  EXPECT_EQ(window.check(10), Verdict::kNew);
  EXPECT_EQ(window.check(9), Verdict::kTooOld);
  window.mark(10);
  EXPECT_EQ(window.check(10), Verdict::kSeen);
  window.mark(kSize + 10);
  EXPECT_EQ(window.check(10), Verdict::kTooOld);
}

TEST(ReplayWindow, TakesTheHighestNumbers) {
  constexpr std::uint64_t kLast = std::numeric_limits<std::uint64_t>::max();
  ReplayWindow window;
  window.mark(3);
  window.mark(kLast);
  EXPECT_EQ(window.check(kLast), Verdict::kSeen);
  EXPECT_EQ(window.check(kLast - 1), Verdict::kNew);
  EXPECT_EQ(window.check(3), Verdict::kTooOld);
}

TEST(ReplayWindow, StartedHighTakesNothingBelow) {
  ReplayWindow window(100'000);
  for (const std::uint64_t number : {100'000u, 99'999u, 40'000u})
    EXPECT_EQ(window.check(number), Verdict::kSeen);
  EXPECT_EQ(window.check(100), Verdict::kTooOld);
  EXPECT_EQ(window.check(100'001), Verdict::kNew);
  window.mark(100'070);
  EXPECT_EQ(window.check(100'001), Verdict::kNew);
}

// Against a set that forgets nothing, with jumps of all sizes.
TEST(ReplayWindow, AgreesWithASet) {
  std::mt19937_64 random(7);
  for (const std::uint64_t jump : {3u, 100u, 5'000u, 70'000u, 300'000u}) {
    ReplayWindow window;
    std::set<std::uint64_t> seen;
    std::uint64_t highest = 0;
    for (int i = 0; i < 20'000; ++i) {
      const std::uint64_t back = random() % (kSize + 100);
      const bool ahead = i == 0 || random() % 4 == 0;
      const std::uint64_t number =
          ahead ? highest + random() % jump : highest - std::min(back, highest);
      Verdict expected = seen.contains(number) ? Verdict::kSeen : Verdict::kNew;
      if (highest >= kSize && number <= highest - kSize) expected = Verdict::kTooOld;
      ASSERT_EQ(window.check(number), expected) << number << " after " << highest;
      if (expected != Verdict::kNew) continue;
      window.mark(number);
      seen.insert(number);
      highest = std::max(highest, number);
    }
  }
}

}  // namespace
}  // namespace mrc::seal
