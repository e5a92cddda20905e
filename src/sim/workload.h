// What the hosts do, as a graph of tasks: transfers between hosts and spans of computation, each
// waiting for others to finish. A transfer is finished for those who wait when all its bytes are in
// the receiver's memory.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "fabric/topology.h"
#include "sim/event_queue.h"
#include "sim/host.h"

namespace mrc::sim {

struct Task {
  enum class Kind : std::uint8_t { kTransfer, kCompute };
  Kind kind = Kind::kTransfer;
  bool victim = false;           // reported apart
  std::uint16_t connection = 0;  // which of the pair's connections carries it
  std::uint32_t source = 0;      // host; of a computation: where
  std::uint32_t destination = 0;
  std::uint32_t step = 0;   // of a training loop
  std::uint32_t waits = 0;  // tasks that must finish first
  std::uint64_t bytes = 0;
  Time delay = 0;  // computation: how long; transfer: pause between ready and post
  std::uint32_t first_dependent = 0;
  std::uint32_t dependent_count = 0;
};

struct Workload {
  std::string name;
  std::vector<Task> tasks;
  std::vector<TaskId> dependents;  // of all tasks, those of one task side by side
  std::uint32_t steps = 0;         // of a training loop
  std::uint32_t ranks = 0;         // of a collective; 0 otherwise
  std::uint64_t bytes = 0;         // of a collective, per rank, as nccl-tests count them
  // Bandwidth that the busiest port of a perfect execution needs, over bytes per time: makes
  // collectives of all kinds and sizes comparable with the rate of a port. 0: has no such figure.
  double bus_factor = 0;
  unsigned share_flows = 0;  // flows whose shares over time are recorded; 0: none
  bool by_size = false;      // flows of many lengths, reported by length
};

// Tasks that belong together and have consecutive numbers, such as the parts of one transfer.
struct TaskRange {
  TaskId first = 0;
  std::uint32_t count = 0;
};

class WorkloadBuilder {
 public:
  explicit WorkloadBuilder(std::string name) { workload_.name = std::move(name); }

  // Both throw InputError when the graph gets too large to be run.
  TaskId transfer(std::uint32_t source, std::uint32_t destination, std::uint64_t bytes);
  TaskId compute(std::uint32_t host, Time duration);
  Task& task(TaskId id) { return workload_.tasks[id]; }
  void wait(TaskId later, TaskId earlier) { edges_.push_back({earlier, later}); }
  // All of `later` for all of `earlier`.
  void wait(TaskRange later, TaskRange earlier);
  // Tasks made from now on belong to the next step of a training loop.
  void begin_step() { ++workload_.steps; }
  // The bytes of each flow are recorded over time; all tasks are flows, each on all connections.
  void record_shares() { records_shares_ = true; }
  void report_by_size() { workload_.by_size = true; }
  void set_collective(std::uint32_t ranks, std::uint64_t bytes, double bus_factor);

  Workload build();

 private:
  struct Edge {
    TaskId earlier;
    TaskId later;
  };
  TaskId add(const Task& task);

  Workload workload_;
  std::vector<Edge> edges_;
  bool records_shares_ = false;
};

// Which host is which rank of a collective, where no list says so.
enum class Placement : std::uint8_t {
  kLinear,    // rank r on host r: neighbours share a T0
  kStrided,   // neighbours hang on different T0s: the ranks go round the racks
  kShuffled,  // drawn from the seed
};
const char* placement_name(Placement placement);
Placement parse_placement(std::string_view text);  // throws InputError

// What a collective's `bytes` count follows nccl-tests: all-reduce: the buffer every rank has;
// reduce-scatter and all-gather: the whole buffer, of which each rank ends or begins with its
// share; all-to-all: what a rank sends to all, itself included; training: the gradients of a step.
struct WorkloadSpec {
  std::string name = "permutation";
  std::uint64_t bytes = 2'000'000;
  std::uint64_t seed = 1;
  unsigned connections = 1;          // per pair; a transfer is split evenly over them
  unsigned senders = 8;              // incast, fairness
  bool victim = false;               // incast: a flow between two other hosts of the sinks' rack
  unsigned crossing = 7;             // parking lot: flows on each of the two ways
  std::uint64_t through_bytes = 0;   // parking lot: of the flow on both ways; 0: as the others
  Time stagger_ps = 0;               // fairness: from the start of one flow to the next
  double load = 0.5;                 // poisson: of the hosts' ports
  Time arrivals_ps = 1'000'000'000;  // poisson: flows come for so long
  std::string sizes;                 // poisson: "websearch" or a file; empty: all have `bytes`
  unsigned source = 0;               // pair
  unsigned destination = 0;          // pair; 0 and 0: first host to last host
  unsigned steps = 10;               // training
  unsigned buckets = 4;              // training: all-reduces per step
  Time compute_ps = 100'000'000;     // training: per step; a third forward, the rest backward
  // All-to-all: how many peers a rank sends to at a time; 0: all.
  unsigned window = 8;
  // All-reduce and its relatives: pieces of each chunk, so that passing on overlaps with receiving;
  // 0: pieces of 128 KiB, at most 8.
  unsigned slices = 0;
  Placement placement = Placement::kLinear;  // permutation and collectives
  std::string file;                          // flows
  std::vector<std::uint32_t> ranks;          // hosts that take part, in order of rank; empty: all
};

// The names make_workload knows, for help texts.
std::vector<std::string> workload_names();
// Throws InputError for an unknown name or a spec the fabric cannot hold.
Workload make_workload(const WorkloadSpec& spec, const fabric::Topology& topology);

// Bandwidth of a collective that took so long, in Gb/s: bytes over time, and that times bus_factor.
double algorithm_gbps(const Workload& workload, Time duration);
double bus_gbps(const Workload& workload, Time duration);

}  // namespace mrc::sim
