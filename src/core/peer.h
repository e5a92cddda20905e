// What is shared by all queue pairs towards one destination.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "base/types.h"
#include "core/cc/congestion.h"
#include "core/config.h"
#include "core/probe_schedule.h"
#include "core/scheduler.h"
#include "core/slot.h"

namespace mrc::core {

// A congestion controller, shared by the queue pairs to one peer that named the same profile and
// hints, and those of them that wait for its window. Two profiles are two controllers: each queue
// pair runs under what it named.
struct CcGroup {
  CcProfile profile;
  QpHints hints;
  std::uint32_t users = 0;
  std::unique_ptr<CongestionController> controller;  // none while all users only receive
  Scheduler::Line waiting;
  TimeNs heard_at = 0;  // when the peer last answered data of any user

  // Without congestion control there is nothing to differ in.
  bool serves(const QpInit& init) const {
    if (profile.algorithm != init.cc.algorithm) return false;
    return profile.algorithm == CcAlgorithm::kNone || (profile == init.cc && hints == init.hints);
  }
};

struct Peer {
  Address address;
  std::uint32_t users = 0;  // queue pairs connected to it; 0 = the entry is free
  std::uint32_t live = 0;   // of these, in RTR or RTS
  std::vector<std::unique_ptr<CcGroup>> groups;  // those without users keep what they learned
  std::uint32_t first_qp = kNoSlot;
  std::uint32_t last_qp = kNoSlot;

  // When the reverse path to it may be probed next; 0 before anything came from it.
  TimeNs reverse_check_at = 0;

  ProbeTurns probe_turns;  // of bad paths

  // News about our ports take the paths of its queue pairs in turn: the one whose turn was last.
  std::uint32_t status_qp = kNoSlot;
};

}  // namespace mrc::core
