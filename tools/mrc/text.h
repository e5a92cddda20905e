// Numbers as people read them.
#pragma once

#include <cstdint>
#include <string>

#include "base/types.h"

namespace mrc::tool {

// 1234567 -> "1,234,567".
std::string grouped(std::uint64_t number);
// "1 packet", "2,000 packets".
std::string counted(std::uint64_t number, const char* one, const char* many);
// 12345 ns -> "12.3 us".
std::string microseconds(DurationNs ns);
// 2.5e12 -> "2.50 Tb/s".
std::string bit_rate(double bits_per_second);
// 2'800'000'000 -> "2.8 GB".
std::string byte_count(std::uint64_t bytes);
// Now, as "2026-01-31T23:59:58Z".
std::string wall_time();
// A share as "12.3 %"; of nothing it is 0.
std::string percent(double part, double whole);

}  // namespace mrc::tool
