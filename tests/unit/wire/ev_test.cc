#include "wire/ev.h"

#include <gtest/gtest.h>

#include <set>
#include <string>
#include <vector>

#include "unit/wire/wire_samples.h"
#include "wire/srv6.h"

namespace mrc::wire {
namespace {

using Widths = std::vector<std::uint8_t>;
using Fields = std::vector<EvField>;

// An EV from the hex digits of its first bytes; the rest is zero.
EvValue ev(std::string_view digits) {
  EvValue value;
  const test::Bytes bytes = test::hex(digits);
  for (std::size_t i = 0; i < bytes.size(); ++i) {
    value.bytes[i] = std::to_integer<std::uint8_t>(bytes[i]);
  }
  return value;
}

std::string text(const EvValue& value) {
  return test::to_hex(std::as_bytes(std::span(value.bytes)));
}

constexpr EvField fixed(std::uint32_t width, std::uint32_t value) {
  return {.width = width, .init_val = value};
}
constexpr EvField open(std::uint32_t width) {
  return {.width = width, .mask = width == 32 ? 0xFFFFFFFF : (1u << width) - 1};
}
constexpr EvField masked(std::uint32_t width, std::uint32_t init, std::uint32_t mask,
                         std::uint32_t min, std::uint32_t max) {
  return {.width = width, .init_val = init, .min_val = min, .max_val = max, .mask = mask};
}

struct Pair {
  std::string_view compact;
  std::string_view expanded;
};

void expect_pairs(EvKind kind, const Widths& widths, const Fields& fields,
                  const std::vector<Pair>& pairs) {
  const EvFormat format{.kind = kind, .widths = widths};
  ASSERT_TRUE(check_ev_format(format).ok()) << check_ev_format(format).what();
  ASSERT_TRUE(check_ev_profile(format, fields).ok()) << check_ev_profile(format, fields).what();
  for (const Pair& pair : pairs) {
    const auto expanded = expand_ev(format, fields, ev(pair.compact));
    ASSERT_TRUE(expanded.ok());
    EXPECT_EQ(text(expanded.value()), text(ev(pair.expanded)));
    const auto compact = compact_ev(format, fields, expanded.value());
    ASSERT_TRUE(compact.ok());
    EXPECT_EQ(text(compact.value()), text(ev(pair.compact)));
  }
}

// The input and output values of the cases below are those that the public OCP example program for
// EV expansion prints.
TEST(EvExpansion, TwoOpenFieldsOfAStructuredEvPassThrough) {
  expect_pairs(EvKind::kStructured, {16, 16}, {open(16), open(16)},
               {{"f3b04256", "f3b04256"}, {"03514976", "03514976"}, {"c7238d56", "c7238d56"}});
}

TEST(EvExpansion, OneOpenFieldOf32BitsPassesThrough) {
  expect_pairs(EvKind::kStructured, {32}, {open(32)},
               {{"67fb6a4e", "67fb6a4e"}, {"0e509b51", "0e509b51"}, {"a4307125", "a4307125"}});
}

TEST(EvExpansion, FixedUpperBitsSurroundDrawnLowerBits) {
  expect_pairs(EvKind::kStructured, {16, 16},
               {masked(16, 0x100, 0xF, 1, 0xF), masked(16, 0x200, 0xF, 1, 0xF)},
               {{"a4", "010a0204"}, {"7f", "0107020f"}, {"f8", "010f0208"}, {"61", "01060201"}});
}

TEST(EvExpansion, AMaskWithGapsSpreadsTheBits) {
  expect_pairs(EvKind::kStructured, {16, 16},
               {masked(16, 0x1000, 0x0F0F, 1, 0xFF), masked(16, 0x2000, 0x0F0F, 1, 0xFF)},
               {{"3312", "13032102"},
                {"e33e", "1e03230e"},
                {"d05a", "1d00250a"},
                {"a8e0", "1a082e00"},
                {"97fa", "19072f0a"}});
}

TEST(EvExpansion, AnExplicitSrv6EvFillsItsUsids) {
  expect_pairs(EvKind::kSrv6, {32, 16, 16, 16, 16},
               {fixed(32, 0xCAFECAFE), open(16), open(16), open(16), open(16)},
               {{"43ba48d6a43de086", "cafecafe43ba48d6a43de086"},
                {"0fde02891fb8a21a", "cafecafe0fde02891fb8a21a"}});
}

TEST(EvExpansion, AProfileMayUseFewerFieldsThanTheFormat) {
  expect_pairs(EvKind::kSrv6, {32, 16, 16, 16, 16}, {fixed(32, 0xDEADDEAD), open(16), open(16)},
               {{"e298f115", "deaddeade298f115"}, {"191cefee", "deaddead191cefee"}});
}

TEST(EvExpansion, ANarrowFieldIsZeroFilledOnTheLeftOfItsFormatField) {
  const EvField four = masked(4, 0, 0xF, 1, 0xF);
  expect_pairs(EvKind::kSrv6, {32, 16, 16, 16, 16}, {fixed(32, 0x42424242), four, four, four, four},
               {{"78ba", "4242424200070008000b000a"}, {"144f", "42424242000100040004000f"}});
}

TEST(EvExpansion, GeneratedUsidsKeepTheirTierNumber) {
  Fields fields{fixed(32, 0x13131313)};
  for (std::uint32_t tier = 1; tier <= 4; ++tier) {
    fields.push_back(masked(16, tier << 8, 0xF, 1, 0xF));
  }
  expect_pairs(EvKind::kSrv6, {32, 16, 16, 16, 16}, fields,
               {{"9b79", "131313130109020b03070409"}, {"3e8c", "131313130103020e0308040c"}});
}

TEST(EvExpansion, AnEvWithRoutingHeaderFillsBothAddresses) {
  expect_pairs(
      EvKind::kSrv6Segment, {32, 16, 16, 16, 16, 16, 16, 32, 16, 16},
      {fixed(32, 0xCAFECAFE), open(16), open(16), open(16), open(16), open(16), open(16),
       fixed(32, 0xDECAFBAD), open(16), open(16)},
      {{"b8a7310e14c80962ae4b9dd6587a4c16", "cafecafeb8a7310e14c80962ae4b9dd6decafbad587a4c16"},
       {"ad55668e6450b8f009084f147d33da0f", "cafecafead55668e6450b8f009084f14decafbad7d33da0f"}});
}

TEST(EvExpansion, ACompactEvWithTooManyBitsIsRefused) {
  const Widths widths{16, 16};
  const Fields fields{masked(16, 0, 0xF, 0, 0), masked(16, 0, 0xF, 0, 0)};
  const EvFormat format{.kind = EvKind::kStructured, .widths = widths};
  EXPECT_TRUE(expand_ev(format, fields, ev("ff")).ok());
  EXPECT_FALSE(expand_ev(format, fields, ev("ff80")).ok());
  EvValue last;
  last.bytes[31] = 1;
  EXPECT_FALSE(expand_ev(format, fields, last).ok());
}

TEST(EvExpansion, AnExpandedEvThatTheProfileCannotMakeHasNoCompactForm) {
  const Widths widths{16, 16};
  const Fields fields{masked(8, 0x10, 0x0F, 0, 0)};
  const EvFormat format{.kind = EvKind::kStructured, .widths = widths};
  EXPECT_TRUE(compact_ev(format, fields, ev("001a")).ok());
  EXPECT_FALSE(compact_ev(format, fields, ev("002a")).ok()) << "fixed bits";
  EXPECT_FALSE(compact_ev(format, fields, ev("011a")).ok()) << "left of the field";
  EXPECT_FALSE(compact_ev(format, fields, ev("001a8000")).ok()) << "behind the last field";
}

TEST(EvFormat, WidthLimitsDependOnTheKind) {
  EXPECT_EQ(ev_width_bits(EvKind::kUdpPort), 16u);
  EXPECT_EQ(ev_width_bits(EvKind::kStructured), 32u);
  EXPECT_EQ(ev_width_bits(EvKind::kSrv6), 128u);
  EXPECT_EQ(ev_width_bits(EvKind::kSrv6Segment), 256u);
  const Widths exact{8, 8};
  EXPECT_TRUE(check_ev_format({.kind = EvKind::kUdpPort, .widths = exact}).ok());
  const Widths over{8, 9};
  EXPECT_EQ(check_ev_format({.kind = EvKind::kUdpPort, .widths = over}).code(),
            ErrorCode::kTooLong);
  const Widths wide{255, 1};
  EXPECT_TRUE(check_ev_format({.kind = EvKind::kSrv6Segment, .widths = wide}).ok());
}

TEST(EvFormat, AKindThatDoesNotExistCarriesNothing) {
  const auto kind = static_cast<EvKind>(9);
  EXPECT_EQ(ev_width_bits(kind), 0u);
  const Widths widths{1};
  EXPECT_EQ(check_ev_format({.kind = kind, .widths = widths}).code(), ErrorCode::kTooLong);
}

TEST(EvFormat, AFormatWithoutFieldsOrWithAnEmptyOneIsRefused) {
  EXPECT_EQ(check_ev_format({.widths = {}}).code(), ErrorCode::kInvalidArgument);
  const Widths empty{8, 0};
  EXPECT_EQ(check_ev_format({.widths = empty}).code(), ErrorCode::kInvalidArgument);
}

TEST(EvProfile, ContradictionsAreRefusedWithTheirOwnError) {
  const Widths widths{16, 16};
  const EvFormat format{.kind = EvKind::kStructured, .widths = widths};
  const auto code = [&](const Fields& fields) { return check_ev_profile(format, fields).code(); };
  using enum ErrorCode;
  EXPECT_EQ(code({open(16), open(16)}), kOk);
  EXPECT_EQ(code({}), kInvalidArgument);
  EXPECT_EQ(code({open(8), open(8), open(8)}), kTooLong) << "more fields than the format";
  EXPECT_EQ(code({open(17)}), kTooLong) << "wider than its format field";
  EXPECT_EQ(code({EvField{.width = 0}}), kInvalidArgument);
  EXPECT_EQ(code({fixed(8, 0x100)}), kInvalidArgument) << "initial value too wide";
  EXPECT_EQ(code({masked(8, 0, 0x100, 0, 1)}), kInvalidArgument) << "mask too wide";
  EXPECT_EQ(code({masked(8, 0, 0xF0, 0, 16)}), kInvalidArgument) << "maximum too wide";
  EXPECT_EQ(code({masked(8, 0, 0xF0, 0, 15)}), kOk);
  EXPECT_EQ(code({masked(8, 0, 0xF0, 9, 8)}), kInvalidArgument) << "minimum above maximum";
  EXPECT_EQ(code({masked(8, 1, 0, 0, 1)}), kInvalidArgument) << "limits without a mask";

  const Widths one{40};
  EXPECT_EQ(
      check_ev_profile({.kind = EvKind::kSrv6, .widths = one}, Fields{EvField{.width = 33}}).code(),
      kTooLong);
}

TEST(EvGeneration, EveryFieldStaysWithinItsLimitsAndReachesBoth) {
  const Fields fields{fixed(32, 0xFC000001), masked(16, 0x1000, 0xFF, 3, 179),
                      masked(16, 0, 0x7, 0, 0)};
  const Widths widths{32, 16, 16};
  const EvFormat format{.kind = EvKind::kSrv6, .widths = widths};
  ASSERT_TRUE(check_ev_profile(format, fields).ok());
  EXPECT_EQ(compact_ev_bits(fields), 11u);
  test::Random random(42);
  std::set<unsigned> first;
  std::set<unsigned> second;
  for (int i = 0; i < 20000; ++i) {
    const EvValue compact = generate_ev(fields, random);
    const auto expanded = expand_ev(format, fields, compact);
    ASSERT_TRUE(expanded.ok());
    const auto& bytes = expanded.value().bytes;
    ASSERT_EQ(bytes[4], 0x10);
    first.insert(bytes[5]);
    ASSERT_EQ(bytes[6], 0);
    second.insert(bytes[7]);
  }
  EXPECT_EQ(first.size(), 177u);
  EXPECT_EQ(*first.begin(), 3u);
  EXPECT_EQ(*first.rbegin(), 179u);
  EXPECT_EQ(second.size(), 8u);
}

TEST(EvGeneration, TheSameRandomSourceGivesTheSameEvs) {
  const Fields fields{open(32)};
  test::Random a(5);
  test::Random b(5);
  for (int i = 0; i < 100; ++i)
    EXPECT_EQ(generate_ev(fields, a), generate_ev(fields, b));
}

TEST(EvGeneration, TheExtremesOfTheRandomSourceGiveTheLimits) {
  const Fields fields{masked(16, 0, 0xFFFF, 10, 20), open(32)};
  const auto low = [] { return std::uint64_t{0}; };
  const auto high = [] { return ~std::uint64_t{0}; };
  EXPECT_EQ(text(generate_ev(fields, low)), text(ev("000a00000000")));
  EXPECT_EQ(text(generate_ev(fields, high)), text(ev("0014ffffffff")));
}

TEST(EvMeaning, AStructuredEvIsItsFirstFourBytes) {
  EXPECT_EQ(ev_entropy(EvKind::kStructured, ev("89abcdef")), 0x89ABCDEFu);
  EXPECT_EQ(ev_entropy(EvKind::kUdpPort, ev("89ab")), 0x89ABu);
  EXPECT_EQ(structured_ev(0x89ABCDEF), ev("89abcdef"));
}

TEST(EvMeaning, AnSrv6EvIsACarrierAndASegment) {
  const IpAddress carrier = parse_address("fc00:1:1000:8000:1001:100::").value();
  const IpAddress segment = parse_address("fc00:1:1234::").value();
  const EvValue value = srv6_ev(carrier, segment);
  EXPECT_EQ(text(value), text(ev("fc0000011000800010010100000000 00 fc00000112340000")));
  EXPECT_EQ(ev_carrier(value), carrier);
  EXPECT_EQ(ev_segment(value), segment);
  EXPECT_EQ(ev_segment(srv6_ev(carrier, {})), IpAddress{});
}

TEST(EvMeaningDeathTest, AnSrv6EvHasNoEntropyOfItsOwn) {
  EXPECT_DEATH((void)ev_entropy(EvKind::kSrv6, EvValue{}), "");
}

}  // namespace
}  // namespace mrc::wire
