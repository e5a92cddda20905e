// The text of a packet script, cut into statements. The format is described in README.md.
//
// The parser knows how a line is built (time, words, fields, outcome) but not what the words mean;
// that is the runner's business.
#pragma once

#include <cstdint>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "base/types.h"

namespace mrc::script {

// What is wrong with a script or with the engine it tests; `line` counts from 1.
class ScriptError : public std::runtime_error {
 public:
  ScriptError(unsigned line, const std::string& what) : std::runtime_error(what), line_(line) {}
  unsigned line() const { return line_; }

 private:
  unsigned line_;
};

enum class Comparison : std::uint8_t {
  kEqual,
  kNotEqual,
  kLess,
  kLessEqual,
  kGreater,
  kGreaterEqual
};

// One `name=value`. The value is an expression that the runner evaluates.
struct Assignment {
  std::string name;
  Comparison comparison = Comparison::kEqual;
  std::string value;
};

// When a statement takes place, seen from the end of the statement before it.
struct Timing {
  enum class Kind : std::uint8_t { kRelative, kAbsolute, kWindow };
  Kind kind = Kind::kRelative;
  DurationNs from = 0;  // kRelative, kAbsolute: the moment; kWindow: its first moment
  DurationNs to = 0;    // kWindow: its last moment
};

struct Statement {
  unsigned line = 0;
  std::string text;
  Timing timing;
  std::vector<std::string> words;  // never empty; the verb comes first
  std::vector<Assignment> fields;
  std::vector<std::string> outcome_words;  // after `->`
  std::vector<Assignment> outcome_fields;
};

struct Script {
  std::string title;  // the comment on the first line
  std::vector<Statement> statements;
};

// Throws ScriptError.
Script parse_script(std::string_view text);

// "10us", "1.5ms", "1s"; nothing when it is no duration.
std::optional<DurationNs> parse_duration(std::string_view text);

}  // namespace mrc::script
