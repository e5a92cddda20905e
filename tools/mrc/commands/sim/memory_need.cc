#include "commands/sim/memory_need.h"

#include <fmt/core.h>
#include <malloc.h>

#include <algorithm>
#include <fstream>
#include <string>
#include <vector>

#include "fabric/input_error.h"
#include "sim/ideal.h"
#include "sim/simulation.h"

namespace mrc::tool::simulator {
namespace {

// Generous guesses for a first look; whatever stays below the limit with them fits.
constexpr std::uint64_t kMuchPerHost = 64 << 10;
constexpr std::uint64_t kMuchPerConnectionEnd = 256 << 10;

struct Counts {
  std::uint64_t hosts = 0;
  std::uint64_t links = 0;
  std::uint64_t tasks = 0;
  std::uint64_t connection_ends = 0;
  std::uint64_t bytes = 0;
};

struct UnitCosts {
  std::uint64_t host = 0;
  std::uint64_t connection_end = 0;
};

Counts count(const sim::SimConfig& config) {
  const fabric::Topology topology(config.topology);
  const sim::Workload workload = sim::make_workload(config.workload, topology);
  Counts counts;
  counts.hosts = topology.hosts();
  counts.links = topology.link_count();
  counts.tasks = workload.tasks.size();
  std::vector<std::uint64_t> connections;
  for (const sim::Task& task : workload.tasks) {
    if (task.kind != sim::Task::Kind::kTransfer) continue;
    counts.bytes += task.bytes;
    const std::uint64_t low = std::min(task.source, task.destination);
    const std::uint64_t high = std::max(task.source, task.destination);
    connections.push_back(low << 40 | high << 16 | task.connection);
  }
  std::sort(connections.begin(), connections.end());
  const auto end = std::unique(connections.begin(), connections.end());
  counts.connection_ends = 2 * static_cast<std::uint64_t>(end - connections.begin());
  return counts;
}

std::uint64_t heap_bytes() {
  const struct mallinfo2 info = mallinfo2();
  return info.uordblks + info.hblkhd;
}

std::uint64_t grown_since(std::uint64_t before) {
  const std::uint64_t now = heap_bytes();
  return now > before ? now - before : 0;
}

// What two hosts take after they have talked over so many connections.
std::uint64_t grown_by_talk(sim::SimConfig pair, unsigned connections) {
  pair.workload.connections = connections;
  pair.workload.bytes = connections;
  const std::uint64_t start = heap_bytes();
  sim::Simulation simulation(pair);
  simulation.run();
  return grown_since(start);
}

// What so many hosts take that nobody talks to, and two more.
std::uint64_t grown_by_hosts(sim::SimConfig pair, unsigned idle) {
  pair.topology.hosts = idle + 2;
  pair.workload.destination = idle + 1;
  const std::uint64_t start = heap_bytes();
  const sim::Simulation simulation(pair);
  return grown_since(start);
}

// Differences between few and many, in which what a simulation has once does not count.
UnitCosts measure(const sim::SimConfig& config) {
  constexpr unsigned kConnections = 32;
  constexpr unsigned kIdleHosts = 64;
  const sim::SimConfig pair = sim::alone(config, 1);
  const auto part = [](std::uint64_t few, std::uint64_t many, unsigned more) {
    return (many > few ? many - few : 0) / more;
  };
  return {.host = part(grown_by_hosts(pair, 0), grown_by_hosts(pair, kIdleHosts), kIdleHosts),
          .connection_end = part(grown_by_talk(pair, 1), grown_by_talk(pair, 1 + kConnections),
                                 2 * kConnections)};
}

std::uint64_t total(const sim::SimConfig& config, const Counts& n, const UnitCosts& costs) {
  constexpr std::uint64_t kPerTask = sizeof(sim::Task) + sizeof(sim::FlowResult) + 24;
  constexpr std::uint64_t kPerPacket = sizeof(sim::PacketHead) + sizeof(sim::StoredBody);
  const fabric::Topology topology(config.topology);
  const std::uint64_t in_flight = std::min(
      n.bytes / config.path_mtu,
      n.hosts * topology.planes() * sim::plane_bdp_bytes(config, topology) / config.path_mtu);
  return n.hosts * costs.host + n.links * sizeof(sim::LinkState) +
         n.connection_ends * costs.connection_end + n.tasks * kPerTask + in_flight * kPerPacket +
         (config.verify ? n.bytes : 0);
}

// What the system says it can still give; 0 = it does not say.
std::uint64_t memory_available_bytes() {
  std::ifstream file("/proc/meminfo");
  std::string key;
  std::uint64_t kib = 0;
  std::string unit;
  while (file >> key >> kib && std::getline(file, unit))
    if (key == "MemAvailable:") return kib * 1024;
  return 0;
}

}  // namespace

void check_memory(const sim::SimConfig& config) {
  const std::uint64_t available = memory_available_bytes();
  if (available == 0) return;
  const Counts counts = count(config);
  if (total(config, counts, {kMuchPerHost, kMuchPerConnectionEnd}) <= available) return;
  const std::uint64_t need = total(config, counts, measure(config));
  if (need <= available) return;
  throw fabric::InputError(
      fmt::format("this run needs about {:.1f} GB of memory, {:.1f} GB are available",
                  static_cast<double>(need) / 1e9, static_cast<double>(available) / 1e9));
}

}  // namespace mrc::tool::simulator
