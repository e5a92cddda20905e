#include "base/bit_window.h"

#include <gtest/gtest.h>

#include <set>

#include "base/prng.h"

namespace mrc {
namespace {

TEST(BitWindow, ReadsSixtyFourBitsAcrossWordsAndAcrossTheRingEnd) {
  BitWindow window(128);
  window.set(120);
  window.set(130);  // stands where 2 stood
  EXPECT_EQ(window.bits64(120), (std::uint64_t{1} << 0) | (std::uint64_t{1} << 10));
  EXPECT_EQ(window.bits64(128), std::uint64_t{1} << 2);
}

TEST(BitWindow, FindsTheFirstSetBitWithinBounds) {
  BitWindow window(1024);
  EXPECT_EQ(window.find_first(5, 900), 900U);
  window.set(700);
  EXPECT_EQ(window.find_first(5, 900), 700U);
  EXPECT_EQ(window.find_first(5, 700), 700U);
  EXPECT_EQ(window.find_first(701, 900), 900U);
}

TEST(BitWindow, ClearsARunThatCrossesAWord) {
  BitWindow window(256);
  for (std::uint64_t i = 0; i < 256; ++i)
    window.set(i);
  window.clear_run(60, 64);
  for (std::uint64_t i = 0; i < 256; ++i)
    EXPECT_EQ(window.test(i), i < 60 || i >= 124) << i;
}

TEST(BitWindow, AgreesWithASetWhileItSlides) {
  BitWindow window(256);
  std::set<std::uint64_t> model;
  Prng prng(3);
  std::uint64_t edge = 1'000'000'000'000;
  for (int step = 0; step < 20'000; ++step) {
    const std::uint64_t seq = edge + prng.below(256);
    if (prng.below(3) == 0) {
      window.clear(seq);
      model.erase(seq);
    } else {
      window.set(seq);
      model.insert(seq);
    }
    const unsigned passed = prng.below(4) == 0 ? prng.below(64) + 1 : 0;
    if (passed > 0) window.clear_run(edge, passed);
    edge += passed;
    model.erase(model.begin(), model.lower_bound(edge));
    const auto first = model.begin();
    ASSERT_EQ(window.find_first(edge, edge + 256), first == model.end() ? edge + 256 : *first);
  }
}

}  // namespace
}  // namespace mrc
