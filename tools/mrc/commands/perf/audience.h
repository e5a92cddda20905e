// Whoever wants to know how a measurement goes. Every call may be left unanswered.
#pragma once

#include <string>

#include "commands/perf/endpoint.h"
#include "commands/perf/plan.h"
#include "commands/perf/watch.h"

namespace mrc::tool::perf {

class Audience {
 public:
  virtual ~Audience() = default;

  virtual void waiting() {}  // server: nobody is there yet
  virtual void begin(const Plan& /*plan*/, const Endpoint& /*endpoint*/,
                     const std::string& /*peer_host*/) {}
  virtual void interval(const Interval& /*interval*/, std::uint64_t /*message_bytes*/) {}
  virtual void add(const Result& /*result*/) {}
  virtual void data_wrong(const std::string& /*what*/) {}
};

}  // namespace mrc::tool::perf
