// How evenly flows share what there is, from their bytes over time.
#pragma once

#include <optional>
#include <vector>

#include "sim/event_queue.h"
#include "sim/result.h"
#include "sim/series.h"
#include "sim/workload.h"

namespace mrc::sim {

// Jain's index: 1 when all have the same, 1/n when one has everything; 1 of nothing.
double jain_index(const std::vector<double>& amounts);

struct FairnessReport {
  static constexpr unsigned kSlices = 10;

  double from_us = 0;  // while all flows have something to send
  double until_us = 0;
  std::vector<double> share;                // of each flow, of the bytes delivered meanwhile
  double jain = 1;                          // of the shares
  double jain_worst = 1;                    // in the worst tenth of that time
  std::vector<std::vector<double>> slices;  // the shares in each tenth
};

// Nothing for workloads whose shares are not recorded, and where flows are not all under way for
// ten intervals of the series.
std::optional<FairnessReport> measure_fairness(const Workload& workload, const SimResult& result);

}  // namespace mrc::sim
