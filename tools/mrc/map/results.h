// Results of loops as one line of JSON, between the hosts that probe and whoever draws conclusions.
#pragma once

#include <string>
#include <vector>

#include "fabric/diagnosis.h"
#include "fabric/topology.h"

namespace mrc::tool::map {

struct Results {
  fabric::TopologySpec fabric;
  unsigned host = 0;
  std::vector<fabric::LoopResult> loops;  // all of that host
};

std::string to_line(const Results& results);
// InputError for a line that is none, and for loops that its fabric does not have.
Results from_line(const std::string& line);

// Whether devices and cables are the same; rates and delays do not matter here.
bool same_shape(const fabric::TopologySpec& a, const fabric::TopologySpec& b);

}  // namespace mrc::tool::map
