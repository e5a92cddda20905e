#include "script/values.h"

#include <cctype>
#include <charconv>
#include <cstdio>
#include <stdexcept>

namespace mrc::script {
namespace {

std::uint64_t parse_number(std::string_view text) {
  int base = 10;
  std::string_view digits = text;
  if (text.starts_with("0x")) base = 16;
  if (text.starts_with("0b")) base = 2;
  if (base != 10) digits.remove_prefix(2);
  std::uint64_t value = 0;
  const auto [end, error] =
      std::from_chars(digits.data(), digits.data() + digits.size(), value, base);
  if (error != std::errc() || end != digits.data() + digits.size()) {
    throw std::invalid_argument("not a number: " + std::string(text));
  }
  return value;
}

std::uint64_t evaluate_term(std::string_view term, const Variables& variables, Symbols symbols) {
  if (term.empty()) throw std::invalid_argument("an empty value");
  if (term[0] == '$') {
    const auto found = variables.find(std::string(term.substr(1)));
    if (found == variables.end()) {
      throw std::invalid_argument("unknown variable " + std::string(term));
    }
    return found->second;
  }
  if (std::isdigit(static_cast<unsigned char>(term[0])) != 0) {
    if (term == "0") return 0;
    const auto duration = parse_duration(term);
    return duration ? static_cast<std::uint64_t>(*duration) : parse_number(term);
  }
  for (const Symbol& symbol : symbols) {
    if (term == symbol.name) return symbol.value;
  }
  throw std::invalid_argument("unknown name: " + std::string(term));
}

std::uint64_t evaluate_sum(std::string_view sum, const Variables& variables, Symbols symbols) {
  std::uint64_t value = 0;
  bool minus = false;
  while (true) {
    const std::size_t end = sum.find_first_of("+-", 0);
    const std::uint64_t term = evaluate_term(sum.substr(0, end), variables, symbols);
    value = minus ? value - term : value + term;
    if (end == std::string_view::npos) return value;
    minus = sum[end] == '-';
    sum.remove_prefix(end + 1);
  }
}

}  // namespace

std::uint64_t evaluate(std::string_view expression, const Variables& variables, Symbols symbols,
                       unsigned repeat) {
  const std::size_t dots = expression.find("..");
  if (dots == std::string_view::npos) return evaluate_sum(expression, variables, symbols);
  std::uint64_t step = 1;
  std::string_view tail = expression.substr(dots + 2);
  if (!tail.empty()) {
    if (tail[0] != '+') throw std::invalid_argument("a range where one value is wanted");
    step = evaluate_sum(tail.substr(1), variables, symbols);
  }
  return evaluate_sum(expression.substr(0, dots), variables, symbols) + step * repeat;
}

std::vector<std::uint64_t> evaluate_list(std::string_view list, const Variables& variables) {
  std::vector<std::uint64_t> values;
  if (list == "none") return values;
  while (true) {
    const std::size_t comma = list.find(',');
    const std::string_view item = list.substr(0, comma);
    const std::size_t dots = item.find("..");
    const std::uint64_t first = evaluate_sum(item.substr(0, dots), variables, {});
    std::uint64_t last = first;
    if (dots != std::string_view::npos) last = evaluate_sum(item.substr(dots + 2), variables, {});
    if (last - first > 0xFFFF) throw std::invalid_argument("a range that is too long");
    for (std::uint64_t value = first; value <= last; ++value)
      values.push_back(value);
    if (comma == std::string_view::npos) return values;
    list.remove_prefix(comma + 1);
  }
}

std::optional<std::string> unbound_variable(std::string_view expression,
                                            const Variables& variables) {
  if (!expression.starts_with("$")) return std::nullopt;
  std::string name(expression.substr(1));
  if (name.find_first_of("+-.$") != std::string::npos) return std::nullopt;
  if (variables.contains(name)) return std::nullopt;
  return name;
}

bool compares(std::uint64_t actual, Comparison comparison, std::uint64_t expected, unsigned bits) {
  const std::uint64_t mask = bits >= 64 ? ~std::uint64_t{0} : (std::uint64_t{1} << bits) - 1;
  const bool equal = (actual & mask) == (expected & mask);
  const auto left = static_cast<std::int64_t>(actual);
  const auto right = static_cast<std::int64_t>(expected);
  switch (comparison) {
    case Comparison::kEqual:
      return equal;
    case Comparison::kNotEqual:
      return !equal;
    case Comparison::kLess:
      return left < right;
    case Comparison::kLessEqual:
      return left <= right;
    case Comparison::kGreater:
      return left > right;
    case Comparison::kGreaterEqual:
      return left >= right;
  }
  return false;
}

std::string show_value(std::uint64_t value, Symbols symbols) {
  for (const Symbol& symbol : symbols) {
    if (symbol.value == value) return symbol.name;
  }
  char buffer[32];
  if (value < 10'000) {
    std::snprintf(buffer, sizeof buffer, "%u", static_cast<unsigned>(value));
  } else {
    std::snprintf(buffer, sizeof buffer, "0x%llX", static_cast<unsigned long long>(value));
  }
  return buffer;
}

}  // namespace mrc::script
