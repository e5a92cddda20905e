// One scenario, to be run in a lab and in the simulator: a file of settings as `mrc sim --config`
// reads it, and what both sides make of it.
#pragma once

#include <string>

#include "controller/profiles.h"
#include "sim/config.h"
#include "sim/workload.h"

namespace mrc::tool::twin {

struct Scenario {
  std::string path;
  sim::SimConfig config;  // for the simulator; rates and delays hold in the lab, too
  sim::Workload workload;
};

// Throws InputError: where the file is wrong, or says what a lab cannot do.
Scenario read_scenario(const std::string& path);

// The congestion control of both sides, with every value that devices would choose by themselves.
controller::CcSpec cc_profile_of(const Scenario& scenario);

// What the simulator has to know of the machine that the lab runs on.
struct LabTraits {
  std::uint32_t mtu = 0;
  double idle_rtt_us = 0;  // of 64 bytes, median of the hosts
  double in_hosts_us = 0;  // of such a round trip, beyond cables and serialisation, median
};
sim::SimConfig simulated(const Scenario& scenario, const LabTraits& traits);

}  // namespace mrc::tool::twin
