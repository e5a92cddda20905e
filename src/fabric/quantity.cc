#include "fabric/quantity.h"

#include <array>
#include <cstdint>

namespace mrc::fabric {
namespace {

constexpr Picoseconds kMaxTimePs = 1'000'000'000'000'000'000;

struct Unit {
  const char* name;
  Picoseconds ps;
};
constexpr std::array<Unit, 5> kUnits{
    {{"s", 1'000'000'000'000}, {"ms", 1'000'000'000}, {"us", 1'000'000}, {"ns", 1'000}, {"ps", 1}}};

bool is_digit(char c) { return c >= '0' && c <= '9'; }

// A decimal number as an integer and a power of ten to divide it by.
struct Decimal {
  std::uint64_t digits = 0;
  std::uint64_t divisor = 1;
};

// Takes a number from the front of `text`: digits, and perhaps a point and more digits, not more
// than 18 in all.
std::optional<Decimal> take_decimal(std::string_view& text) {
  Decimal number;
  std::size_t at = 0;
  std::size_t digits = 0;
  bool behind_point = false;
  for (; at < text.size(); ++at) {
    if (text[at] == '.' && !behind_point && digits > 0) {
      behind_point = true;
      continue;
    }
    if (!is_digit(text[at])) break;
    if (++digits > 18) return std::nullopt;
    number.digits = number.digits * 10 + static_cast<std::uint64_t>(text[at] - '0');
    if (behind_point) number.divisor *= 10;
  }
  if (digits == 0 || text[at - 1] == '.') return std::nullopt;
  text.remove_prefix(at);
  return number;
}

}  // namespace

std::optional<Picoseconds> parse_time(std::string_view text) {
  const std::optional<Decimal> number = take_decimal(text);
  if (!number) return std::nullopt;
  if (text.empty()) return number->digits == 0 ? std::optional<Picoseconds>(0) : std::nullopt;
  for (const Unit& unit : kUnits) {
    if (text != unit.name) continue;
    // Whole units and the rest apart, so that nothing overflows.
    const std::uint64_t whole = number->digits / number->divisor;
    std::uint64_t rest = number->digits % number->divisor;
    std::uint64_t divisor = number->divisor;
    auto unit_ps = static_cast<std::uint64_t>(unit.ps);
    while (divisor > 1 && rest % 10 == 0) {
      rest /= 10;
      divisor /= 10;
    }
    while (divisor > 1 && unit_ps % 10 == 0) {
      unit_ps /= 10;
      divisor /= 10;
    }
    if (divisor > 1 || whole > static_cast<std::uint64_t>(kMaxTimePs / unit.ps))
      return std::nullopt;
    const std::uint64_t ps = whole * static_cast<std::uint64_t>(unit.ps) + rest * unit_ps;
    if (ps > static_cast<std::uint64_t>(kMaxTimePs)) return std::nullopt;
    return static_cast<Picoseconds>(ps);
  }
  return std::nullopt;
}

std::optional<double> parse_percent(std::string_view text) {
  const std::optional<Decimal> number = take_decimal(text);
  if (!number || text != "%") return std::nullopt;
  const double share =
      static_cast<double>(number->digits) / (static_cast<double>(number->divisor) * 100.0);
  if (share > 1.0) return std::nullopt;
  return share;
}

std::optional<unsigned> parse_number(std::string_view text) {
  if (text.empty() || text.size() > 9) return std::nullopt;
  unsigned value = 0;
  for (const char c : text) {
    if (!is_digit(c)) return std::nullopt;
    value = value * 10 + static_cast<unsigned>(c - '0');
  }
  return value;
}

}  // namespace mrc::fabric
