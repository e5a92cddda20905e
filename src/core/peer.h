// What is shared by all queue pairs towards one destination.
#pragma once

#include <array>
#include <cstdint>
#include <memory>

#include "base/types.h"
#include "core/cc/congestion.h"
#include "core/scheduler.h"
#include "core/slot.h"

namespace mrc::core {

// A congestion controller and the queue pairs that wait for its window.
struct CcGroup {
  std::unique_ptr<CongestionController> controller;
  Scheduler::Line waiting;
};

struct Peer {
  Address address;
  std::uint32_t users = 0;        // queue pairs connected to it; 0 = the entry is free
  std::uint32_t live = 0;         // of these, in RTR or RTS
  std::array<CcGroup, 2> groups;  // by CcAlgorithm
  std::uint32_t first_qp = kNoSlot;
  std::uint32_t last_qp = kNoSlot;

  // When the reverse path to it may be probed next; 0 before anything came from it.
  TimeNs reverse_check_at = 0;

  // News about our ports take the paths of its queue pairs in turn: the one whose turn was last.
  std::uint32_t status_qp = kNoSlot;
};

}  // namespace mrc::core
