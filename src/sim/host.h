// What the simulator asks of a host, whatever transport it runs.
//
// The simulator calls in with the time, then asks for packets while ports are free, and for the
// deadline. Finished work is reported through HostListener.
#pragma once

#include <algorithm>
#include <cstdint>
#include <tuple>
#include <vector>

#include "base/assert.h"
#include "base/types.h"
#include "core/event.h"
#include "fabric/topology.h"
#include "sim/event_queue.h"
#include "sim/host_memory.h"
#include "sim/packet.h"

namespace mrc::sim {

// Payload that a receiver puts into its memory. Addresses name the task, see task_address(); the
// two must agree, or the bytes land in the wrong place.
struct Placed {
  std::uint32_t host = 0;
  unsigned plane = 0;
  std::uint64_t from = 0;  // at the sender
  std::uint64_t to = 0;    // at the receiver
  std::uint32_t bytes = 0;
};

// A host's address in every transport.
constexpr Address host_address(std::uint32_t host) {
  return {0xFD00'0000'0000'0000, std::uint64_t{host} + 1};
}

class HostListener {
 public:
  virtual ~HostListener() = default;
  virtual void on_sent(Time now, TaskId task, bool ok) = 0;  // the sender's completion
  virtual void on_received(Time now, TaskId task) = 0;  // all of it is in the receiver's memory
  virtual void on_placed(Time now, const Placed& placed) = 0;
};

// A message to another host. `notify`: somebody waits for its arrival.
struct Message {
  TaskId task = 0;
  std::uint32_t destination = 0;
  std::uint32_t connection = 0;  // counts from 0 among the connections of this pair
  std::uint64_t bytes = 0;
  bool notify = false;
};

// Where an outgoing packet goes; the host fills in head (but link, hop and bytes of the route) and
// body.
struct Outgoing {
  PacketId packet = kNoPacket;
  unsigned plane = 0;
  fabric::Path path;   // SRv6 mode
  bool probe = false;  // tests a path on purpose
};

// A connection this host will have at some time.
struct PlannedConnection {
  std::uint32_t peer = 0;
  std::uint32_t number = 0;    // among the connections of the pair
  std::uint32_t sends = 0;     // messages from this end; 0: it only receives
  std::uint32_t notifies = 0;  // messages to this end whose arrival somebody waits for
};

// The position of a connection in a list whose entries have a `plan`, sorted by peer and number.
template <typename Connections>
std::uint32_t find_connection(const Connections& connections, std::uint32_t peer,
                              std::uint32_t number) {
  const auto found = std::partition_point(
      connections.begin(), connections.end(),
      [&](const auto& c) { return std::tie(c.plan.peer, c.plan.number) < std::tie(peer, number); });
  MRC_ASSERT(found != connections.end() && found->plan.peer == peer &&
             found->plan.number == number);
  return static_cast<std::uint32_t>(found - connections.begin());
}

struct HostTotals {
  std::uint64_t data_packets = 0;
  std::uint64_t retransmits = 0;
  std::uint64_t timeouts = 0;
  std::uint64_t spurious = 0;
  std::uint64_t hedged = 0;  // sent once more, as everything waited for them on a slow path
  std::uint64_t control_packets = 0;
  std::uint64_t probes = 0;
  // Why packets were sent again, as far as a transport tells (core/counters.h).
  std::uint64_t trim_nacks = 0;
  std::uint64_t lost_by_path_order = 0;
  std::uint64_t lost_by_time = 0;
  std::uint64_t lost_by_timeout = 0;

  void add(const HostTotals& other);
};

inline void HostTotals::add(const HostTotals& other) {
  data_packets += other.data_packets;
  retransmits += other.retransmits;
  timeouts += other.timeouts;
  spurious += other.spurious;
  hedged += other.hedged;
  control_packets += other.control_packets;
  probes += other.probes;
  trim_nacks += other.trim_nacks;
  lost_by_path_order += other.lost_by_path_order;
  lost_by_time += other.lost_by_time;
  lost_by_timeout += other.lost_by_timeout;
}

// How the senders of a host stand at the moment, summed over its connections.
struct HostGauges {
  std::uint32_t connections = 0;  // that have something to send
  std::uint64_t window_bytes = 0;
  std::uint64_t in_flight_bytes = 0;
  std::uint32_t good_evs = 0;
  std::uint32_t bad_evs = 0;
};

// A connection with something to send, and what its sender thinks of each of its paths.
struct SenderStatus {
  struct Path {
    unsigned plane = 0;
    std::uint32_t entropy = 0;
    core::EvState state = core::EvState::kGood;
  };

  std::uint32_t peer = 0;
  std::uint32_t connection = 0;
  std::uint64_t window_bytes = 0;
  std::uint64_t in_flight_bytes = 0;
  std::int64_t round_trip_ns = 0;  // smoothed
  std::uint64_t resent = 0;
  std::uint64_t timeouts = 0;
  std::vector<Path> paths;
};

class Host {
 public:
  virtual ~Host() = default;

  virtual void post(Time now, const Message& message) = 0;
  // The packet stays the caller's.
  virtual void on_packet(Time now, PacketId packet, unsigned plane) = 0;
  virtual void on_timer(Time now) = 0;
  virtual bool next_packet(Time now, PortMask free_ports, Outgoing& out) = 0;
  // Whether next_packet might have something for a port that is busy now.
  virtual bool wants_to_send() const = 0;
  virtual Time next_deadline() const = 0;
  virtual void set_port_up(Time now, unsigned plane, bool up) = 0;
  // PFC: no data on this plane until further notice.
  virtual void set_paused(Time now, unsigned plane, bool paused) = 0;
  virtual HostTotals totals() const = 0;
  virtual HostGauges gauges() const { return {}; }
  // So many of its connections that send, those with the most bad paths first.
  virtual std::vector<SenderStatus> senders(std::size_t) const { return {}; }
  // Whether a full packet to this peer would have to wait for the congestion window.
  virtual bool window_closed(std::uint32_t, std::uint32_t) const { return false; }
};

}  // namespace mrc::sim
