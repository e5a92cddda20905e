// What one seed makes of the world. Swarm testing: each seed switches on its own few kinds of fault
// at its own rates, because a world where everything happens at once never gets deep into anything.
#pragma once

#include <cstdint>
#include <string>

#include "base/types.h"
#include "dst/fault.h"
#include "wire/dialect.h"

namespace mrc::dst {

// EVs of a profile where all but one may be dead for ever.
inline constexpr unsigned kMaxSearchedEvs = 8;

// What does not come back when the faults stop.
enum class DeadForEver : std::uint8_t {
  kNothing,
  kAllButOnePath,   // of a pair of hosts, per profile, in one direction or both
  kSomePaths,       // the same with more than one survivor, always in both directions
  kAllButOnePlane,  // of a pair of hosts
};

struct Swarm {
  std::uint64_t seed = 0;

  // Shape.
  unsigned hosts = 2;
  unsigned ports = 1;  // planes; the same for all hosts
  std::uint64_t port_bits_per_second = 0;
  unsigned connections = 1;
  std::uint32_t packets = 0;  // data packets the programs aim at in all
  DurationNs fault_phase_ns = 0;
  bool many_tiny_messages = false;  // enough on one connection to wrap 16-bit message numbers

  // Network.
  bool carries_bytes = false;  // packets travel as frames with ICRC, not as structs
  wire::Dialect dialect;       // of these frames
  bool fifo_paths = true;
  bool retransmissions_overtake = false;  // they have a queue of their own
  bool switches_trim = true;              // else they drop
  bool last_hop_marks = false;
  bool never_mark = false;
  unsigned spines = 1;  // queues per plane that its paths share
  std::uint64_t spine_bits_per_second = 0;
  std::uint32_t queue_bytes = 0;
  std::uint32_t mark_bytes = 0;
  DurationNs min_delay_ns = 0;  // one way
  DurationNs max_delay_ns = 0;
  DurationNs jitter_ns = 0;  // per packet, on top
  DurationNs regime_ns = 0;  // the delay of a path changes this often

  // Retries end: then a queue pair may fail with kRetryExceeded, and hosts may crash.
  bool retries_limited = false;
  bool narrow_profiles = false;  // have EVs on some of the ports only
  DeadForEver dead_for_ever = DeadForEver::kNothing;
  bool heals() const { return dead_for_ever == DeadForEver::kNothing; }

  // Programs.
  DurationNs longest_think_ns = 0;  // 0: up to 200 us
  std::uint32_t most_evs = 1'024;   // per profile
  std::uint32_t psns_before_wrap = 2'000;

  bool forger_knows_all = false;  // and uses it: what it sends has nothing wrong

  // How the engines are set up; see core::EndpointConfig.
  DurationNs end_jitter_ns = 0;
  bool group_answers = false;
  unsigned spray_quantum = 1;

  PerFault<Knob> faults;

  bool on(Fault fault) const { return faults[fault].on; }
  std::uint32_t rate(Fault fault) const { return faults[fault].on ? faults[fault].rate : 0; }
};

Swarm draw_swarm(std::uint64_t seed);

// One line for the log.
std::string describe(const Swarm& swarm);

}  // namespace mrc::dst
