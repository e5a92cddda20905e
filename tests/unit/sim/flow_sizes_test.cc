#include "sim/flow_sizes.h"

#include <gtest/gtest.h>

#include <fstream>

#include "fabric/input_error.h"
#include "support/temporary_directory.h"

namespace mrc::sim {
namespace {

using fabric::InputError;

TEST(FlowSizes, AreUniformBetweenTwoPoints) {
  const FlowSizes sizes({{1'000, 0}, {2'000, 0.5}, {10'000, 1}});
  EXPECT_EQ(sizes.at(0), 1'000u);
  EXPECT_EQ(sizes.at(0.25), 1'500u);
  EXPECT_EQ(sizes.at(0.75), 6'000u);
  EXPECT_DOUBLE_EQ(sizes.mean(), 0.5 * 1'500 + 0.5 * 6'000);
}

TEST(FlowSizes, BeginWithAsManyOfTheShortestAsTheFirstPointSays) {
  const FlowSizes sizes({{100, 0.4}, {200, 1}});
  EXPECT_EQ(sizes.at(0.39), 100u);
  EXPECT_EQ(sizes.at(0.7), 150u);
  EXPECT_DOUBLE_EQ(sizes.mean(), 0.4 * 100 + 0.6 * 150);
}

TEST(FlowSizes, MayBeAllTheSame) {
  const FlowSizes sizes = FlowSizes::fixed(5'000);
  EXPECT_EQ(sizes.at(0), 5'000u);
  EXPECT_EQ(sizes.at(0.999), 5'000u);
  EXPECT_DOUBLE_EQ(sizes.mean(), 5'000);
}

TEST(FlowSizes, OfWebSearchHaveTheirMedianAndMean) {
  const FlowSizes sizes = FlowSizes::named("websearch");
  EXPECT_NEAR(static_cast<double>(sizes.at(0.53)), 80e3, 1);
  EXPECT_NEAR(sizes.mean(), 1.7e6, 0.05e6);
}

TEST(FlowSizes, ComeFromAFile) {
  const test::TemporaryDirectory folder;
  const std::string path = folder / "sizes";
  std::ofstream(path) << "# bytes percent\n100 50\n300 100\n";
  EXPECT_DOUBLE_EQ(FlowSizes::named(path).mean(), 50 + 0.5 * 200);
  std::ofstream(path) << "100 50\n300 100 7\n";
  EXPECT_THROW(FlowSizes::named(path), InputError);
  std::ofstream(path) << "300 50\n100 100\n";
  EXPECT_THROW(FlowSizes::named(path), InputError);
  std::ofstream(path) << "100 50\n300 90\n";
  EXPECT_THROW(FlowSizes::named(path), InputError);
  EXPECT_THROW(FlowSizes::named(folder / "absent"), InputError);
}

}  // namespace
}  // namespace mrc::sim
