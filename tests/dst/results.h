// Machine-readable results: {"name": ..., "lines": {label: number, ...}}.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "dst/run_seed.h"

namespace mrc::dst {

using ResultLines = std::vector<std::pair<std::string, std::uint64_t>>;

// What a run of many seeds has to show, fault kinds included.
ResultLines result_lines(const Totals& totals);

// False when the file cannot be written. Missing folders are made.
bool write_results(const std::string& path, const std::string& name, const ResultLines& lines);

}  // namespace mrc::dst
