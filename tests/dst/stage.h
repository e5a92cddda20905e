// What every part of a world shares: the seed's decisions, the clock, the schedule and the record.
#pragma once

#include <cstdio>

#include "base/types.h"
#include "dst/event_queue.h"
#include "dst/fault.h"
#include "dst/swarm.h"
#include "dst/trace.h"

namespace mrc::dst {

struct Stage {
  Stage(std::uint64_t seed, std::FILE* log) : swarm(draw_swarm(seed)), trace(log) {}

  Swarm swarm;
  EventQueue queue;
  Trace trace;
  FaultCounts counts;
  TimeNs now = 0;
  bool faults_on = true;  // false in the quiet phase

  void count(Fault fault) { ++counts[fault]; }
  // Whether faults of this kind strike at the moment.
  bool active(Fault fault) const { return faults_on && swarm.on(fault); }
};

}  // namespace mrc::dst
