// What programs tell of their devices, short enough for a page: lines "host" of the stream.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>

#include "commands/stat/device_report.h"
#include "view/frame.h"

namespace mrc::tool::view_tool {

inline constexpr std::size_t kMaxReportedQueuePairs = 8;  // of a device, the busiest

// What fits beside a picture; `mrc stat --json` has all.
nlohmann::ordered_json short_report(const stat::Change& change);
// `devices` is a list of these.
std::string report_line(std::uint32_t host, view::Nanoseconds at,
                        const nlohmann::ordered_json& devices);

}  // namespace mrc::tool::view_tool
