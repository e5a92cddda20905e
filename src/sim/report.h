// A run put into the numbers people ask for. What a run cost in real time is the caller's to add.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "fabric/fault_plan.h"
#include "sim/config.h"
#include "sim/explain.h"
#include "sim/fairness.h"
#include "sim/result.h"
#include "sim/simulation.h"
#include "sim/slowdown.h"
#include "sim/workload.h"

namespace mrc::sim {

const char* transport_name(Transport transport);  // "mrc", "rocev2", "split"

struct Distribution {
  double mean = 0;
  double p50 = 0;
  double p99 = 0;  // the smallest value that 99 % do not exceed
  double max = 0;
};
Distribution distribution(std::vector<double> values);

// The bystander of an incast; the flow of a parking lot that crosses two busy racks.
struct VictimReport {
  double fct_us = 0;
  double alone_us = 0;
  double ratio = 0;  // fct over alone
};

// Bandwidth of a collective as nccl-tests report it.
struct CollectiveReport {
  double algorithm_gbps = 0;
  double bus_gbps = 0;
};

struct Report {
  SimConfig config;
  std::uint64_t flows = 0;  // transfers, the victim among them
  std::uint64_t bytes = 0;  // of all flows
  Distribution fct_us;      // of the flows that completed, without the victim
  double ideal_us = 0;      // of the largest flow
  double ratio_max = 0;     // largest fct over ideal of one flow
  double bound_us = 0;      // of the whole workload
  std::string bound_reason;
  double ratio_bound = 0;   // last completion over bound
  double finish_us = 0;     // last completion
  double goodput_gbps = 0;  // bytes of completed flows until then
  bool has_down_fault = false;
  std::optional<VictimReport> victim;
  std::optional<CollectiveReport> collective;
  std::optional<FairnessReport> fairness;  // where the workload asks for it
  std::vector<SlowdownClass> slowdown;     // likewise
  std::vector<std::string> faults;         // as written
  std::vector<Time> fault_starts;          // of each
  SimResult result;
};

// Runs it once more to tell where the time of the `count` slowest flows went, the worst first.
std::vector<Explanation> explain_slowest(const Report& report, const Workload& workload,
                                         unsigned count, const ProgressFunction& progress = {});

// Measures the dip and runs flows alone.
Report make_report(const SimConfig& config, const fabric::Topology& topology,
                   const Workload& workload, const std::vector<fabric::Fault>& faults,
                   SimResult result);

}  // namespace mrc::sim
