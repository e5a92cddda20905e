#include "view/json_line.h"

#include <utility>

namespace mrc::view {

void JsonLine::start(std::string_view key) {
  if (!first_) out_ += ',';
  first_ = false;
  if (key.empty()) return;
  quote(key);
  out_ += ':';
}

void JsonLine::open(std::string_view key, char bracket) {
  start(key);
  out_ += bracket;
  first_ = true;
}

void JsonLine::close(char bracket) {
  out_ += bracket;
  first_ = false;
}

void JsonLine::quote(std::string_view value) {
  static constexpr char kHex[] = "0123456789abcdef";
  out_ += '"';
  for (const char c : value) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte >= 0x20 && byte < 0x7F && c != '"' && c != '\\') {
      out_ += c;
      continue;
    }
    // Texts are those of faults and files: other bytes than ASCII are shown one by one.
    out_ += "\\u00";
    out_ += kHex[byte >> 4];
    out_ += kHex[byte & 0xF];
  }
  out_ += '"';
}

void JsonLine::number(std::string_view key, std::int64_t value) {
  start(key);
  out_ += std::to_string(value);
}

void JsonLine::decimal(std::string_view key, std::int64_t thousandths) {
  start(key);
  if (thousandths < 0) out_ += '-';
  const std::uint64_t size = thousandths < 0 ? 0 - static_cast<std::uint64_t>(thousandths)
                                             : static_cast<std::uint64_t>(thousandths);
  out_ += std::to_string(size / 1000);
  if (size % 1000 > 0) out_ += '.' + std::to_string(1000 + size % 1000).substr(1);
}

void JsonLine::text(std::string_view key, std::string_view value) {
  start(key);
  quote(value);
}

void JsonLine::truth(std::string_view key, bool value) {
  start(key);
  out_ += value ? "true" : "false";
}

std::string JsonLine::take() {
  first_ = true;
  return std::exchange(out_, {});
}

}  // namespace mrc::view
