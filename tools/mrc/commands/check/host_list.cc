#include "commands/check/host_list.h"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <fstream>
#include <set>
#include <sstream>
#include <string_view>

#include "base/one_line.h"
#include "fabric/input_error.h"

namespace mrc::tool::check {
namespace {

constexpr std::size_t kMaxHosts = 65'536;
constexpr std::size_t kMaxWordBytes = 255;
constexpr std::size_t kMaxLineBytes = 4'096;
constexpr std::size_t kMaxListBytes = std::size_t{64} << 20;
constexpr std::size_t kShownBytes = 40;
constexpr std::string_view kMarks = ".-_:@%";

bool is_letter_or_digit(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
}

bool is_made_of(std::string_view word, std::string_view marks) {
  return !word.empty() && word.size() <= kMaxWordBytes && word.front() != '-' &&
         std::ranges::all_of(word, [&](char c) {
           return is_letter_or_digit(c) || marks.find(c) != std::string_view::npos;
         });
}

// Behind user@, too, a dash would begin an option of somebody.
bool is_host(const std::string& word) {
  return is_made_of(word, kMarks) && std::ranges::count(word, '@') <= 1 &&
         word.find("@-") == std::string::npos && word.front() != '@' && word.back() != '@';
}

class List {
 public:
  void add(const Host& host, const std::string& where) {
    for (const std::string& word : {host.name, host.address}) {
      if (is_host(word)) continue;
      throw fabric::InputError(fmt::format(
          "{}: '{}' is no host: letters, digits and . - _ : @ % make one, and no - begins it",
          where, one_line(word.substr(0, kShownBytes))));
    }
    if (!names_.insert(host.name).second)
      throw fabric::InputError(where + ": " + host.name + " is there twice");
    if (hosts_.size() == kMaxHosts)
      throw fabric::InputError(fmt::format("{}: more than {} hosts", where, kMaxHosts));
    hosts_.push_back(host);
  }
  std::vector<Host> take(const std::string& source) {
    if (hosts_.empty()) throw fabric::InputError(source + " has no host");
    return std::move(hosts_);
  }

 private:
  std::vector<Host> hosts_;
  std::set<std::string> names_;
};

// Names of hosts end otherwise.
bool looks_like_file(const std::string& word) {
  constexpr std::array<std::string_view, 5> kEnds = {".txt", ".list", ".lst", ".csv", ".conf"};
  return std::ranges::any_of(kEnds, [&](std::string_view end) { return word.ends_with(end); });
}

}  // namespace

bool is_plain_word(const std::string& word) { return is_made_of(word, ".-_:@%+/,"); }

std::vector<Host> parse_hosts(std::istream& lines, const std::string& source) {
  List list;
  std::array<char, kMaxLineBytes + 1> buffer;
  std::size_t bytes = 0;
  for (unsigned number = 1; lines.getline(buffer.data(), buffer.size()) || lines.gcount() > 0;
       ++number) {
    const std::string where = fmt::format("{} line {}", source, number);
    // What is no list may have no end either.
    if (lines.fail()) throw fabric::InputError(where + " is too long");
    bytes += static_cast<std::size_t>(lines.gcount());
    if (bytes > kMaxListBytes)
      throw fabric::InputError(fmt::format("{}: larger than {} MiB", source, kMaxListBytes >> 20));
    std::string line(buffer.data(),
                     static_cast<std::size_t>(lines.gcount()) - (lines.eof() ? 0 : 1));
    if (line.ends_with('\r')) line.pop_back();  // as Windows ends lines
    // Only blanks part words: any other control character is part of one, and refused with it.
    std::replace(line.begin(), line.end(), '\t', ' ');
    const std::string text = line.substr(0, line.find('#'));
    std::vector<std::string> words;
    std::stringstream rest(text);
    for (std::string word; std::getline(rest, word, ' ');)
      if (!word.empty()) words.push_back(word);
    if (words.empty()) continue;
    if (words.size() > 2) throw fabric::InputError(where + ": a line is `name` or `name address`");
    list.add({.name = words.front(), .address = words.back()}, where);
  }
  return list.take(source);
}

std::vector<Host> read_hosts(const std::string& text) {
  std::error_code none;
  if (text.find(',') == std::string::npos && std::filesystem::exists(text, none)) {
    std::ifstream file(text);
    if (!file || std::filesystem::is_directory(text, none))
      throw fabric::InputError(text + ": cannot be read");
    return parse_hosts(file, text);
  }
  if (text.find('/') != std::string::npos || looks_like_file(text))
    throw fabric::InputError("there is no file " + one_line(text));
  List list;
  std::stringstream rest(text);
  for (std::string name; std::getline(rest, name, ',');)
    list.add({.name = name, .address = name}, "--hosts");
  return list.take("--hosts");
}

}  // namespace mrc::tool::check
