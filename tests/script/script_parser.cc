#include "script/script_parser.h"

#include <cctype>
#include <utility>

namespace mrc::script {
namespace {

bool is_digit(char c) { return std::isdigit(static_cast<unsigned char>(c)) != 0; }

std::vector<std::string> split_words(std::string_view line) {
  std::vector<std::string> words;
  std::string word;
  for (const char c : line) {
    const bool space = c == ' ' || c == '\t' || c == '\r';
    if (c == '#' && word.empty()) break;
    if (!space) {
      word += c;
    } else if (!word.empty()) {
      words.push_back(std::move(word));
      word.clear();
    }
  }
  if (!word.empty()) words.push_back(std::move(word));
  return words;
}

DurationNs require_duration(std::string_view text, unsigned line) {
  const auto duration = parse_duration(text);
  if (!duration) throw ScriptError(line, "not a time: " + std::string(text));
  return *duration;
}

// Reads the time in front of a statement; returns how many words it took.
std::size_t parse_timing(const std::vector<std::string>& words, unsigned line, Timing& out) {
  const std::string& first = words[0];
  if (first == "within") {
    if (words.size() < 2) throw ScriptError(line, "`within` needs a time");
    out = {Timing::Kind::kWindow, 0, require_duration(words[1], line)};
    return 2;
  }
  if (first[0] == '+') {
    const std::size_t dots = first.find("..+");
    if (dots != std::string::npos) {
      const std::string_view view = first;
      out = {Timing::Kind::kWindow, require_duration(view.substr(1, dots - 1), line),
             require_duration(view.substr(dots + 3), line)};
      return 1;
    }
    out = {Timing::Kind::kRelative, require_duration(first.substr(1), line), 0};
    return 1;
  }
  if (is_digit(first[0])) {
    out = {Timing::Kind::kAbsolute, require_duration(first, line), 0};
    return 1;
  }
  return 0;
}

// The operator in `name=value`, by its position and length; length 0 when there is none.
std::pair<std::size_t, std::size_t> find_operator(const std::string& word, Comparison& out) {
  struct Spelling {
    const char* text;
    Comparison comparison;
  };
  static constexpr Spelling kSpellings[] = {
      {"!=", Comparison::kNotEqual},     {"<=", Comparison::kLessEqual},
      {">=", Comparison::kGreaterEqual}, {"=", Comparison::kEqual},
      {"<", Comparison::kLess},          {">", Comparison::kGreater},
  };
  const std::size_t position = word.find_first_of("!<>=");
  if (position == std::string::npos || position == 0) return {0, 0};
  for (const Spelling& spelling : kSpellings) {
    const std::string_view text = spelling.text;
    if (word.compare(position, text.size(), text) == 0) {
      out = spelling.comparison;
      return {position, text.size()};
    }
  }
  return {0, 0};
}

void add_word(const std::string& word, unsigned line, std::vector<std::string>& words,
              std::vector<Assignment>& fields) {
  Comparison comparison{};
  const auto [position, length] = find_operator(word, comparison);
  if (length == 0) {
    if (!fields.empty() && word != "until" && word[0] != '+') {
      throw ScriptError(line, "a word after the fields: " + word);
    }
    words.push_back(word);
    return;
  }
  Assignment field{word.substr(0, position), comparison, word.substr(position + length)};
  if (field.value.empty()) throw ScriptError(line, "no value: " + word);
  fields.push_back(std::move(field));
}

Statement parse_statement(std::string_view text, const std::vector<std::string>& words,
                          unsigned line) {
  Statement statement;
  statement.line = line;
  statement.text = text;
  std::size_t i = parse_timing(words, line, statement.timing);
  for (; i < words.size() && words[i] != "->"; ++i) {
    add_word(words[i], line, statement.words, statement.fields);
  }
  if (statement.words.empty()) throw ScriptError(line, "a statement begins with a verb");
  if (i == words.size()) return statement;
  for (++i; i < words.size(); ++i) {
    add_word(words[i], line, statement.outcome_words, statement.outcome_fields);
  }
  if (statement.outcome_words.empty()) throw ScriptError(line, "`->` needs an outcome");
  return statement;
}

std::string parse_title(std::string_view line) {
  if (line.size() < 3 || line.substr(0, 2) != "# ") {
    throw ScriptError(1, "the first line must be a comment that says what the script shows");
  }
  return std::string(line.substr(2));
}

}  // namespace

std::optional<DurationNs> parse_duration(std::string_view text) {
  DurationNs whole = 0;
  DurationNs fraction = 0;
  DurationNs scale = 1;
  bool after_point = false;
  std::size_t i = 0;
  for (; i < text.size() && (is_digit(text[i]) || (text[i] == '.' && !after_point)); ++i) {
    if (text[i] == '.') {
      after_point = true;
    } else if (after_point) {
      fraction = fraction * 10 + (text[i] - '0');
      scale *= 10;
    } else {
      whole = whole * 10 + (text[i] - '0');
    }
  }
  if (i == 0 || scale > kSecondNs) return std::nullopt;
  const std::string_view unit = text.substr(i);
  DurationNs unit_ns = 0;
  if (unit == "ns") unit_ns = 1;
  if (unit == "us") unit_ns = kMicrosecondNs;
  if (unit == "ms") unit_ns = kMillisecondNs;
  if (unit == "s") unit_ns = kSecondNs;
  if (unit.empty() && whole == 0 && scale == 1) unit_ns = 1;  // "+0"
  if (unit_ns == 0) return std::nullopt;
  return whole * unit_ns + fraction * unit_ns / scale;
}

Script parse_script(std::string_view text) {
  Script script;
  unsigned line = 0;
  while (!text.empty()) {
    const std::size_t end = text.find('\n');
    const std::string_view current = text.substr(0, end);
    text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
    ++line;
    if (line == 1) {
      script.title = parse_title(current);
      continue;
    }
    const std::vector<std::string> words = split_words(current);
    if (!words.empty()) script.statements.push_back(parse_statement(current, words, line));
  }
  if (script.statements.empty()) throw ScriptError(line, "the script holds no statement");
  return script;
}

}  // namespace mrc::script
