// How much of its rate each link has left, over time, by a fault plan.
#pragma once

#include <cstdint>
#include <map>
#include <vector>

#include "fabric/fault_plan.h"
#include "sim/event_queue.h"

namespace mrc::sim {

class RateHistory {
 public:
  RateHistory(const std::vector<fabric::Fault>& plan, Time end);

  struct Change {
    Time at = 0;
    double share = 1;  // from then on; 0 while the link is down
  };
  // In order of time, each with another share than the one before, the first with another than 1.
  const std::vector<Change>& of(fabric::LinkId link) const;

 private:
  std::map<std::uint32_t, std::vector<Change>> changes_;  // by link
};

}  // namespace mrc::sim
