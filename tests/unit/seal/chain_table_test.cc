#include "seal/chain_table.h"

#include <gtest/gtest.h>

#include "unit/seal/seal_fixture.h"

namespace mrc::seal {
namespace {

ChainId chain(std::uint64_t instance) { return {.source = test::host(1), .instance = instance}; }

void fill(ChainTable& table, std::uint64_t first, std::size_t count) {
  for (std::uint64_t i = first; i < first + count; ++i)
    table.add(chain(i)).window.mark(i + 5);
}

TEST(ChainTable, TellsChainsApartByAllOfTheirName) {
  ChainTable table;
  table.add(chain(1));
  EXPECT_NE(table.find(chain(1)), nullptr);
  ChainId other = chain(1);
  other.source = test::host(9);
  EXPECT_EQ(table.find(other), nullptr);
  other = chain(1);
  other.key = 7;
  EXPECT_EQ(table.find(other), nullptr);
  other = chain(1);
  other.suite = Suite::kChaCha20Poly1305;
  EXPECT_EQ(table.find(other), nullptr);
}

TEST(ChainTable, KnowsWhoWasHeard) {
  ChainTable table;
  EXPECT_FALSE(table.has_source(test::host(1)));
  table.add(chain(1));
  table.add(chain(2));
  EXPECT_TRUE(table.has_source(test::host(1)));
  EXPECT_FALSE(table.has_source(test::host(2)));
}

TEST(ChainTable, ForgetsTheOneThatWasSilentForLongest) {
  ChainTable table;
  fill(table, 0, ChainTable::kMostChains);
  table.touch(*table.find(chain(0)));
  table.add(chain(99'999)).window.mark(0);
  EXPECT_EQ(table.size(), ChainTable::kMostChains);
  EXPECT_NE(table.find(chain(0)), nullptr);
  EXPECT_EQ(table.find(chain(1)), nullptr);
  EXPECT_EQ(table.forgotten(chain(1)), 6u);
  EXPECT_EQ(table.forgotten(chain(0)), std::nullopt);
}

TEST(ChainTable, AForgottenChainGoesOnAboveWhereItWas) {
  ChainTable table;
  fill(table, 0, ChainTable::kMostChains + 1);
  ASSERT_EQ(table.forgotten(chain(0)), 5u);
  const Chain& back = table.add(chain(0));
  EXPECT_EQ(back.window.check(5), ReplayWindow::Verdict::kSeen);
  EXPECT_EQ(back.window.check(4), ReplayWindow::Verdict::kSeen);
  EXPECT_EQ(back.window.check(6), ReplayWindow::Verdict::kNew);
  EXPECT_EQ(table.forgotten(chain(0)), std::nullopt);
}

TEST(ChainTable, RemembersABoundedNumberOfForgottenOnes) {
  ChainTable table;
  fill(table, 0, ChainTable::kMostChains + ChainTable::kMostForgotten + 1);
  EXPECT_EQ(table.size(), ChainTable::kMostChains);
  EXPECT_EQ(table.forgotten(chain(0)), std::nullopt);
  EXPECT_NE(table.forgotten(chain(1)), std::nullopt);
}

}  // namespace
}  // namespace mrc::seal
