// What every part of a world shares: the seed's decisions, the clock, the schedule and the record.
#pragma once

#include <cstdint>
#include <cstdio>
#include <map>
#include <utility>

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
  // Packets that queues dropped in the quiet phase, by who sent them: (connection, side).
  std::map<std::pair<std::uint32_t, std::uint8_t>, std::uint64_t> quiet_queue_drops;

  void count(Fault fault) { ++counts[fault]; }
  // Whether faults of this kind strike at the moment.
  bool active(Fault fault) const { return faults_on && swarm.on(fault); }
};

}  // namespace mrc::dst
