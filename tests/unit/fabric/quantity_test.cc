#include "fabric/quantity.h"

#include <gtest/gtest.h>

namespace mrc::fabric {
namespace {

TEST(Quantity, TimesAreReadInEveryUnit) {
  EXPECT_EQ(parse_time("7ps"), 7);
  EXPECT_EQ(parse_time("7ns"), 7'000);
  EXPECT_EQ(parse_time("10us"), 10'000'000);
  EXPECT_EQ(parse_time("2ms"), 2'000'000'000);
  EXPECT_EQ(parse_time("3s"), 3'000'000'000'000);
  EXPECT_EQ(parse_time("0"), 0);
  EXPECT_EQ(parse_time("0us"), 0);
}

TEST(Quantity, FractionsOfAUnitAreExact) {
  EXPECT_EQ(parse_time("1.5us"), 1'500'000);
  EXPECT_EQ(parse_time("0.001ns"), 1);
  EXPECT_EQ(parse_time("2.50ms"), 2'500'000'000);
  EXPECT_EQ(parse_time("1.000ps"), 1);
  EXPECT_EQ(parse_time("0.0001ns"), std::nullopt) << "less than a picosecond";
}

TEST(Quantity, TextThatIsNoTimeIsNotRead) {
  for (const char* text :
       {"", "us", "10", "10 us", "-1us", "+1us", "1e3us", "1.us", ".5us", "1..5us", "10US", "10usx",
        "0x10us", "1,5us", "99999999999999999999s", "1000001s", "1000000.5s"})
    EXPECT_EQ(parse_time(text), std::nullopt) << text;
  EXPECT_EQ(parse_time("1000000s"), 1'000'000'000'000'000'000);
}

TEST(Quantity, SharesAreReadAsPercent) {
  EXPECT_EQ(parse_percent("25%"), 0.25);
  EXPECT_EQ(parse_percent("0.1%"), 0.001);
  EXPECT_EQ(parse_percent("100%"), 1.0);
  EXPECT_EQ(parse_percent("0%"), 0.0);
  for (const char* text : {"", "%", "25", "0.25", "-1%", "101%", "1 %", "1%%", "1.%"})
    EXPECT_EQ(parse_percent(text), std::nullopt) << text;
}

TEST(Quantity, NumbersHaveNothingButDigits) {
  EXPECT_EQ(parse_number("0"), 0u);
  EXPECT_EQ(parse_number("131072"), 131'072u);
  for (const char* text : {"", "-1", "1.0", "1 ", "0x1", "9999999999"})
    EXPECT_EQ(parse_number(text), std::nullopt) << text;
}

}  // namespace
}  // namespace mrc::fabric
