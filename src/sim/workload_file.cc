// Flows from a file of comma-separated values: source,destination,bytes[,start_us[,connection]],
// one flow per line. Empty lines and lines that begin with # are skipped, and so is the first line
// of the others if it names the columns, "source" first.

#include <charconv>
#include <fstream>
#include <string>
#include <string_view>
#include <utility>

#include "base/quantity.h"
#include "fabric/input_error.h"
#include "sim/workload_makers.h"

namespace mrc::sim {
namespace {

using fabric::InputError;
using fabric::Topology;

constexpr std::uint64_t kMaxBytes = std::uint64_t{1} << kTaskAddressBits;
constexpr std::uint64_t kMaxConnection = 1'023;

std::string_view trimmed(std::string_view text) {
  const auto blank = [](char c) { return c == ' ' || c == '\t' || c == '\r'; };
  while (!text.empty() && blank(text.front()))
    text.remove_prefix(1);
  while (!text.empty() && blank(text.back()))
    text.remove_suffix(1);
  return text;
}

std::vector<std::string_view> fields_of(std::string_view line) {
  std::vector<std::string_view> fields;
  for (;;) {
    const std::size_t comma = line.find(',');
    fields.push_back(trimmed(line.substr(0, comma)));
    if (comma == std::string_view::npos) return fields;
    line.remove_prefix(comma + 1);
  }
}

// Reads the fields of one line; complains with file and line.
class FlowLine {
 public:
  FlowLine(std::string where, std::string_view line) : where_(std::move(where)) {
    fields_ = fields_of(line);
    if (fields_.size() < 3 || fields_.size() > 5)
      fail("a flow is source,destination,bytes[,start_us[,connection]]");
  }

  [[noreturn]] void fail(const std::string& why) const { throw InputError(where_ + ": " + why); }
  bool has(std::size_t i) const { return i < fields_.size() && !fields_[i].empty(); }

  std::uint64_t number(std::size_t i, const char* what, std::uint64_t lowest,
                       std::uint64_t highest) const {
    const std::string_view text = fields_[i];
    std::uint64_t value = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (text.empty() || error != std::errc{} || end != text.data() + text.size() ||
        value < lowest || value > highest)
      fail(std::string(what) + " '" + std::string(text) + "' is not a whole number from " +
           std::to_string(lowest) + " to " + std::to_string(highest));
    return value;
  }

  Time start() const {
    if (!has(3)) return 0;
    const std::optional<Time> time = parse_time(std::string(fields_[3]) + "us");
    if (!time) fail("start_us '" + std::string(fields_[3]) + "' is not a time in microseconds");
    return *time;
  }

 private:
  std::string where_;
  std::vector<std::string_view> fields_;
};

void add_flow(WorkloadBuilder& builder, const WorkloadSpec& spec, const Topology& topology,
              const FlowLine& line) {
  const std::uint64_t last = topology.hosts() - 1;
  const auto source = static_cast<std::uint32_t>(line.number(0, "source", 0, last));
  const auto destination = static_cast<std::uint32_t>(line.number(1, "destination", 0, last));
  if (source == destination) line.fail("source and destination are the same host");
  const std::uint64_t bytes = line.number(2, "bytes", spec.connections, kMaxBytes - 1);
  const Time start = line.start();
  TaskRange parts;
  if (line.has(4)) {
    parts = add_transfer(builder, 1, source, destination, bytes);
    builder.task(parts.first).connection =
        static_cast<std::uint16_t>(line.number(4, "connection", 0, kMaxConnection));
  } else {
    parts = add_transfer(builder, spec.connections, source, destination, bytes);
  }
  for (std::uint32_t i = 0; i < parts.count; ++i)
    builder.task(parts.first + i).delay = start;
}

}  // namespace

Workload make_flows(const WorkloadSpec& spec, const Topology& topology) {
  if (spec.file.empty()) throw InputError("workload: flows come from a file, and none is given");
  std::ifstream in(spec.file);
  if (!in) throw InputError(spec.file + ": cannot be read");
  WorkloadBuilder builder("flows");
  std::string text;
  bool first = true;
  bool any = false;
  for (unsigned number = 1; std::getline(in, text); ++number) {
    const std::string_view line = trimmed(text);
    if (line.empty() || line.front() == '#') continue;
    const bool names_columns = std::exchange(first, false) && fields_of(line)[0] == "source";
    if (names_columns) continue;
    add_flow(builder, spec, topology, FlowLine(spec.file + ":" + std::to_string(number), line));
    any = true;
  }
  if (!in.eof()) throw InputError(spec.file + ": cannot be read to its end");
  if (!any) throw InputError(spec.file + ": has no flow");
  return builder.build();
}

}  // namespace mrc::sim
