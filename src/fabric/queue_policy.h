// What a switch port does with a packet, as pure functions of its queue: enqueue, mark, trim or
// drop.
//
// A port has a control queue and a data queue, the first served strictly before the second. The
// simulator and the virtual cluster share these rules.
#pragma once

#include <cstdint>

#include "fabric/topology.h"

namespace mrc::fabric {

struct QueuePolicy {
  std::uint32_t data_capacity_bytes = 0;
  std::uint32_t control_capacity_bytes = 0;
  // ECN: never at or below min, always at or above max, in between with growing probability.
  std::uint32_t ecn_min_bytes = 0;
  std::uint32_t ecn_max_bytes = 0;
  std::uint64_t ecn_ramp_top_q32 = std::uint64_t{1} << 32;  // probability just below max
  bool trims = true;  // a trimmable packet that finds no room is cut instead of dropped
  bool marks = true;  // off on ports that face hosts
  bool faces_host = false;
};

// Which packet a full queue cuts: the one that comes, the one that came last, or either by a coin.
// Where flows come in turns, cutting arrivals can hit the same flow every time.
enum class TrimVictim : std::uint8_t { kArrival, kTail, kEither };

enum class Admission : std::uint8_t { kEnqueue, kTrim, kDrop };

constexpr Admission admit_data(const QueuePolicy& policy, std::uint32_t queued_bytes,
                               std::uint32_t packet_bytes, bool trimmable) {
  if (queued_bytes + packet_bytes <= policy.data_capacity_bytes) return Admission::kEnqueue;
  return policy.trims && trimmable ? Admission::kTrim : Admission::kDrop;
}

constexpr Admission admit_control(const QueuePolicy& policy, std::uint32_t queued_bytes,
                                  std::uint32_t packet_bytes) {
  return queued_bytes + packet_bytes <= policy.control_capacity_bytes ? Admission::kEnqueue
                                                                      : Admission::kDrop;
}

// Whether a data packet that leaves now is marked; `random` is uniform over 32 bits.
constexpr bool marks_ecn(const QueuePolicy& policy, std::uint32_t queued_bytes,
                         std::uint32_t random) {
  if (!policy.marks || queued_bytes <= policy.ecn_min_bytes) return false;
  if (queued_bytes >= policy.ecn_max_bytes) return true;
  const std::uint64_t above = queued_bytes - policy.ecn_min_bytes;
  const std::uint64_t ramp = policy.ecn_max_bytes - policy.ecn_min_bytes;
  return above * policy.ecn_ramp_top_q32 > std::uint64_t{random} * ramp;
}

// What a plane holds between the hosts that are farthest apart: the rate of a host's port times the
// round trip of packets of full size, and what else passes until an answer is there.
std::uint64_t plane_bdp_bytes(const Topology& topology, Picoseconds elsewhere_ps);

// Thresholds as shares of the plane's bandwidth-delay product.
struct QueueShares {
  double ecn_min = 0.2;
  double ecn_max = 0.8;
  double capacity_trimming = 1.0;
  double capacity_last_hop_trimming = 1.5;
  double capacity_dropping = 5.0;
  double control_capacity = 2.0;
};
QueuePolicy make_queue_policy(const QueueShares& shares, std::uint64_t plane_bdp_bytes, bool trims,
                              bool faces_host);

}  // namespace mrc::fabric
