#include "dst/results.h"

#include <filesystem>
#include <fstream>
#include <system_error>

namespace mrc::dst {

ResultLines result_lines(const Totals& totals) {
  ResultLines lines = {
      {"seeds", totals.seeds},
      {"seeds run twice", totals.rerun},
      {"packets", totals.packets},
      {"data packets", totals.data_packets},
      {"retransmissions", totals.retransmissions},
      {"payload bytes", totals.payload_bytes},
      {"completions", totals.completions},
      {"immediates", totals.immediates},
      {"virtual microseconds", totals.virtual_ns / 1'000},
      {"longest drain, permille of its bound", totals.drain_permille},
      {"faults", totals.fault_count()},
  };
  for (std::size_t i = 0; i < kFaultCount; ++i) {
    const auto fault = static_cast<Fault>(i);
    lines.emplace_back(std::string("fault ") + fault_name(fault), totals.faults[fault]);
  }
  return lines;
}

// Labels are our own words: no character in them needs an escape.
bool write_results(const std::string& path, const std::string& name, const ResultLines& lines) {
  const std::filesystem::path target(path);
  std::error_code ignored;
  if (target.has_parent_path()) std::filesystem::create_directories(target.parent_path(), ignored);
  std::ofstream out(target);
  out << "{\"name\": \"" << name << "\", \"lines\": {";
  const char* separator = "";
  for (const auto& [label, value] : lines) {
    out << separator << "\n  \"" << label << "\": " << value;
    separator = ",";
  }
  out << "\n}}\n";
  out.flush();
  return out.good();
}

}  // namespace mrc::dst
