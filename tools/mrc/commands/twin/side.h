// What one of the two sides, lab or simulator, found out about a scenario.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "sim/workload.h"

namespace mrc::tool::twin {

// At the end of an interval.
struct Point {
  double at_ms = 0;
  double goodput_mbps = 0;      // of all hosts, since the point before
  std::uint32_t bad_paths = 0;  // of all senders, that are held for bad
};

struct Side {
  bool complete = false;
  std::uint64_t bytes_wrong = 0;
  std::vector<double> completion_ms;  // by task, from its post; below 0: a computation, or not done
  double finish_ms = 0;
  std::map<std::string, std::uint64_t> counts;  // names as in kCounts
  double recovery_ms = -1;  // from a link's end to the last data sent to it; below 0: none
  std::vector<Point> points;
};

inline constexpr const char* kCounts[] = {"data_packets", "retransmits", "spurious", "timeouts",
                                          "probes",       "marks",       "trims",    "drops"};
inline constexpr unsigned kPoints = 20;

}  // namespace mrc::tool::twin
