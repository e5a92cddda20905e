// The faults of a run: those of its plan, and those that somebody adds or ends while it goes on.
//
// What is added or ended takes effect at the next whole nanosecond that has not been asked for, and
// is entered into the plan with its times. So the plan as it stands after the run, given to another
// run from the start, gives the same run.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "fabric/fault_plan.h"
#include "sim/event_queue.h"

namespace mrc::sim {

class FaultSchedule {
 public:
  // Actions become events of `events`, kFault with their number, until `end`. All three outlive
  // this. Throws InputError.
  FaultSchedule(const std::vector<std::string>& plan, const fabric::Topology& topology, Time end,
                EventQueue& events);

  const std::vector<fabric::Fault>& plan() const { return plan_; }
  // Null when the fault was ended before this came.
  const fabric::FaultAction* action(std::uint32_t number) const {
    const fabric::FaultAction& action = actions_[number];
    return action.link == fabric::kNoLink ? nullptr : &action;
  }

  // `what` is a fault without its begin: "t0:3/t1:5/plane:0 down for 2ms". Throws InputError.
  void add(std::string_view what, Time now);
  // Throws InputError when there is no such fault, or when it is over or has not begun.
  void end(std::uint32_t fault, Time now);

 private:
  Time next_moment(Time now);
  void schedule(std::uint32_t fault, Time after);

  const fabric::Topology& topology_;
  EventQueue& events_;
  Time end_;
  std::vector<fabric::Fault> plan_;
  std::vector<fabric::FaultAction> actions_;
  Time last_moment_ = 0;
};

}  // namespace mrc::sim
