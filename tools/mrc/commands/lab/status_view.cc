#include "commands/lab/status_view.h"

#include <fmt/core.h>

#include <cstdio>
#include <cstdlib>
#include <vector>

#include "json_writer.h"
#include "lab/forwarding.h"
#include "text.h"

namespace mrc::tool::lab_tool {
namespace {

using Line = std::vector<std::string>;

std::vector<Line> split_lines(const std::string& text) {
  std::vector<Line> lines(1, Line(1));
  for (const char c : text) {
    if (c == '\n') {
      lines.emplace_back(1);
    } else if (c == '\t') {
      lines.back().emplace_back();
    } else {
      lines.back().back() += c;
    }
  }
  lines.pop_back();
  return lines;
}

std::uint64_t number(const Line& line, std::size_t at) {
  return at < line.size() ? std::strtoull(line[at].c_str(), nullptr, 10) : 0;
}
std::string word(const Line& line, std::size_t at) { return at < line.size() ? line[at] : ""; }

constexpr std::size_t kFirstDrop = 7;  // in a line about a plane

std::uint64_t all_drops(const Line& line) {
  std::uint64_t sum = 0;
  for (std::size_t at = kFirstDrop; at < line.size(); ++at)
    sum += number(line, at);
  return sum;
}

std::string drop_text(const Line& line) {
  std::string text;
  for (unsigned cause = 0; cause < lab::kDropCauses; ++cause) {
    const std::uint64_t count = number(line, kFirstDrop + cause);
    if (count == 0) continue;
    text += fmt::format("{}{} {}", text.empty() ? " (" : ", ",
                        lab::drop_cause_name(static_cast<lab::DropCause>(cause)), grouped(count));
  }
  return text.empty() ? text : text + ")";
}

void print_line(const Line& line) {
  const std::string& kind = line[0];
  if (kind == "lab") {
    fmt::print("lab {}, process {}, up for {} s\n", word(line, 1), word(line, 2), word(line, 3));
  } else if (kind == "fabric") {
    fmt::print("{} hosts, {} planes of {} T0 + {} T1", word(line, 2), word(line, 1), word(line, 3),
               word(line, 4));
    if (number(line, 5) > 0) fmt::print(" + {} T2", word(line, 5));
    fmt::print(", {:g} Mb/s per host port\n", static_cast<double>(number(line, 6)) / 1e6);
  } else if (kind == "plane") {
    fmt::print("plane {}: {} frames, {} bytes, {} marked, {} trimmed, {} dropped{}\n",
               word(line, 1), grouped(number(line, 2)), grouped(number(line, 3)),
               grouped(number(line, 4)), grouped(number(line, 5)), grouped(all_drops(line)),
               drop_text(line));
  } else if (kind == "port") {
    fmt::print("host {} plane {}: {}, {}\n", word(line, 1), word(line, 2), word(line, 3),
               counted(number(line, 4), "process", "processes"));
  } else if (kind == "link") {
    fmt::print("link {}: {}{}\n", word(line, 1), word(line, 2),
               line.size() > 3 ? ", data was sent its way for " + line[3] + " ms" : "");
  } else if (kind == "fault") {
    fmt::print("fault ({}): {}\n", word(line, 1), word(line, 2));
  } else if (kind == "program") {
    fmt::print("host {} runs {} (process {})\n", word(line, 1), word(line, 3), word(line, 2));
  }
}

void write_plane(JsonWriter& json, const Line& line) {
  json.begin_object();
  json.value("plane", number(line, 1));
  json.value("frames", number(line, 2));
  json.value("bytes", number(line, 3));
  json.value("marked", number(line, 4));
  json.value("trimmed", number(line, 5));
  json.value("corrupted", number(line, 6));
  json.begin_object("dropped");
  for (unsigned cause = 0; cause < lab::kDropCauses; ++cause)
    json.value(lab::drop_cause_name(static_cast<lab::DropCause>(cause)),
               number(line, kFirstDrop + cause));
  json.end_object();
  json.end_object();
}

void write_member(JsonWriter& json, const Line& line) {
  if (line[0] == "plane") return write_plane(json, line);
  json.begin_object();
  if (line[0] == "port") {
    json.value("host", number(line, 1));
    json.value("plane", number(line, 2));
    json.value("state", word(line, 3));
    json.value("processes", number(line, 4));
  } else if (line[0] == "link") {
    json.value("link", word(line, 1));
    json.value("condition", word(line, 2));
    if (line.size() > 3) json.value("offered_ms", std::strtod(line[3].c_str(), nullptr));
  } else if (line[0] == "fault") {
    json.value("state", word(line, 1));
    json.value("text", word(line, 2));
  } else {
    json.value("host", number(line, 1));
    json.value("process", number(line, 2));
    json.value("command", word(line, 3));
  }
  json.end_object();
}

void write_json(const std::vector<Line>& lines) {
  JsonWriter json(stdout);
  json.begin_object();
  json.value("schema", "mrc.lab.status/1");
  for (const Line& line : lines) {
    if (line[0] == "lab") {
      json.value("name", word(line, 1));
      json.value("process", number(line, 2));
      json.value("uptime_s", std::strtod(word(line, 3).c_str(), nullptr));
    } else if (line[0] == "fabric") {
      json.begin_object("fabric");
      json.value("planes", number(line, 1));
      json.value("hosts", number(line, 2));
      json.value("t0", number(line, 3));
      json.value("t1", number(line, 4));
      json.value("t2", number(line, 5));
      json.value("port_bits_per_second", number(line, 6));
      json.value("pods", number(line, 7));
      json.value("cables", number(line, 8));
      json.end_object();
    }
  }
  for (const char* kind : {"plane", "port", "link", "fault", "program"}) {
    json.begin_array(std::string(kind) + "s");
    for (const Line& line : lines)
      if (line[0] == kind) write_member(json, line);
    json.end_array();
  }
  json.end_object();
}

}  // namespace

void print_status(const std::string& status, bool json) {
  const std::vector<Line> lines = split_lines(status);
  if (json) {
    write_json(lines);
    return;
  }
  for (const Line& line : lines)
    print_line(line);
}

}  // namespace mrc::tool::lab_tool
