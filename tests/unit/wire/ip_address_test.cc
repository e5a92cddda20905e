#include "wire/ip_address.h"

#include <gtest/gtest.h>

#include <string>

namespace mrc::wire {
namespace {

std::string text_of(std::string_view text) {
  const auto address = parse_address(text);
  return address.ok() ? std::string(format_address(address.value()).view()) : "refused";
}

TEST(IpAddress, CanonicalTextComesBackUnchanged) {
  for (const char* text :
       {"::", "::1", "1::", "fc00:1::", "fc00:1:1000:8000:1001:100::", "1:2:3:4:5:6:7:8",
        "2001:db8::1:0:0:1", "1:0:2:3:4:5:6:7", "::2:3:4:5:6:7:8", "1:2:3:4:5:6:7::",
        "ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff", "0.0.0.0", "255.255.255.255", "10.0.200.1"}) {
    std::string expected = text;
    // A single zero group is written out.
    if (expected == "::2:3:4:5:6:7:8") expected = "0:2:3:4:5:6:7:8";
    if (expected == "1:2:3:4:5:6:7::") expected = "1:2:3:4:5:6:7:0";
    EXPECT_EQ(text_of(text), expected);
  }
}

TEST(IpAddress, OtherSpellingsBecomeCanonical) {
  EXPECT_EQ(text_of("FC00:0001:0000:0000:0000:0000:0000:0000"), "fc00:1::");
  EXPECT_EQ(text_of("2001:db8:0:0:1:0:0:1"), "2001:db8::1:0:0:1");
  EXPECT_EQ(text_of("0:0:0:1:0:0:0:0"), "0:0:0:1::");
  EXPECT_EQ(text_of("0000::0000"), "::");
}

TEST(IpAddress, TextThatIsNoAddressIsRefused) {
  for (const char* text : {"",
                           ":",
                           ":::",
                           "1",
                           "1:",
                           ":1",
                           "1:2:3:4:5:6:7",
                           "1:2:3:4:5:6:7:8:9",
                           "1::2::3",
                           "1:2:3:4:5:6:7:8::",
                           "::1:2:3:4:5:6:7:8",
                           "12345::",
                           "g::",
                           "fc00::1 ",
                           "fe80::1%eth0",
                           "fc00::/32",
                           "::ffff:1.2.3.4",
                           "1:2:3:4:5:6:7:",
                           "1.2.3",
                           "1.2.3.4.5",
                           "256.0.0.1",
                           "01.2.3.4",
                           "1..2.3",
                           "1.2.3.4 ",
                           "1.2.3.",
                           "1.2.3.0000",
                           "a.b.c.d",
                           "1.2.3.4a"}) {
    EXPECT_EQ(text_of(text), "refused") << text;
  }
}

TEST(IpAddress, NumbersAndTextMeanTheSame) {
  EXPECT_EQ(parse_address("fc00:1:1000:8000:1001:100::").value(),
            ipv6_address(0xFC00000110008000, 0x1001010000000000));
  EXPECT_EQ(parse_address("10.1.2.3").value(), ipv4_address(0x0A010203));
  EXPECT_NE(parse_address("0.0.0.0").value(), parse_address("::").value());
}

TEST(IpAddress, EveryAddressWithOneOrTwoGroupsSetSurvivesTheTripThroughText) {
  for (unsigned first = 0; first < 8; ++first) {
    for (unsigned second = 0; second < 8; ++second) {
      IpAddress address;
      address.bytes[2 * first] = 0xAB;
      address.bytes[2 * second + 1] = 0x01;
      const AddressText text = format_address(address);
      ASSERT_EQ(parse_address(text.view()).value(), address) << text.view();
    }
  }
}

}  // namespace
}  // namespace mrc::wire
