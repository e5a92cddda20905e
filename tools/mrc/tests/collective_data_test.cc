#include "commands/perf/collective_data.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <vector>

#include "collective/collectives.h"

namespace mrc::tool::perf {
namespace {

using collective::Collectives;
using collective::Element;

constexpr unsigned kRanks = 3;
constexpr std::size_t kElements = 12;

using Buffer = std::vector<std::byte>;

// What each rank has after the operation, made without any network.
std::vector<Buffer> carried_out(Round round) {
  const std::size_t each = collective::bytes_of(round.element);
  std::vector<Buffer> before(kRanks, Buffer(kElements * each));
  for (round.rank = 0; round.rank < kRanks; ++round.rank)
    fill(round, before[round.rank]);
  Buffer sum = before[0];
  for (unsigned rank = 1; rank < kRanks; ++rank)
    collective::add(round.element, sum, before[rank]);
  std::vector<Buffer> after(kRanks, sum);
  const auto segment = [&](Buffer& buffer, unsigned number) {
    return Collectives::segment_of(buffer, round.element, kRanks, number);
  };
  for (unsigned rank = 0; rank < kRanks; ++rank) {
    for (unsigned from = 0; from < kRanks; ++from) {
      const auto target = segment(after[rank], from);
      if (round.operation == Operation::kAllGather)
        std::ranges::copy(segment(before[from], from), target.begin());
      if (round.operation == Operation::kAllToAll)
        std::ranges::copy(segment(before[from], rank), target.begin());
      if (round.operation == Operation::kReduceScatter && from != rank)
        std::ranges::fill(target, std::byte{0xee});
    }
  }
  return after;
}

class CollectiveData : public testing::TestWithParam<Operation> {};

TEST_P(CollectiveData, KnowsTheResultOfEveryTypeAndEveryWrongElement) {
  for (const Element element :
       {Element::kInt32, Element::kInt64, Element::kFloat, Element::kDouble}) {
    Round round{.operation = GetParam(), .element = element, .ranks = kRanks, .number = 7};
    std::vector<Buffer> results = carried_out(round);
    for (round.rank = 0; round.rank < kRanks; ++round.rank) {
      Buffer& result = results[round.rank];
      EXPECT_EQ(count_wrong(round, result), 0U) << name_of(element) << round.rank;
      const auto own = Collectives::segment_of(result, element, kRanks, round.rank);
      own.front() ^= std::byte{1};
      own.back() ^= std::byte{1};
      EXPECT_EQ(count_wrong(round, result), 2U) << name_of(element) << round.rank;
    }
  }
}

TEST_P(CollectiveData, RoundsDiffer) {
  Round round{.operation = GetParam(), .ranks = kRanks, .number = 1};
  std::vector<Buffer> results = carried_out(round);
  round.number = 2;
  EXPECT_GT(count_wrong(round, results[0]), 0U);
}

INSTANTIATE_TEST_SUITE_P(All, CollectiveData,
                         testing::Values(Operation::kAllReduce, Operation::kReduceScatter,
                                         Operation::kAllGather, Operation::kAllToAll),
                         [](const auto& param) { return name_of(param.param); });

TEST(BusFactor, IsThatOfNcclTests) {
  EXPECT_DOUBLE_EQ(bus_factor(Operation::kAllReduce, 4), 1.5);
  EXPECT_DOUBLE_EQ(bus_factor(Operation::kAllGather, 4), 0.75);
  EXPECT_DOUBLE_EQ(bus_factor(Operation::kAllReduce, 1), 0);
}

}  // namespace
}  // namespace mrc::tool::perf
