// What a test program has to show, for people and for the ledger: a file
// {"name": ..., "lines": {label: number, ...}}, see scripts/test_summary.py.
#pragma once

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

namespace mrc::test {

using ResultLines = std::vector<std::pair<std::string, std::uint64_t>>;

// False when the file cannot be written. Missing folders are made. Labels are our own words: no
// character in them needs an escape.
inline bool write_results(const std::string& path, const std::string& name,
                          const ResultLines& lines) {
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

}  // namespace mrc::test
