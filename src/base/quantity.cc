#include "base/quantity.h"

#include <array>
#include <cstddef>
#include <span>

namespace mrc {
namespace {

constexpr std::uint64_t kMaxTimePs = 1'000'000'000'000'000'000;
constexpr std::uint64_t kMaxBytes = std::uint64_t{1} << 60;
constexpr std::uint64_t kMaxNumber = 1'000'000'000'000'000'000;

struct Unit {
  std::string_view name;
  std::uint64_t size;
};

constexpr std::uint64_t kKilo = 1'000;
constexpr std::uint64_t kMega = kKilo * 1'000;
constexpr std::uint64_t kGiga = kMega * 1'000;
constexpr std::uint64_t kTera = kGiga * 1'000;

constexpr std::array<Unit, 5> kTimes{
    {{"s", kTera}, {"ms", kGiga}, {"us", kMega}, {"ns", kKilo}, {"ps", 1}}};
// In small letters.
constexpr std::array<Unit, 14> kBytes{{
    {"", 1},
    {"b", 1},
    {"k", std::uint64_t{1} << 10},
    {"kib", std::uint64_t{1} << 10},
    {"kb", kKilo},
    {"m", std::uint64_t{1} << 20},
    {"mib", std::uint64_t{1} << 20},
    {"mb", kMega},
    {"g", std::uint64_t{1} << 30},
    {"gib", std::uint64_t{1} << 30},
    {"gb", kGiga},
    {"t", std::uint64_t{1} << 40},
    {"tib", std::uint64_t{1} << 40},
    {"tb", kTera},
}};
constexpr std::array<Unit, 6> kRates{
    {{"", 1}, {"k", kKilo}, {"K", kKilo}, {"M", kMega}, {"G", kGiga}, {"T", kTera}}};

bool is_digit(char c) { return c >= '0' && c <= '9'; }

// A decimal number as an integer and a power of ten to divide it by.
struct Decimal {
  std::uint64_t digits = 0;
  std::uint64_t divisor = 1;
};

// Takes digits from the front, not more than 18 together with those before; how many.
std::optional<unsigned> take_digits(std::string_view& text, Decimal& number, unsigned before) {
  unsigned count = 0;
  for (; !text.empty() && is_digit(text.front()); text.remove_prefix(1)) {
    if (before + ++count > 18) return std::nullopt;
    number.digits = number.digits * 10 + static_cast<std::uint64_t>(text.front() - '0');
  }
  return count;
}

// "e6", "e-3": moves the point. What is no exponent stays where it is.
bool take_exponent(std::string_view& text, Decimal& number) {
  if (text.size() < 2 || (text[0] != 'e' && text[0] != 'E')) return true;
  const bool negative = text[1] == '-';
  const bool has_sign = negative || text[1] == '+';
  std::string_view rest = text.substr(has_sign ? 2 : 1);
  Decimal exponent;
  const std::optional<unsigned> count = take_digits(rest, exponent, 0);
  if (!count || *count == 0 || exponent.digits > 18) return false;
  text = rest;
  for (; exponent.digits > 0; --exponent.digits) {
    if (negative && number.digits % 10 == 0) {
      number.digits /= 10;
    } else if (negative) {
      if (number.divisor >= kMaxNumber) return false;
      number.divisor *= 10;
    } else if (number.divisor > 1) {
      number.divisor /= 10;
    } else {
      if (number.digits > kMaxNumber / 10) return false;
      number.digits *= 10;
    }
  }
  return true;
}

// Takes a number from the front of `text`: digits, perhaps a point and more digits, perhaps an
// exponent.
std::optional<Decimal> take_decimal(std::string_view& text) {
  Decimal number;
  const std::optional<unsigned> whole = take_digits(text, number, 0);
  if (!whole || *whole == 0) return std::nullopt;
  if (!text.empty() && text.front() == '.') {
    text.remove_prefix(1);
    const std::optional<unsigned> parts = take_digits(text, number, *whole);
    if (!parts || *parts == 0) return std::nullopt;
    for (unsigned i = 0; i < *parts; ++i)
      number.divisor *= 10;
  }
  if (!take_exponent(text, number)) return std::nullopt;
  return number;
}

// So many units, as a whole number and what is left of it over `divisor`. Nothing above `most`.
struct Amount {
  std::uint64_t whole = 0;
  std::uint64_t rest = 0;
  std::uint64_t divisor = 1;
};
std::optional<Amount> times(const Decimal& number, std::uint64_t unit, std::uint64_t most) {
  // Whole units and the rest apart, so that nothing overflows.
  const std::uint64_t whole = number.digits / number.divisor;
  if (whole > most / unit) return std::nullopt;
  Amount amount{
      .whole = whole * unit, .rest = number.digits % number.divisor, .divisor = number.divisor};
  // One decimal after the other: the rest is below the divisor, and a tenth of it at least goes.
  for (; amount.divisor > 1 && unit % 10 == 0; unit /= 10)
    amount.divisor /= 10;
  while (amount.divisor > 1 && amount.rest % 10 == 0) {
    amount.rest /= 10;
    amount.divisor /= 10;
  }
  if (amount.rest > kMaxNumber / unit) return std::nullopt;  // more places than anybody means
  amount.whole += amount.rest * unit / amount.divisor;
  amount.rest = amount.rest * unit % amount.divisor;
  if (amount.whole > most) return std::nullopt;
  return amount;
}

std::optional<Amount> parse_amount(std::string_view text, std::span<const Unit> units,
                                   std::uint64_t most) {
  const std::optional<Decimal> number = take_decimal(text);
  if (!number) return std::nullopt;
  for (const Unit& unit : units)
    if (text == unit.name) return times(*number, unit.size, most);
  return std::nullopt;
}

// A number and nothing else.
std::optional<double> parse_plain(std::string_view text) {
  const std::optional<Decimal> number = take_decimal(text);
  if (!number || !text.empty()) return std::nullopt;
  return static_cast<double>(number->digits) / static_cast<double>(number->divisor);
}

char small_letter(char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; }

// Whether the text is this name, which is in small letters.
bool same_letters(std::string_view text, std::string_view name) {
  if (text.size() != name.size()) return false;
  for (std::size_t i = 0; i < text.size(); ++i)
    if (small_letter(text[i]) != name[i]) return false;
  return true;
}

}  // namespace

std::optional<std::int64_t> parse_time(std::string_view text) {
  if (text == "0") return 0;
  const std::optional<Amount> time = parse_amount(text, kTimes, kMaxTimePs);
  if (!time || time->rest != 0) return std::nullopt;
  return static_cast<std::int64_t>(time->whole);
}

std::optional<double> parse_seconds(std::string_view text) {
  if (const std::optional<double> number = parse_plain(text)) return number;
  const std::optional<std::int64_t> time = parse_time(text);
  if (!time) return std::nullopt;
  return static_cast<double>(*time) / static_cast<double>(kTera);
}

std::optional<std::uint64_t> parse_bytes(std::string_view text) {
  const std::optional<Decimal> number = take_decimal(text);
  if (!number) return std::nullopt;
  for (const Unit& unit : kBytes) {
    if (!same_letters(text, unit.name)) continue;
    const std::optional<Amount> bytes = times(*number, unit.size, kMaxBytes);
    if (!bytes || (unit.size == 1 && bytes->rest != 0)) return std::nullopt;
    return bytes->whole + (bytes->rest >= bytes->divisor - bytes->rest ? 1 : 0);
  }
  return std::nullopt;
}

std::optional<double> parse_share(std::string_view text) {
  const std::optional<Decimal> number = take_decimal(text);
  if (!number || (!text.empty() && text != "%")) return std::nullopt;
  const double scale = text.empty() ? 1.0 : 100.0;
  const double share =
      static_cast<double>(number->digits) / (static_cast<double>(number->divisor) * scale);
  if (share > 1.0) return std::nullopt;
  return share;
}

std::optional<std::uint64_t> parse_rate(std::string_view text) {
  for (const std::string_view end : {"b/s", "bps", "bit/s"}) {
    if (!text.ends_with(end)) continue;
    text.remove_suffix(end.size());
    break;
  }
  const std::optional<Amount> rate = parse_amount(text, kRates, kMaxNumber);
  if (!rate) return std::nullopt;
  return rate->whole;
}

std::optional<double> parse_rate_in(std::string_view text, double unit) {
  if (const std::optional<double> number = parse_plain(text)) return number;
  const std::optional<std::uint64_t> rate = parse_rate(text);
  if (!rate) return std::nullopt;
  return static_cast<double>(*rate) / unit;
}

std::optional<double> parse_named(std::string_view name, std::string_view text) {
  if (name.ends_with("gbps")) return parse_rate_in(text, static_cast<double>(kGiga));
  if (const std::optional<double> number = parse_plain(text)) return number;
  const std::optional<std::int64_t> time = name.ends_with("_us") ? parse_time(text) : std::nullopt;
  if (!time) return std::nullopt;
  return static_cast<double>(*time) / static_cast<double>(kMega);
}

std::string_view form_of_named(std::string_view name) {
  if (name.ends_with("gbps")) return "a number of Gb/s, or bits per second such as 400G or 25Gb/s";
  if (name.ends_with("_us")) return "a number of microseconds, or a time such as 500ns or 1.5us";
  return "a number";
}

std::optional<std::uint64_t> parse_count(std::string_view text) {
  const std::optional<Decimal> number = take_decimal(text);
  if (!number || !text.empty() || number->digits % number->divisor != 0) return std::nullopt;
  return number->digits / number->divisor;
}

std::optional<unsigned> parse_number(std::string_view text) {
  if (text.empty() || text.size() > 9) return std::nullopt;
  Decimal number;
  take_digits(text, number, 0);
  if (!text.empty()) return std::nullopt;
  return static_cast<unsigned>(number.digits);
}

}  // namespace mrc
