// What no transport can beat: a lower bound of the time a workload takes.
#pragma once

#include <string>
#include <vector>

#include "fabric/fault_plan.h"
#include "sim/config.h"
#include "sim/ideal.h"
#include "sim/workload.h"

namespace mrc::sim {

struct Bound {
  double us = 0;
  std::string reason;  // which resource sets it, for people
};

// The largest of: the ideal time of the largest flow; for every resource (the ports of a host, the
// uplinks of a T0, those of a pod, either way) the time it needs for all the bytes that must cross
// it, with its links as fast as the fault plan leaves them, plus the idle round trip; the longest
// chain of tasks that wait for each other. `waits` of the tasks is not looked at.
Bound lower_bound(const SimConfig& config, const fabric::Topology& topology,
                  const Workload& workload, const std::vector<fabric::Fault>& faults,
                  const IdealTimes& ideal);

}  // namespace mrc::sim
