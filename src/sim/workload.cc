#include "sim/workload.h"

#include <algorithm>
#include <numeric>

#include "base/prng.h"
#include "fabric/input_error.h"

namespace mrc::sim {

TaskId WorkloadBuilder::transfer(std::uint32_t source, std::uint32_t destination,
                                 std::uint64_t bytes) {
  Task task;
  task.source = source;
  task.destination = destination;
  task.bytes = bytes;
  workload_.tasks.push_back(task);
  return static_cast<TaskId>(workload_.tasks.size() - 1);
}

TaskId WorkloadBuilder::compute(std::uint32_t host, Time duration) {
  Task task;
  task.kind = Task::Kind::kCompute;
  task.source = host;
  task.destination = host;
  task.delay = duration;
  workload_.tasks.push_back(task);
  return static_cast<TaskId>(workload_.tasks.size() - 1);
}

Workload WorkloadBuilder::build() {
  std::stable_sort(edges_.begin(), edges_.end(),
                   [](const Edge& a, const Edge& b) { return a.earlier < b.earlier; });
  for (const Edge& edge : edges_) {
    Task& earlier = workload_.tasks[edge.earlier];
    if (earlier.dependent_count++ == 0)
      earlier.first_dependent = static_cast<std::uint32_t>(workload_.dependents.size());
    workload_.dependents.push_back(edge.later);
    ++workload_.tasks[edge.later].waits;
  }
  return std::move(workload_);
}

namespace {

using fabric::InputError;
using fabric::Topology;

// Splits a transfer over the pair's connections.
void add_transfer(WorkloadBuilder& builder, const WorkloadSpec& spec, std::uint32_t source,
                  std::uint32_t destination, bool victim = false) {
  for (unsigned c = 0; c < spec.connections; ++c) {
    const std::uint64_t part =
        spec.bytes * (c + 1) / spec.connections - spec.bytes * c / spec.connections;
    Task& task = builder.task(builder.transfer(source, destination, part));
    task.connection = static_cast<std::uint16_t>(c);
    task.victim = victim;
  }
}

Workload make_pair(const WorkloadSpec& spec, const Topology& topology) {
  WorkloadBuilder builder("pair");
  const bool given = spec.source != spec.destination;
  add_transfer(builder, spec, given ? spec.source : 0,
               given ? spec.destination : topology.hosts() - 1);
  return builder.build();
}

// Every host sends to one other and receives from one other: a random cycle through all of them.
Workload make_permutation(const WorkloadSpec& spec, const Topology& topology) {
  WorkloadBuilder builder("permutation");
  std::vector<std::uint32_t> order(topology.hosts());
  std::iota(order.begin(), order.end(), 0);
  Prng prng(spec.seed ^ 0x7065'726D);
  for (std::uint32_t i = topology.hosts(); i > 1; --i)
    std::swap(order[i - 1], order[prng.below(i)]);
  std::vector<std::uint32_t> target(topology.hosts());
  for (std::uint32_t i = 0; i < topology.hosts(); ++i)
    target[order[i]] = order[(i + 1) % topology.hosts()];
  for (std::uint32_t host = 0; host < topology.hosts(); ++host)
    add_transfer(builder, spec, host, target[host]);
  return builder.build();
}

// Senders from other racks, as far as there are, write to host 0; the victim flow ends at its
// neighbour.
Workload make_incast(const WorkloadSpec& spec, const Topology& topology) {
  const unsigned others = topology.hosts() - (spec.victim ? 3 : 1);
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
    add_transfer(builder, spec, candidates[i], 0);
  if (spec.victim) add_transfer(builder, spec, topology.hosts() - 1, 1, true);
  return builder.build();
}

struct Generator {
  const char* name;
  Workload (*make)(const WorkloadSpec&, const Topology&);
};
constexpr Generator kGenerators[] = {
    {"pair", make_pair},
    {"permutation", make_permutation},
    {"incast", make_incast},
};

}  // namespace

std::vector<std::string> workload_names() {
  std::vector<std::string> names;
  for (const Generator& g : kGenerators)
    names.emplace_back(g.name);
  return names;
}

Workload make_workload(const WorkloadSpec& spec, const Topology& topology) {
  if (topology.hosts() < 2) throw InputError("workload: at least two hosts are needed");
  if (spec.connections < 1) throw InputError("workload: at least one connection per pair");
  for (const Generator& g : kGenerators)
    if (spec.name == g.name) return g.make(spec, topology);
  std::string known;
  for (const std::string& name : workload_names())
    known += (known.empty() ? "" : ", ") + name;
  throw InputError("workload: '" + spec.name + "' is unknown; there are " + known);
}

}  // namespace mrc::sim
