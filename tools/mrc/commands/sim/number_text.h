// Numbers as people write them, read whole or not at all.
#pragma once

#include <charconv>
#include <optional>
#include <string_view>

namespace mrc::tool::simulator {

template <typename Number>
std::optional<Number> read_number(std::string_view text) {
  Number number{};
  const char* end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, number);
  if (error != std::errc() || stop != end) return {};
  return number;
}

// Finite decimal numbers. The C++ library that is compiled to WebAssembly has no from_chars of
// them.
template <>
std::optional<float> read_number<float>(std::string_view text);
template <>
std::optional<double> read_number<double>(std::string_view text);

}  // namespace mrc::tool::simulator
