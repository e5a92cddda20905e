#include "sim/workload.h"

#include <algorithm>
#include <numeric>

#include "base/prng.h"
#include "fabric/input_error.h"
#include "sim/workload_makers.h"

namespace mrc::sim {
namespace {

using fabric::InputError;
using fabric::Topology;

constexpr std::size_t kMaxTasks = std::size_t{1} << 25;
constexpr std::uint64_t kMaxBytes = std::uint64_t{1} << kTaskAddressBits;
constexpr unsigned kMaxConnections = 1'024;

struct Generator {
  const char* name;
  Workload (*make)(const WorkloadSpec&, const Topology&);
};
constexpr Generator kGenerators[] = {
    {"pair", make_pair},
    {"permutation", make_permutation},
    {"incast", make_incast},
    {"fairness", make_fairness},
    {"parking-lot", make_parking_lot},
    {"poisson", make_poisson},
    {"all-to-all", make_all_to_all},
    {"ring-all-reduce", make_ring_all_reduce},
    {"tree-all-reduce", make_tree_all_reduce},
    {"reduce-scatter", make_reduce_scatter},
    {"all-gather", make_all_gather},
    {"training", make_training},
    {"flows", make_flows},
};

struct PlacementName {
  const char* name;
  Placement placement;
};
constexpr PlacementName kPlacements[] = {
    {"linear", Placement::kLinear},
    {"strided", Placement::kStrided},
    {"shuffled", Placement::kShuffled},
};

std::vector<std::uint32_t> place_all(const WorkloadSpec& spec, const Topology& topology) {
  std::vector<std::uint32_t> hosts(topology.hosts());
  std::iota(hosts.begin(), hosts.end(), 0);
  if (spec.placement == Placement::kStrided) {
    std::stable_sort(hosts.begin(), hosts.end(), [&](std::uint32_t a, std::uint32_t b) {
      return topology.place_at_t0(a) < topology.place_at_t0(b);
    });
  } else if (spec.placement == Placement::kShuffled) {
    Prng prng(spec.seed ^ 0x706C'6163);
    for (std::uint32_t i = topology.hosts(); i > 1; --i)
      std::swap(hosts[i - 1], hosts[prng.below(i)]);
  }
  return hosts;
}

}  // namespace

TaskId WorkloadBuilder::add(const Task& task) {
  if (workload_.tasks.size() == kMaxTasks)
    throw InputError("workload: more than " + std::to_string(kMaxTasks) +
                     " transfers and computations; take fewer hosts, steps or connections");
  workload_.tasks.push_back(task);
  if (workload_.steps > 0) workload_.tasks.back().step = workload_.steps - 1;
  return static_cast<TaskId>(workload_.tasks.size() - 1);
}

TaskId WorkloadBuilder::transfer(std::uint32_t source, std::uint32_t destination,
                                 std::uint64_t bytes) {
  Task task;
  task.source = source;
  task.destination = destination;
  task.bytes = bytes;
  return add(task);
}

TaskId WorkloadBuilder::compute(std::uint32_t host, Time duration) {
  Task task;
  task.kind = Task::Kind::kCompute;
  task.source = host;
  task.destination = host;
  task.delay = duration;
  return add(task);
}

// Where many wait for many, a computation of no duration stands between them, so that the number of
// edges grows with the sum and not with the product.
void WorkloadBuilder::wait(TaskRange later, TaskRange earlier) {
  if (later.count > 1 && earlier.count > 1) {
    const TaskId join = compute(task(later.first).source, 0);
    task(join).step = task(later.first).step;
    wait({join, 1}, earlier);
    earlier = {join, 1};
  }
  for (std::uint32_t l = 0; l < later.count; ++l)
    for (std::uint32_t e = 0; e < earlier.count; ++e)
      wait(later.first + l, earlier.first + e);
}

void WorkloadBuilder::set_collective(std::uint32_t ranks, std::uint64_t bytes, double bus_factor) {
  workload_.ranks = ranks;
  workload_.bytes = bytes;
  workload_.bus_factor = bus_factor;
}

Workload WorkloadBuilder::build() {
  std::uint32_t connections = 1;
  for (const Task& task : workload_.tasks)
    connections = std::max(connections, task.connection + 1U);
  if (records_shares_)
    workload_.share_flows = static_cast<unsigned>(workload_.tasks.size()) / connections;
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

TaskRange add_transfer(WorkloadBuilder& builder, unsigned connections, std::uint32_t source,
                       std::uint32_t destination, std::uint64_t bytes) {
  TaskRange parts;
  for (unsigned c = 0; c < connections; ++c) {
    const TaskId id = builder.transfer(source, destination, even_share(bytes, connections, c));
    builder.task(id).connection = static_cast<std::uint16_t>(c);
    if (parts.count++ == 0) parts.first = id;
  }
  return parts;
}

std::vector<std::uint32_t> participants(const WorkloadSpec& spec, const Topology& topology) {
  if (spec.ranks.empty()) return place_all(spec, topology);
  std::vector<bool> taken(topology.hosts());
  for (const std::uint32_t host : spec.ranks) {
    if (host >= topology.hosts())
      throw InputError("workload: rank on host " + std::to_string(host) + ", but there are only " +
                       std::to_string(topology.hosts()));
    if (taken[host]) throw InputError("workload: two ranks on host " + std::to_string(host));
    taken[host] = true;
  }
  if (spec.ranks.size() < 2) throw InputError("workload: at least two ranks are needed");
  return spec.ranks;
}

const char* placement_name(Placement placement) {
  for (const PlacementName& p : kPlacements)
    if (p.placement == placement) return p.name;
  return "?";
}

Placement parse_placement(std::string_view text) {
  std::string known;
  for (const PlacementName& p : kPlacements) {
    if (text == p.name) return p.placement;
    known += (known.empty() ? "" : ", ") + std::string(p.name);
  }
  throw InputError("workload: placement '" + std::string(text) + "' is unknown; there are " +
                   known);
}

std::vector<std::string> workload_names() {
  std::vector<std::string> names;
  for (const Generator& g : kGenerators)
    names.emplace_back(g.name);
  return names;
}

Workload make_workload(const WorkloadSpec& spec, const Topology& topology) {
  if (topology.hosts() < 2) throw InputError("workload: at least two hosts are needed");
  if (spec.connections < 1 || spec.connections > kMaxConnections)
    throw InputError("workload: a pair has 1 to " + std::to_string(kMaxConnections) +
                     " connections, not " + std::to_string(spec.connections));
  if (spec.bytes < spec.connections || spec.bytes >= kMaxBytes)
    throw InputError("workload: bytes must be from " + std::to_string(spec.connections) + " to " +
                     std::to_string(kMaxBytes - 1));
  for (const Generator& g : kGenerators)
    if (spec.name == g.name) return g.make(spec, topology);
  std::string known;
  for (const std::string& name : workload_names())
    known += (known.empty() ? "" : ", ") + name;
  throw InputError("workload: '" + spec.name + "' is unknown; there are " + known);
}

double algorithm_gbps(const Workload& workload, Time duration) {
  return duration > 0 ? static_cast<double>(workload.bytes) * 8e3 / static_cast<double>(duration)
                      : 0;
}

double bus_gbps(const Workload& workload, Time duration) {
  return algorithm_gbps(workload, duration) * workload.bus_factor;
}

}  // namespace mrc::sim
