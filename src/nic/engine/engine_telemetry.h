// What an engine counts for its page (node/telemetry_page.h) beside what the protocol counts, and
// the sweep that brings both together. Under the engine lock.
//
// The packet path pays for two things only: a message remembers when the engine took it, and its
// completion adds one to a histogram. All else is collected by the sweep, which looks at each queue
// pair some ten times a second and adds what it has counted since the last look, so that sums go on
// growing when queue pairs are reset or destroyed.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "core/counters.h"
#include "node/telemetry_page.h"

namespace mrc::nic {

class EnginePump;
class QueuePairImpl;

// What of a queue pair is in the sums already. Belongs to the queue pair; begins anew with it.
struct ToldCounters {
  core::QpCounters counters;
  std::vector<core::EvCounters> evs;
};

// Of all engines of a device; made by one sweep and written as it is.
struct TelemetrySweep {
  node::TelemetryBody& body;
  std::uint64_t elapsed_ns = 0;  // since the last sweep
  bool moved = false;            // packets, since then
};

class EngineTelemetry {
 public:
  // --- The packet path.
  void note_completion(DurationNs latency, bool success) {
    if (success) {
      latencies_.add(latency);
    } else {
      ++failed_;
    }
  }
  void note_port_change(PortId port) { ++planes_[static_cast<unsigned>(port) - 1].changes; }

  // --- The sweep.
  // Before the counters of a queue pair begin anew.
  void settle(const EnginePump& pump, QueuePairImpl& qp);
  // Lists the queue pairs of some pages from `page` on, and returns where to go on: the lock may be
  // given up in between. QpTable::kPages when all are done.
  unsigned collect(const EnginePump& pump, unsigned page, TelemetrySweep& sweep);
  // Behind the last of them: adds the sums.
  void add_sums(const EnginePump& pump, bool lead, node::TelemetryBody& body) const;

 private:
  struct Plane {
    std::uint64_t lost = 0;
    std::uint64_t marked = 0;
    std::uint64_t changes = 0;
  };

  // The bytes that the queue pair has moved since the last time.
  std::uint64_t settle_counters(const core::QpCounters& now, core::QpCounters& told);
  void collect_one(const EnginePump& pump, QueuePairImpl& qp, TelemetrySweep& sweep);
  void collect_paths(const EnginePump& pump, QueuePairImpl& qp, node::TelemetryQueuePair& entry,
                     node::TelemetryBody& body);

  core::QpCounters traffic_;
  std::array<Plane, kMaxPorts> planes_{};
  node::TelemetryHistogram latencies_;
  node::TelemetryHistogram round_trips_;
  std::uint64_t failed_ = 0;
};

}  // namespace mrc::nic
