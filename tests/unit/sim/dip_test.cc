#include "sim/dip.h"

#include <gtest/gtest.h>

#include <functional>

namespace mrc::sim {
namespace {

constexpr Time kBin = 1'000'000;
constexpr std::uint32_t kFull = 500'000;  // bytes per bin: 4 Tb/s

Series series_of(std::size_t bins, const std::function<std::uint32_t(std::size_t)>& bytes) {
  Series series(1, kBin);
  for (std::size_t bin = 0; bin < bins; ++bin) {
    if (bytes(bin) > 0) series.add(static_cast<Time>(bin) * kBin + kBin / 2, 0, bytes(bin));
  }
  return series;
}

DipSpan span(Time fault_bin, Time end_bin) { return {fault_bin * kBin, end_bin * kBin}; }

TEST(Dip, MeasuresDepthAndLengthOfAnOutage) {
  const Series series =
      series_of(100, [](std::size_t bin) { return bin >= 40 && bin < 47 ? 0 : kFull; });
  const Dip dip = measure_dip(series, span(40, 100));
  ASSERT_TRUE(dip.valid);
  EXPECT_DOUBLE_EQ(dip.before_gbps, 4'000);
  EXPECT_DOUBLE_EQ(dip.lowest_gbps, 0);
  EXPECT_DOUBLE_EQ(dip.depth, 1);
  EXPECT_DOUBLE_EQ(dip.length_us, 7);
  EXPECT_DOUBLE_EQ(dip.back_to_75_us, 7);
}

TEST(Dip, CountsLengthUntilTheNewLevelIsReached) {
  const Series series = series_of(100, [](std::size_t bin) {
    if (bin < 40) return kFull;
    return bin < 50 ? kFull / 4 : kFull * 3 / 4;
  });
  const Dip dip = measure_dip(series, span(40, 100));
  ASSERT_TRUE(dip.valid);
  EXPECT_DOUBLE_EQ(dip.depth, 0.75);
  EXPECT_DOUBLE_EQ(dip.length_us, 10);
  EXPECT_DOUBLE_EQ(dip.back_to_75_us, 10);
}

TEST(Dip, SaysWhenThreeQuartersNeverComeBack) {
  const Series series =
      series_of(100, [](std::size_t bin) { return bin < 40 ? kFull : kFull / 2; });
  const Dip dip = measure_dip(series, span(40, 100));
  ASSERT_TRUE(dip.valid);
  EXPECT_DOUBLE_EQ(dip.length_us, 0);
  EXPECT_LT(dip.back_to_75_us, 0);
}

TEST(Dip, TakesTheSlowStartOfTheFlowsForNoLevel) {
  const Series series = series_of(100, [](std::size_t bin) {
    return bin < 10 ? static_cast<std::uint32_t>(bin) * kFull / 10 : kFull;
  });
  EXPECT_DOUBLE_EQ(measure_dip(series, span(20, 100)).before_gbps, 4'000);
}

TEST(Dip, SmoothsOutSinglePackets) {
  // A slow flow whose bins hold 8 or 12 packets in turn has a steady level all the same.
  const Series series =
      series_of(200, [](std::size_t bin) { return bin % 2 == 0 ? 8 * 4096 : 12 * 4096; });
  const Dip dip = measure_dip(series, span(100, 200));
  ASSERT_TRUE(dip.valid);
  EXPECT_LT(dip.depth, 0.05);
  EXPECT_DOUBLE_EQ(dip.length_us, 0);
}

TEST(Dip, IsNotValidWithoutTimeBeforeOrAfterTheFault) {
  const Series series = series_of(50, [](std::size_t bin) { return bin < 10 ? 0 : kFull; });
  EXPECT_FALSE(measure_dip(series, span(5, 50)).valid);
  EXPECT_FALSE(measure_dip(series, span(10, 50)).valid);
  EXPECT_FALSE(measure_dip(series, span(49, 50)).valid);
  EXPECT_FALSE(measure_dip(series, span(80, 50)).valid);
  EXPECT_FALSE(measure_dip(series, {20 * kBin, -kBin}).valid);
  EXPECT_TRUE(measure_dip(series, span(20, 50)).valid);
}

}  // namespace
}  // namespace mrc::sim
