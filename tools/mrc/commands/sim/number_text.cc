#include "commands/sim/number_text.h"

#include <cmath>
#include <cstdlib>
#include <string>

namespace mrc::tool::simulator {
namespace {

template <typename Number>
std::optional<Number> read_decimal(std::string_view text, Number (*convert)(const char*, char**)) {
  // They also read blanks, hexadecimal numbers, "inf" and "nan".
  const bool plain = text.find_first_not_of("0123456789.eE+-") == std::string_view::npos;
  if (!plain || text.empty() || text.front() == '+') return {};
  const std::string copy(text);
  char* stop = nullptr;
  const Number number = convert(copy.c_str(), &stop);
  if (stop != copy.c_str() + copy.size() || !std::isfinite(number)) return {};
  return number;
}

}  // namespace

template <>
std::optional<float> read_number<float>(std::string_view text) {
  return read_decimal(text, std::strtof);
}

template <>
std::optional<double> read_number<double>(std::string_view text) {
  return read_decimal(text, std::strtod);
}

}  // namespace mrc::tool::simulator
