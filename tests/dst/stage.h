// What every part of a world shares: the seed's decisions, the clock, the schedule and the record.
#pragma once

#include <cstdint>
#include <cstdio>
#include <map>
#include <utility>

#include "base/types.h"
#include "dst/attack.h"
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
  AttackCounts attacks{};
  TimeNs now = 0;
  bool faults_on = true;  // false in the quiet phase
  // What queues did in the quiet phase to the packets of a queue pair: (connection, side).
  struct QueueLosses {
    std::uint64_t dropped = 0;
    std::uint64_t trimmed = 0;
  };
  std::map<std::pair<std::uint32_t, std::uint8_t>, QueueLosses> quiet_losses;
  void note_queue_drop(std::uint32_t connection, std::uint8_t side) {
    if (!faults_on) ++quiet_losses[{connection, side}].dropped;
  }
  void note_queue_trim(std::uint32_t connection, std::uint8_t side) {
    if (!faults_on) ++quiet_losses[{connection, side}].trimmed;
  }

  void count(Fault fault) { ++counts[fault]; }
  // Whether faults of this kind strike at the moment.
  bool active(Fault fault) const { return faults_on && swarm.on(fault); }
};

}  // namespace mrc::dst
