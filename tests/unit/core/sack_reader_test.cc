// Which SACKs are meant for a window, and which are news.
#include "core/sack_reader.h"

#include <gtest/gtest.h>

namespace mrc::core {
namespace {

constexpr Sequence kFirst = first_sequence(Psn(0xFFFFF0));
constexpr std::uint32_t kWindow = 128;

struct Reader {
  Reader() {
    for (unsigned i = 0; i < 32; ++i)
      window.append(i, EvIndex{0}, 100);
  }
  bool read(Sequence cumulative, std::uint32_t units, std::uint16_t beyond = 0) {
    const wire::Sack sack{.cumulative = psn_of(cumulative),
                          .bitmap_offset = 1,
                          .out_of_order_count = beyond,
                          .received_units = units};
    return reader.read(sack, window, kWindow, view);
  }
  SendWindow window{kWindow, 1, kFirst};
  SackReader reader;
  SackView view;
};

TEST(SackReader, PlacesItInTheSequenceAcrossTheWrap) {
  Reader r;
  ASSERT_TRUE(r.read(kFirst + 0x14, 10));
  EXPECT_EQ(r.view.cumulative, kFirst + 0x14);
  EXPECT_EQ(r.view.base, kFirst + 0x15);
  EXPECT_TRUE(r.view.fresh);
}

TEST(SackReader, RefusesWhatWasNeverSent) {
  Reader r;
  EXPECT_TRUE(r.read(kFirst + 31, 10));
  EXPECT_FALSE(r.read(kFirst + 32, 10));
}

TEST(SackReader, FewerArrivalsThanKnownAreOldNews) {
  Reader r;
  ASSERT_TRUE(r.read(kFirst + 4, 100, 6));
  ASSERT_TRUE(r.read(kFirst + 4, 99, 5));
  EXPECT_FALSE(r.view.fresh);
  ASSERT_TRUE(r.read(kFirst + 4, 100, 5)) << "small packets share a unit";
  EXPECT_FALSE(r.view.fresh);
  ASSERT_TRUE(r.read(kFirst + 6, 100, 4));
  EXPECT_TRUE(r.view.fresh);
}

TEST(SackReader, UnitsWrap) {
  Reader r;
  ASSERT_TRUE(r.read(kFirst, 0x70'0000));
  ASSERT_TRUE(r.read(kFirst + 1, 0xE0'0000));
  EXPECT_TRUE(r.view.fresh);
  ASSERT_TRUE(r.read(kFirst + 2, 5));
  EXPECT_TRUE(r.view.fresh);
}

TEST(SackView, KnowsWhatItCallsMissing) {
  const SackView view{.cumulative = 9, .base = 12, .bitmap = 0b101, .fresh = true};
  EXPECT_FALSE(view.reports_missing(9));
  EXPECT_TRUE(view.reports_missing(10)) << "right behind the cumulative one";
  EXPECT_FALSE(view.reports_missing(11)) << "neither said nor denied";
  EXPECT_FALSE(view.reports_missing(12));
  EXPECT_TRUE(view.reports_missing(13));
  EXPECT_FALSE(view.reports_missing(12 + 64)) << "beyond the bitmap";
}

}  // namespace
}  // namespace mrc::core
