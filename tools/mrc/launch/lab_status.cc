#include "launch/lab_status.h"

#include <algorithm>
#include <cstdlib>
#include <sstream>

#include "failure.h"

namespace mrc::tool {
namespace {

// Columns of a line about a plane.
constexpr std::size_t kBytes = 3;
constexpr std::size_t kMarked = 4;
constexpr std::size_t kTrimmed = 5;
constexpr std::size_t kFirstDrop = 7;
// Of a line about a link that is not healthy.
constexpr std::size_t kCondition = 2;
constexpr std::size_t kOffered = 3;
// Of the line about the fabric.
constexpr std::size_t kHosts = 2;
// And of a line about a program.
constexpr std::size_t kHost = 1;
constexpr std::size_t kPid = 2;

std::vector<std::string> words_of(const std::string& line) {
  std::vector<std::string> words;
  std::istringstream in(line);
  for (std::string word; std::getline(in, word, '\t');)
    words.push_back(word);
  return words;
}

std::uint64_t number(const std::vector<std::string>& words, std::size_t at) {
  return at < words.size() ? std::strtoull(words[at].c_str(), nullptr, 10) : 0;
}

}  // namespace

LabStatus parse_status(const std::string& text) {
  LabStatus status;
  std::istringstream in(text);
  for (std::string line; std::getline(in, line);) {
    const std::vector<std::string> words = words_of(line);
    if (words.empty()) continue;
    if (words[0] == "fabric") status.hosts = static_cast<unsigned>(number(words, kHosts));
    if (words[0] == "link" && words.size() > kOffered && words[kCondition].starts_with("down"))
      status.offered_after_ms =
          std::max(status.offered_after_ms, std::strtod(words[kOffered].c_str(), nullptr));
    if (words[0] == "program")
      status.programs.push_back(
          {.host = static_cast<unsigned>(number(words, kHost)), .pid = number(words, kPid)});
    if (words[0] != "plane") continue;
    LabStatus::Plane plane{.bytes = number(words, kBytes),
                           .trimmed = number(words, kTrimmed),
                           .marked = number(words, kMarked)};
    for (std::size_t at = kFirstDrop; at < words.size(); ++at)
      plane.dropped += number(words, at);
    status.planes.push_back(plane);
  }
  return status;
}

LabStatus ask_status(lab::ControlClient& client) {
  const lab::Reply reply = client.ask({"status"});
  if (!reply.ok) throw Failure(reply.text);
  return parse_status(reply.text);
}

}  // namespace mrc::tool
