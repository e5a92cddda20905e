// The faults of a running lab: those of its plan and those given while it runs, each executed at
// its time, and taken back at will.
//
// Faults are fabric::Fault values; their times count from when they were added. Times here are
// picoseconds of the lab's clock. The book knows when faults begin and end; what they make of a
// link is fabric::LinkFaults' business. Not thread safe.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "fabric/fault_plan.h"

namespace mrc::lab {

class FaultBook {
 public:
  // Throws InputError when it would change links more often than can be executed.
  void add(fabric::Fault fault, fabric::Picoseconds now);

  // Ends every fault on these links, present and to come, as far as it concerns them; appends what
  // has to be done about it now to `actions`. Returns how many faults that were.
  unsigned heal(std::span<const fabric::LinkId> links, fabric::Picoseconds now,
                std::vector<fabric::FaultAction>& actions);

  // The next action that is due, in order of time; false when there is none.
  bool next(fabric::Picoseconds now, fabric::FaultAction& action);
  fabric::Picoseconds next_time() const;  // kForever: never

  struct Entry {
    std::string text;
    fabric::Picoseconds start_ps = 0;
    bool active = false;  // does something to a link right now
  };
  std::vector<Entry> entries() const;

 private:
  struct Known {
    fabric::Fault fault;                  // with its start on the lab's clock
    std::set<fabric::LinkId> active;      // links it does something to now
    std::size_t pending = 0;              // actions in `actions_`
    fabric::Picoseconds unrolled_ps = 0;  // a flap's actions are known up to here
  };

  // Puts the actions of a fault on the list, of a flap those of the next while.
  void unroll(std::uint32_t number, Known& known);
  void forget_if_over(std::uint32_t number);

  std::map<std::uint32_t, Known> faults_;  // by number, in order of adding
  std::multimap<fabric::Picoseconds, fabric::FaultAction> actions_;
  std::uint32_t next_number_ = 0;
};

}  // namespace mrc::lab
