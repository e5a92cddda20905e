// Options that take quantities as people write them (base/quantity.h).
#pragma once

#include <CLI/CLI.hpp>
#include <string_view>

namespace mrc::tool {

// For transform(), which an option that has a check besides calls before it: what is no such
// quantity is refused, with the form that is wanted.
CLI::Validator as_bytes();
CLI::Validator as_count();
CLI::Validator as_share();
// Seconds, with a unit or without; from `least` to `most` of them.
struct SecondsRange {
  double least = 0;
  double most = 86'400;
};
CLI::Validator as_seconds(SecondsRange range);
// Gb/s and Mb/s, or bits per second with another unit.
CLI::Validator as_gbps();
CLI::Validator as_mbps();
CLI::Validator as_tbps();
// What has its unit in its name: `name` as in a file, "delay_us".
CLI::Validator as_named(std::string_view name);
// The number of a TCP port.
CLI::Validator as_port();

}  // namespace mrc::tool
