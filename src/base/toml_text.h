// What has to be known about a TOML text before toml++ 3.3 may see it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

namespace mrc {

struct TextPosition {
  std::uint32_t line = 1;
  std::uint32_t column = 1;
};

inline constexpr std::string_view kBeyondAscii =
    "only comments and quoted texts may hold characters beyond ASCII";

// The parser must not see characters beyond ASCII outside comments and quotes: it has undefined
// behaviour there. Follows the text as far as it is TOML; behind the first error nothing matters.
class AsciiCheck {
 public:
  explicit AsciiCheck(std::string_view text) : text_(text) {}

  std::optional<TextPosition> find() {
    while (at_ < text_.size()) {
      const char c = text_[at_];
      if (quote_.empty() && !comment_ && static_cast<unsigned char>(c) >= 0x80) {
        return TextPosition{.line = line_,
                            .column = static_cast<std::uint32_t>(at_ - line_start_ + 1)};
      }
      at_ += step(c);
    }
    return std::nullopt;
  }

 private:
  // Notes what the character at `at_` begins or ends; returns how far to go on.
  std::size_t step(char c) {
    if (c == '\n') {
      ++line_;
      line_start_ = at_ + 1;
      comment_ = false;
      if (quote_.size() == 1) quote_ = {};
    } else if (!quote_.empty()) {
      if (c == '\\' && quote_[0] == '"') return 2;
      if (!text_.substr(at_).starts_with(quote_)) return 1;
      const std::size_t length = quote_.size();
      quote_ = {};
      return length;
    } else if (!comment_ && c == '#') {
      comment_ = true;
    } else if (!comment_ && (c == '"' || c == '\'')) {
      const std::string_view rest = text_.substr(at_);
      const bool three = rest.size() >= 3 && rest[1] == c && rest[2] == c;
      quote_ = rest.substr(0, three ? 3 : 1);
      return quote_.size();
    }
    return 1;
  }

  std::string_view text_;
  std::string_view quote_;  // that ends the text we are in
  bool comment_ = false;
  std::size_t at_ = 0;
  std::size_t line_start_ = 0;
  std::uint32_t line_ = 1;
};

// The position of the first character the parser must not see.
inline std::optional<TextPosition> beyond_ascii(std::string_view text) {
  return AsciiCheck(text).find();
}

}  // namespace mrc
