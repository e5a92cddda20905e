// The network between the hosts: planes, paths, queues.
//
// A packet leaves a port, passes a queue in the middle of its plane (a spine, shared by several
// paths), travels along its path, and passes the queue in front of the destination's port. Each
// (from, to, port, entropy) is a path with a delay of its own that changes now and then; packets of
// one path and one queueing class stay in order unless the seed says otherwise, packets of
// different paths do not.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <unordered_map>
#include <vector>

#include "dst/flight.h"
#include "dst/random.h"
#include "dst/stage.h"

namespace mrc::dst {

struct PathKey {
  unsigned from = 0;
  unsigned to = 0;
  PortId port{1};
  std::uint32_t entropy = 0;
};

struct Path {
  DurationNs base_delay_ns = 0;
  std::uint64_t salt = 0;
  std::uint32_t spine = 0;
  std::array<TimeNs, 3> last_arrival{};  // per lane: control, data, retransmissions

  // Episodes in force, by number of episodes.
  unsigned dead = 0;
  Fault dead_by = Fault::kBlackhole;
  unsigned slow = 0;
  std::uint32_t slow_factor = 1;
  unsigned marks_all = 0;
  unsigned mtu_shrunk = 0;
  unsigned corrupts = 0;
};

// All paths of a pair are dead but these; see AllButOneDead in path_faults.cc.
struct Survivors {
  bool in_force = false;
  std::vector<PathKey> paths;
};

class Network {
 public:
  explicit Network(Stage& stage);

  FlightPool& flights() { return flights_; }
  Path& path(const PathKey& key) { return paths_[path_index(key)]; }

  // Dead ends: a whole plane, or one port of one host.
  unsigned& plane_dead(PortId port) { return plane_dead_[slot(port)]; }
  unsigned& port_dead(unsigned host, PortId port) { return port_dead_[host][slot(port)]; }
  Survivors& survivors(unsigned from, unsigned to) {
    return survivors_[std::size_t{from} * stage_.swarm.hosts + to];
  }

  // Takes over the flight in `slot`. `delay_ns` comes on top; a packet that `overtakes` ignores the
  // order of its path.
  struct Sending {
    std::uint32_t slot = 0;
    DurationNs delay_ns = 0;
    bool overtakes = false;
  };
  void send(const Sending& sending);
  // kLastHop happened: queue in front of the destination.
  void on_last_hop(std::uint32_t slot);

  // No two packets that are under way can be further apart than this in a healthy network.
  DurationNs longest_transit_ns() const;
  DurationNs longest_empty_round_trip_ns() const;  // nothing queued, no fault
  DurationNs serialization_ns(std::uint64_t bits_per_second, std::uint32_t bytes) const;

 private:
  struct Queue {
    TimeNs busy_until = 0;
    std::uint64_t bits_per_second = 0;
  };
  enum class Verdict : std::uint8_t { kPass, kDropped };

  static std::size_t slot(PortId port) { return static_cast<std::size_t>(port) - 1; }
  std::uint32_t path_index(const PathKey& key);
  std::optional<Fault> blocked(const Flight& flight) const;
  bool survives(const Flight& flight) const;
  Verdict pass_queue(Queue& queue, Flight& flight, bool last_hop);
  void corrupt(Flight& flight);
  bool cut(Flight& flight, core::TrimState how);
  DurationNs path_delay(const Path& path);
  void drop(std::uint32_t slot, Fault why);

  Stage& stage_;
  Random random_;
  FlightPool flights_;
  std::unordered_map<std::uint64_t, std::uint32_t> path_indices_;  // never iterated
  std::vector<Path> paths_;
  std::vector<Queue> spines_;                            // [port][spine]
  std::vector<std::array<Queue, kMaxPorts>> last_hops_;  // [host]
  std::array<unsigned, kMaxPorts> plane_dead_{};
  std::vector<std::array<unsigned, kMaxPorts>> port_dead_;
  std::vector<Survivors> survivors_;
};

// Cuts a write down to what a switch keeps of it. False if its bytes are too damaged for that.
bool trim_flight(Flight& flight, core::TrimState how, bool carries_bytes);

}  // namespace mrc::dst
