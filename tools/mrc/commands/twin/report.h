// Lab and simulator side by side.
#pragma once

#include "commands/twin/scenario.h"
#include "commands/twin/side.h"
#include "terminal.h"

namespace mrc::tool::twin {

struct Twin {
  Side lab;
  Side simulator;
  LabTraits traits;
};

// What one side is over the other; 0 where there is nothing to compare.
struct Agreement {
  double median_completion = 0;  // lab / simulator
  double last_completion = 0;
  double finish = 0;
  bool within_10_percent = false;      // the median
  bool same_order_of_repeats = false;  // retransmissions: within a factor of ten, or below 0.1 %
};
Agreement compare(const Side& lab, const Side& simulator);

void print_text(const Scenario& scenario, const Twin& twin, const Terminal& terminal);
void print_json(const Scenario& scenario, const Twin& twin);

}  // namespace mrc::tool::twin
