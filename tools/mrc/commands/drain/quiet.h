// Waits until a part of the fabric is out of use, and says meanwhile what it waits for.
#pragma once

#include <chrono>
#include <string>

#include "commands/drain/fabric_nodes.h"
#include "controller/drain.h"
#include "fabric/drain.h"

namespace mrc::tool::drain {

enum class Outcome : std::uint8_t {
  kDone,
  kStranded,  // queue pairs have no path left
  kTimeout,
  kInterrupted,
};

class Waiter {
 public:
  using Seconds = std::chrono::duration<double>;

  // `name` is the part; `what` what becomes of it ("drained"), for the lines.
  Waiter(std::string name, Seconds patience)
      : name_(std::move(name)),
        end_(Clock::now() + std::chrono::duration_cast<Clock::duration>(patience)) {}

  // All processes of all nodes do as their state says. kStranded only with `mind_stranded`.
  Outcome until_followed(const controller::FabricDrains& drains, bool mind_stranded);
  // Nothing has crossed the part for a while: in a lab by what its links carried, elsewhere by the
  // time that packets on their way take at the most.
  Outcome until_quiet(FabricNodes& nodes, const fabric::DrainTarget& target);

  // What kept it from being done, in words.
  const std::string& obstacle() const { return obstacle_; }

 private:
  using Clock = std::chrono::steady_clock;

  // A pause, and now and then a line. False: the time is up, or a signal came.
  bool go_on();
  Outcome given_up() const;

  std::string name_;
  Clock::time_point end_;
  Clock::time_point told_ = Clock::now();
  std::string obstacle_;
};

}  // namespace mrc::tool::drain
