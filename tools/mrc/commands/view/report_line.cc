#include "commands/view/report_line.h"

namespace mrc::tool::view_tool {

using Json = nlohmann::ordered_json;

Json short_report(const stat::Change& change) {
  Json device = stat::describe(change);
  for (const char* const name : {"drops", "network", "round_trips", "message_latencies", "engines"})
    device.erase(name);
  Json& pairs = device["busiest_queue_pairs"];
  if (pairs.size() > kMaxReportedQueuePairs)
    pairs.erase(pairs.begin() + kMaxReportedQueuePairs, pairs.end());
  return device;
}

std::string report_line(std::uint32_t host, view::Nanoseconds at, const Json& devices) {
  return Json{{"host", host}, {"t", at}, {"devices", devices}}.dump(-1, ' ', false,
                                                                    Json::error_handler_t::replace);
}

}  // namespace mrc::tool::view_tool
