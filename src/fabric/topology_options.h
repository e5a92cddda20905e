// A topology as people describe it: a few of its numbers, the rest from a preset or by arithmetic.
// Files and command lines use the same keys.
#pragma once

#include <optional>
#include <span>

#include "fabric/topology.h"

namespace mrc::fabric {

struct TopologyOptions {
  std::optional<unsigned> planes;
  std::optional<unsigned> hosts;
  std::optional<unsigned> hosts_per_t0;
  std::optional<unsigned> t0;
  std::optional<unsigned> t1;
  std::optional<unsigned> pods;
  std::optional<unsigned> t2;
  std::optional<unsigned> cables;
  std::optional<double> gbps;              // of all links
  std::optional<double> uplink_gbps;       // above T0
  std::optional<double> core_gbps;         // between T1 and T2
  std::optional<double> delay_us;          // of all links
  std::optional<double> uplink_delay_us;   // above T0
  std::optional<double> core_delay_us;     // between T1 and T2
  std::optional<double> oversubscription;  // hosts' bandwidth of a T0 against that of its uplinks
};

// One key: its name in files (a flag has - for _), where its value goes, and a line of help.
template <typename Value>
struct TopologyKey {
  const char* name;
  std::optional<Value> TopologyOptions::*member;
  const char* help;
};
std::span<const TopologyKey<unsigned>> topology_count_keys();
std::span<const TopologyKey<double>> topology_number_keys();

// Puts the given numbers into `base` and works out what follows from them: T0s from hosts_per_t0,
// T1s or the uplink rate from the oversubscription. Throws InputError when they contradict each
// other or no such fabric can be built.
TopologySpec resolve_topology(const TopologySpec& base, const TopologyOptions& options);

}  // namespace mrc::fabric
