// Flows that wait for nothing: pair, permutation and incast.

#include <algorithm>

#include "base/prng.h"
#include "fabric/input_error.h"
#include "sim/workload_makers.h"

namespace mrc::sim {

using fabric::InputError;
using fabric::Topology;

Workload make_pair(const WorkloadSpec& spec, const Topology& topology) {
  const bool given = spec.source != spec.destination;
  const unsigned source = given ? spec.source : 0;
  const unsigned destination = given ? spec.destination : topology.hosts() - 1;
  if (std::max(source, destination) >= topology.hosts())
    throw InputError("workload: there is no host " + std::to_string(std::max(source, destination)) +
                     ", the last is " + std::to_string(topology.hosts() - 1));
  WorkloadBuilder builder("pair");
  add_transfer(builder, spec.connections, source, destination, spec.bytes);
  return builder.build();
}

// Every host sends to one other and receives from one other: a random cycle through all of them.
Workload make_permutation(const WorkloadSpec& spec, const Topology& topology) {
  WorkloadBuilder builder("permutation");
  std::vector<std::uint32_t> order = participants(spec, topology);
  const auto count = static_cast<std::uint32_t>(order.size());
  Prng prng(spec.seed ^ 0x7065'726D);
  for (std::uint32_t i = count; i > 1; --i)
    std::swap(order[i - 1], order[prng.below(i)]);
  std::vector<std::uint32_t> target(topology.hosts(), topology.hosts());
  for (std::uint32_t i = 0; i < count; ++i)
    target[order[i]] = order[(i + 1) % count];
  for (std::uint32_t host = 0; host < topology.hosts(); ++host)
    if (target[host] < topology.hosts())
      add_transfer(builder, spec.connections, host, target[host], spec.bytes);
  return builder.build();
}

// Senders from other racks, as far as there are, write to host 0; the victim flow ends at its
// neighbour.
Workload make_incast(const WorkloadSpec& spec, const Topology& topology) {
  const unsigned reserved = spec.victim ? 3 : 1;
  const unsigned others = topology.hosts() > reserved ? topology.hosts() - reserved : 0;
  if (spec.senders < 1 || spec.senders > others)
    throw InputError("workload: an incast on this fabric has 1 to " + std::to_string(others) +
                     " senders, not " + std::to_string(spec.senders));
  if (spec.victim && topology.hosts_per_t0() < 2)
    throw InputError("workload: a victim needs at least two hosts per T0");
  WorkloadBuilder builder("incast");
  std::vector<std::uint32_t> candidates;
  for (std::uint32_t host = topology.hosts() - 1; host > 0; --host)
    if (!spec.victim || (host != 1 && host != topology.hosts() - 1)) candidates.push_back(host);
  Prng prng(spec.seed ^ 0x696E'6361);
  const auto remote = static_cast<std::uint32_t>(
      std::count_if(candidates.begin(), candidates.end(),
                    [&](std::uint32_t host) { return topology.t0_of(host) != 0; }));
  const std::uint32_t pool = std::max(spec.senders, remote);
  for (std::uint32_t i = 0; i < spec.senders; ++i)
    std::swap(candidates[i], candidates[i + prng.below(pool - i)]);
  for (std::uint32_t i = 0; i < spec.senders; ++i)
    add_transfer(builder, spec.connections, candidates[i], 0, spec.bytes);
  if (spec.victim) {
    const TaskRange parts =
        add_transfer(builder, spec.connections, topology.hosts() - 1, 1, spec.bytes);
    for (std::uint32_t i = 0; i < parts.count; ++i)
      builder.task(parts.first + i).victim = true;
  }
  return builder.build();
}

}  // namespace mrc::sim
