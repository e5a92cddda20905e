#include "base/quantity.h"

#include <gtest/gtest.h>

namespace mrc {
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
  for (const char* text : {"", "us", "10", "10 us", "-1us", "+1us", "1.us", ".5us", "1..5us",
                           "10US", "10usx", "0x10us", "1,5us", "99999999999999999999s", "1eus",
                           "1e99us", "1e-1ps", "1000001s", "1000000.5s"})
    EXPECT_EQ(parse_time(text), std::nullopt) << text;
  EXPECT_EQ(parse_time("1000000s"), 1'000'000'000'000'000'000);
}

TEST(Quantity, SharesAreReadAsPercentOrAsFraction) {
  EXPECT_EQ(parse_share("25%"), 0.25);
  EXPECT_EQ(parse_share("0.1%"), 0.001);
  EXPECT_EQ(parse_share("100%"), 1.0);
  EXPECT_EQ(parse_share("0%"), 0.0);
  EXPECT_EQ(parse_share("0.01"), 0.01);
  EXPECT_EQ(parse_share("1e-3"), 0.001);
  EXPECT_EQ(parse_share("1"), 1.0);
  for (const char* text : {"", "%", "25", "1.01", "-1%", "101%", "1 %", "1%%", "1.%", "1e-99"})
    EXPECT_EQ(parse_share(text), std::nullopt) << text;
}

TEST(Quantity, BytesAreReadAsPeopleWriteThem) {
  EXPECT_EQ(parse_bytes("65536"), 65'536u);
  EXPECT_EQ(parse_bytes("1e6"), 1'000'000u);
  EXPECT_EQ(parse_bytes("100B"), 100u);
  for (const char* text : {"200k", "200K", "200KiB", "200kiB"})
    EXPECT_EQ(parse_bytes(text), 204'800u) << text;
  for (const char* text : {"200kB", "200KB", "200kb", "2e2kB", "0.2MB"})
    EXPECT_EQ(parse_bytes(text), 200'000u) << text;
  EXPECT_EQ(parse_bytes("2M"), 2'097'152u);
  EXPECT_EQ(parse_bytes("2MB"), 2'000'000u);
  EXPECT_EQ(parse_bytes("1.5GiB"), 1'610'612'736u);
  EXPECT_EQ(parse_bytes("1T"), std::uint64_t{1} << 40);
  EXPECT_EQ(parse_bytes("1048576T"), std::uint64_t{1} << 60);
}

TEST(Quantity, PartsOfAByteAreRounded) {
  EXPECT_EQ(parse_bytes("0.3KiB"), 307u);
  EXPECT_EQ(parse_bytes("0.3335kB"), 334u);
}

TEST(Quantity, UnitsOfBytesAreReadInAnyCase) {
  for (const char* text : {"1kib", "1KIB", "1k", "1024b"})
    EXPECT_EQ(parse_bytes(text), 1'024u) << text;
  for (const char* text : {"4mb", "4Mb", "4MB"})
    EXPECT_EQ(parse_bytes(text), 4'000'000u) << text;
  EXPECT_EQ(parse_bytes("2m"), 2'097'152u);
}

TEST(Quantity, APartOfAByteIsNone) {
  for (const char* text : {"0.4", "1.5", "1.5B", "1e-3"})
    EXPECT_EQ(parse_bytes(text), std::nullopt) << text;
  EXPECT_EQ(parse_bytes("1.50e1"), 15u);
}

TEST(Quantity, SecondsNeedNoUnit) {
  EXPECT_EQ(parse_seconds("1.5"), 1.5);
  EXPECT_EQ(parse_seconds("0"), 0.0);
  EXPECT_EQ(parse_seconds("500ms"), 0.5);
  EXPECT_EQ(parse_seconds("2s"), 2.0);
  for (const char* text : {"", "s", "-1", "+1", "inf", "nan", "0x1", "1 s", "1m", "2sec"})
    EXPECT_EQ(parse_seconds(text), std::nullopt) << text;
}

TEST(Quantity, RatesMayBeNumbersOfAUnit) {
  EXPECT_EQ(parse_rate_in("400", 1e9), 400.0);
  EXPECT_EQ(parse_rate_in("0.5", 1e9), 0.5);
  EXPECT_EQ(parse_rate_in("400G", 1e9), 400.0);
  EXPECT_EQ(parse_rate_in("1.6Tb/s", 1e9), 1'600.0);
  EXPECT_EQ(parse_rate_in("1G", 1e6), 1'000.0);
  for (const char* text : {"", "G", "-1", "inf", "1GB", "400 G"})
    EXPECT_EQ(parse_rate_in(text, 1e9), std::nullopt) << text;
}

TEST(Quantity, TextThatIsNoNumberOfBytesIsNotRead) {
  for (const char* text : {"", "K", "-5", "+5", "1 K", "1Kb/s", "1kibb", "1x", "0x10", "1KK",
                           "1048577T", "1e19", "99999999999999999999", "1,000"})
    EXPECT_EQ(parse_bytes(text), std::nullopt) << text;
}

TEST(Quantity, RatesArePowersOfAThousand) {
  EXPECT_EQ(parse_rate("1000000000"), 1'000'000'000u);
  EXPECT_EQ(parse_rate("2.5G"), 2'500'000'000u);
  for (const char* text : {"400G", "400Gb/s", "400Gbps", "400Gbit/s", "4e11", "0.4T"})
    EXPECT_EQ(parse_rate(text), 400'000'000'000u) << text;
  for (const char* text : {"", "G", "-1G", "1GB", "1GiB", "1 G", "b/s", "1e19"})
    EXPECT_EQ(parse_rate(text), std::nullopt) << text;
}

TEST(Quantity, NamesMayTellTheUnit) {
  for (const char* text : {"400", "400G", "0.4Tb/s"})
    EXPECT_EQ(parse_named("uplink_gbps", text), 400.0) << text;
  for (const char* text : {"1.5", "1.5us", "1500ns", "0.0015ms"})
    EXPECT_EQ(parse_named("delay_us", text), 1.5) << text;
  EXPECT_EQ(parse_named("oversubscription", "2"), 2.0);
  EXPECT_EQ(parse_named("oversubscription", "2us"), std::nullopt);
  EXPECT_EQ(parse_named("delay_us", "2G"), std::nullopt);
  EXPECT_EQ(parse_named("gbps", "2us"), std::nullopt);
  EXPECT_EQ(form_of_named("load"), "a number");
}

TEST(Quantity, CountsAreWhole) {
  EXPECT_EQ(parse_count("0"), 0u);
  EXPECT_EQ(parse_count("1e6"), 1'000'000u);
  EXPECT_EQ(parse_count("2.5e3"), 2'500u);
  for (const char* text : {"", "-1", "1.5", "1k", "1e-1", "1e19"})
    EXPECT_EQ(parse_count(text), std::nullopt) << text;
}

TEST(Quantity, ExponentsMoveThePoint) {
  EXPECT_EQ(parse_time("1e3us"), 1'000'000'000);
  EXPECT_EQ(parse_time("25e-1ms"), 2'500'000'000);
  EXPECT_EQ(parse_time("1E+2ns"), 100'000);
}

TEST(Quantity, NumbersHaveNothingButDigits) {
  EXPECT_EQ(parse_number("0"), 0u);
  EXPECT_EQ(parse_number("131072"), 131'072u);
  for (const char* text : {"", "-1", "1.0", "1 ", "0x1", "9999999999"})
    EXPECT_EQ(parse_number(text), std::nullopt) << text;
}

}  // namespace
}  // namespace mrc
