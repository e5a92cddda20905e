// What a simulation found out.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "sim/host.h"
#include "sim/network.h"
#include "sim/series.h"

namespace mrc::sim {

struct FlowResult {
  Time posted = -1;    // -1: not reached
  Time sent = -1;      // the sender's completion
  Time received = -1;  // where somebody waited for it
  bool failed = false;
};

// Goodput lost to the first fault that takes links down.
struct Dip {
  bool valid = false;
  double before_gbps = 0;  // mean over the second half of the time before the fault
  double lowest_gbps = 0;
  double depth = 0;      // share of `before` missing at the lowest
  double length_us = 0;  // from the fault until the level stays above 95 % of what it settles at
  double back_to_75_us = 0;  // until 75 % of `before` is reached to stay; negative: never
};

struct SimResult {
  std::vector<FlowResult> flows;  // by task
  Time finished_at = 0;
  bool complete = false;  // every task finished without error
  std::uint64_t completed = 0;
  std::uint64_t failed = 0;
  std::uint64_t bytes_wrong = 0;
  std::uint64_t events = 0;
  std::uint64_t trace_hash = 0;
  double recovery_us = -1;  // from a fault to the last packet sent on a dead path; -1: no fault
  Dip dip;
  HostTotals hosts;
  NetworkCounters network;
  Series series;
  Series shares;                // by flow instead of plane, where the workload asks for it
  std::vector<double> step_us;  // training
};

}  // namespace mrc::sim
