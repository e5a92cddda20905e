// What is broken in a drill, and what of the bandwidth each fault leaves.
#pragma once

#include <string>
#include <vector>

#include "commands/demo/options.h"
#include "fabric/topology.h"

namespace mrc::tool::demo {

// MRC on all planes; or the same fabric and the same bandwidth in one plane, where each queue pair
// has one path.
enum class Transport { kMrc, kSinglePath };

struct PlannedFault {
  std::string kind;    // for programs: cable, switch, port
  std::string begins;  // in words
  std::string ends;
  std::string fault;  // in the words of a fault plan
  std::string heals;  // its target, empty when the fault ends by itself
  double share_left = 1;
};

fabric::TopologySpec topology_of(const Options& options, Transport transport);
std::vector<PlannedFault> faults_of(const Options& options, Transport transport);
// Hosts by rank: neighbours on the ring are behind different T0, so that all traffic goes over T1.
std::vector<unsigned> ring_of(unsigned hosts);

}  // namespace mrc::tool::demo
