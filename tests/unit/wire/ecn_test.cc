#include "wire/ecn.h"

#include <gtest/gtest.h>

namespace mrc::wire {
namespace {

constexpr Ecn kAll[] = {Ecn::kNotEct, Ecn::kEct0, Ecn::kEct1, Ecn::kCe};

TEST(Ecn, EntryToATunnelCopiesTheBits) {
  for (const Ecn ecn : kAll)
    EXPECT_EQ(encapsulate_ecn(ecn), ecn);
}

TEST(Ecn, ExitFromATunnelFollowsTheTableOfRfc6040) {
  using enum Ecn;
  constexpr std::optional<Ecn> kDrop;
  // Rows: inner Not-ECT, ECT(0), ECT(1), CE. Columns: the same for outer.
  const std::optional<Ecn> table[4][4] = {{kNotEct, kNotEct, kNotEct, kDrop},
                                          {kEct0, kEct0, kEct1, kCe},
                                          {kEct1, kEct1, kEct1, kCe},
                                          {kCe, kCe, kCe, kCe}};
  for (int inner = 0; inner < 4; ++inner) {
    for (int outer = 0; outer < 4; ++outer) {
      EXPECT_EQ(decapsulate_ecn(kAll[inner], kAll[outer]), table[inner][outer])
          << inner << " in " << outer;
    }
  }
}

}  // namespace
}  // namespace mrc::wire
