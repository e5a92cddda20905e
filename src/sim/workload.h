// What the hosts do, as a graph of tasks: transfers between hosts and spans of computation, each
// waiting for others to finish. A transfer is finished for those who wait when all its bytes are in
// the receiver's memory.
#pragma once

#include <cstdint>
#include <string>
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
};

class WorkloadBuilder {
 public:
  explicit WorkloadBuilder(std::string name) { workload_.name = std::move(name); }

  TaskId transfer(std::uint32_t source, std::uint32_t destination, std::uint64_t bytes);
  TaskId compute(std::uint32_t host, Time duration);
  Task& task(TaskId id) { return workload_.tasks[id]; }
  void wait(TaskId later, TaskId earlier) { edges_.push_back({earlier, later}); }
  void set_steps(std::uint32_t steps) { workload_.steps = steps; }

  Workload build();

 private:
  struct Edge {
    TaskId earlier;
    TaskId later;
  };
  Workload workload_;
  std::vector<Edge> edges_;
};

struct WorkloadSpec {
  std::string name = "permutation";
  std::uint64_t bytes = 2'000'000;
  std::uint64_t seed = 1;
  unsigned connections = 1;  // per pair; a transfer is split evenly over them
  unsigned senders = 8;      // incast
  bool victim = false;       // incast: a flow between two other hosts of the sinks' rack
  unsigned source = 0;       // pair
  unsigned destination = 0;  // pair; 0 and 0: first host to last host
  unsigned steps = 10;       // training
  Time compute_ps = 100'000'000;
  std::string file;                  // flows
  std::vector<std::uint32_t> ranks;  // hosts that take part, in order of rank; empty: all
};

// The names make_workload knows, for help texts.
std::vector<std::string> workload_names();
// Throws InputError for an unknown name or a spec the fabric cannot hold.
Workload make_workload(const WorkloadSpec& spec, const fabric::Topology& topology);

}  // namespace mrc::sim
