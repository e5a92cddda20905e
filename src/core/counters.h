// Counters, always on. They only grow; readers take differences.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "base/types.h"
#include "wire/drop_reason.h"

namespace mrc::core {

struct QpCounters {
  std::uint64_t data_sent = 0;   // write packets, retransmissions included
  std::uint64_t bytes_sent = 0;  // payload of them
  std::uint64_t retransmitted = 0;
  std::uint64_t lost_by_path_order = 0;  // a later packet on the same path arrived
  std::uint64_t lost_by_time = 0;        // packets sent well after it on other paths arrived
  std::uint64_t lost_by_timeout = 0;
  std::uint64_t hedged = 0;    // sent once more, as everything waited for it on a slow path
  std::uint64_t trimmed = 0;   // trim NACKs
  std::uint64_t refused = 0;   // other recoverable NACKs, and refusals of the memory check
  std::uint64_t spurious = 0;  // declared lost, yet it had arrived
  std::uint64_t marked = 0;    // SACKs with SKIP_ONCE
  std::uint64_t probes_sent = 0;
  std::uint64_t timeouts = 0;  // expiries of the retry timer that used up a try
  std::uint64_t messages_completed = 0;
  std::uint64_t data_received = 0;   // new write packets
  std::uint64_t bytes_received = 0;  // payload placed
  std::uint64_t duplicates = 0;
  std::uint64_t immediates = 0;  // delivered
  std::uint64_t sacks_sent = 0;
  std::uint64_t nacks_sent = 0;
  std::uint64_t acks_sent = 0;
  std::uint64_t sacks_received = 0;
};

struct EvCounters {
  std::uint32_t sent = 0;
  std::uint32_t lost = 0;
  std::uint32_t marked = 0;
};

struct PortCounters {
  std::uint64_t packets_sent = 0;
  std::uint64_t bytes_sent = 0;  // nominal sizes
  std::uint64_t packets_received = 0;
  std::uint64_t bytes_received = 0;
};

struct EndpointCounters {
  std::array<std::uint64_t, kDropReasonCount> drops{};  // index 0 counts packets used
  std::vector<PortCounters> ports;                      // index 0 is port 1
  std::uint64_t events_dropped = 0;
  std::uint64_t control_dropped = 0;  // answers for which there was no room or no way out
};

}  // namespace mrc::core
