// What can be said about a recording before anybody draws it.
#include <charconv>

#include "view/stream.h"

namespace mrc::view {
namespace {

constexpr std::string_view kHeaderStart = "{\"view\":";
constexpr std::string_view kEndStart = "{\"end\":";

struct Leading {
  bool found = false;
  std::uint64_t value = 0;
};

// The number behind `start`, with which the line begins.
Leading leading_number(std::string_view line, std::string_view start) {
  if (!line.starts_with(start)) return {};
  Leading leading;
  const char* const from = line.data() + start.size();
  const char* const to = line.data() + line.size();
  const auto [rest, error] = std::from_chars(from, to, leading.value);
  leading.found = error == std::errc() && rest != to && (*rest == ',' || *rest == '}');
  return leading;
}

bool is_line(std::string_view line) {
  if (line.size() < 2 || line.size() > kMaxLineBytes) return false;
  if (line.front() != '{' || line.back() != '}') return false;
  for (const char c : line)
    if (c < 0x20 || c == 0x7F) return false;
  return true;
}

std::string at_line(std::uint64_t number, std::string_view what) {
  return "line " + std::to_string(number) + " " + std::string(what);
}

}  // namespace

RecordingCheck parse_recording(std::string_view text) {
  if (text.size() > kMaxRecordingBytes) return {.problem = "is larger than 256 MiB"};
  RecordingCheck check;
  bool ended = false;
  while (!text.empty()) {
    const std::size_t end = text.find('\n');
    if (end == std::string_view::npos) break;
    const std::string_view line = text.substr(0, end);
    text.remove_prefix(end + 1);
    if (ended) return {.problem = "goes on after its end"};
    if (check.lines == 0) {
      const Leading version = leading_number(line, kHeaderStart);
      if (!version.found) return {.problem = "is no recording of mrc sim --record"};
      if (version.value < kOldestStreamVersion || version.value > kStreamVersion)
        return {.problem = "is a recording of version " + std::to_string(version.value) +
                           "; this program reads versions " + std::to_string(kOldestStreamVersion) +
                           " to " + std::to_string(kStreamVersion)};
    }
    if (!is_line(line)) return {.problem = at_line(check.lines + 1, "is damaged")};
    if (const Leading count = leading_number(line, kEndStart); count.found) {
      if (count.value != check.lines) return {.problem = "misses lines"};
      ended = true;
    } else {
      ++check.lines;
    }
  }
  if (check.lines == 0) return {.problem = "is no recording of mrc sim --record"};
  if (!ended || !text.empty())
    return {.problem = "was cut short after line " + std::to_string(check.lines)};
  return check;
}

}  // namespace mrc::view
