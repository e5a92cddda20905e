// What is shared by all queue pairs towards one destination.
#pragma once

#include <array>
#include <cstdint>
#include <memory>

#include "base/types.h"
#include "core/cc/congestion.h"

namespace mrc::core {

// A congestion controller and the queue pairs that wait for its window, in the order they came.
struct CcGroup {
  std::unique_ptr<CongestionController> controller;
  std::uint32_t parked_head = 0xFFFF'FFFF;
  std::uint32_t parked_tail = 0xFFFF'FFFF;
};

struct Peer {
  Address address;
  std::uint32_t users = 0;        // queue pairs connected to it; 0 = the entry is free
  std::uint32_t live = 0;         // of these, in RTR or RTS
  std::array<CcGroup, 2> groups;  // by CcAlgorithm
  std::uint32_t first_qp = 0xFFFF'FFFF;
  std::uint32_t last_qp = 0xFFFF'FFFF;

  // The peer's ports, as it told us. Ids tell newer news from older.
  PortMask remote_ports = PortMask::first(kMaxPorts);
  bool heard_status = false;
  std::uint16_t heard_status_id = 0;
  TimeNs heard_status_at = 0;

  // When the way back to it may be probed next; 0 before anything came from it.
  TimeNs way_back_check_at = 0;

  // Our own port status on its way to the peer, on the paths of its queue pairs in turn.
  std::uint32_t status_qp = 0xFFFF'FFFF;  // the one whose path was taken last
  bool status_pending = false;            // not yet answered
  bool status_due = false;                // to be sent now
  std::uint16_t status_id = 0;
  std::uint8_t status_tries = 0;
  TimeNs status_retry_at = kNever;
};

}  // namespace mrc::core
