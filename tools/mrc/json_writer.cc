#include "json_writer.h"

#include <fmt/core.h>

namespace mrc::tool {

void JsonWriter::value(std::string_view key, std::uint64_t number) {
  start(key);
  fmt::print(out_, "{}", number);
}

void JsonWriter::value(std::string_view key, std::int64_t number) {
  start(key);
  fmt::print(out_, "{}", number);
}

void JsonWriter::value(std::string_view key, double number) {
  start(key);
  fmt::print(out_, "{:.6g}", number);
}

void JsonWriter::value(std::string_view key, bool truth) {
  start(key);
  fmt::print(out_, "{}", truth);
}

void JsonWriter::value(std::string_view key, std::string_view text) {
  start(key);
  quote(text);
}

void JsonWriter::null(std::string_view key) {
  start(key);
  fmt::print(out_, "null");
}

void JsonWriter::open(std::string_view key, char bracket) {
  start(key);
  fmt::print(out_, "{}", bracket);
  ++depth_;
  first_ = true;
}

void JsonWriter::close(char bracket) {
  --depth_;
  if (!first_) new_line();
  fmt::print(out_, "{}", bracket);
  first_ = false;
  if (depth_ == 0) fmt::print(out_, "\n");
}

void JsonWriter::start(std::string_view key) {
  if (!first_) fmt::print(out_, ",");
  if (depth_ > 0) new_line();
  first_ = false;
  if (key.empty()) return;
  quote(key);
  fmt::print(out_, ": ");
}

void JsonWriter::new_line() { fmt::print(out_, "\n{:{}}", "", 2 * depth_); }

void JsonWriter::quote(std::string_view text) {
  fmt::print(out_, "\"");
  for (const char c : text) {
    if (c == '"' || c == '\\') {
      fmt::print(out_, "\\{}", c);
    } else if (static_cast<unsigned char>(c) < 0x20) {
      fmt::print(out_, "\\u{:04x}", static_cast<unsigned>(c));
    } else {
      fmt::print(out_, "{}", c);
    }
  }
  fmt::print(out_, "\"");
}

}  // namespace mrc::tool
