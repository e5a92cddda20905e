#include "text.h"

#include <fmt/core.h>

#include <array>
#include <ctime>

namespace mrc::tool {

std::string grouped(std::uint64_t number) {
  const std::string digits = fmt::format("{}", number);
  std::string text;
  for (std::size_t i = 0; i < digits.size(); ++i) {
    if (i > 0 && (digits.size() - i) % 3 == 0) text += ',';
    text += digits[i];
  }
  return text;
}

std::string counted(std::uint64_t number, const char* one, const char* many) {
  return fmt::format("{} {}", grouped(number), number == 1 ? one : many);
}

std::string microseconds(DurationNs ns) {
  return fmt::format("{:.1f} us", static_cast<double>(ns) / 1e3);
}

std::string bit_rate(double bits_per_second) {
  if (bits_per_second >= 1e12) return fmt::format("{:.2f} Tb/s", bits_per_second / 1e12);
  return fmt::format("{:.0f} Gb/s", bits_per_second / 1e9);
}

std::string byte_count(std::uint64_t bytes) {
  const auto count = static_cast<double>(bytes);
  if (bytes >= 1'000'000'000) return fmt::format("{:.1f} GB", count / 1e9);
  if (bytes >= 1'000'000) return fmt::format("{:.1f} MB", count / 1e6);
  return fmt::format("{:.1f} kB", count / 1e3);
}

std::string wall_time() {
  const std::time_t now = std::time(nullptr);
  std::tm parts{};
  ::gmtime_r(&now, &parts);
  std::array<char, 32> text{};
  const std::size_t length = std::strftime(text.data(), text.size(), "%Y-%m-%dT%H:%M:%SZ", &parts);
  return {text.data(), length};
}

std::string percent(double part, double whole) {
  return fmt::format("{:.1f} %", whole > 0 ? 100 * part / whole : 0.0);
}

}  // namespace mrc::tool
