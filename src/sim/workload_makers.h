// The generators behind make_workload() and what they share.
#pragma once

#include <cstdint>
#include <vector>

#include "sim/workload.h"

namespace mrc::sim {

// Piece `i` of `bytes` split as evenly as it goes; all pieces together are all of it.
constexpr std::uint64_t even_share(std::uint64_t bytes, std::uint64_t pieces, std::uint64_t i) {
  const std::uint64_t rest = bytes % pieces;
  return bytes / pieces + (i < rest ? 1 : 0);
}

// A transfer in as many parts as the pair has connections, one on each.
TaskRange add_transfer(WorkloadBuilder& builder, unsigned connections, std::uint32_t source,
                       std::uint32_t destination, std::uint64_t bytes);

// The hosts that take part, by rank: spec.ranks, or all of them in the order of spec.placement.
// Throws InputError for hosts that do not exist or appear twice, or fewer than two.
std::vector<std::uint32_t> participants(const WorkloadSpec& spec, const fabric::Topology& topology);

// A ring all-reduce among other tasks.
struct RingGroup {
  std::vector<std::uint32_t> hosts;          // by rank
  std::vector<TaskRange> ready;              // by rank: what must be done before its data is there
  std::vector<std::vector<TaskRange>> done;  // by rank, filled in: complete when all these are
};
void add_ring_all_reduce(WorkloadBuilder& builder, const WorkloadSpec& spec, std::uint64_t bytes,
                         RingGroup& group);

Workload make_pair(const WorkloadSpec& spec, const fabric::Topology& topology);
Workload make_permutation(const WorkloadSpec& spec, const fabric::Topology& topology);
Workload make_incast(const WorkloadSpec& spec, const fabric::Topology& topology);
Workload make_fairness(const WorkloadSpec& spec, const fabric::Topology& topology);
Workload make_parking_lot(const WorkloadSpec& spec, const fabric::Topology& topology);
Workload make_poisson(const WorkloadSpec& spec, const fabric::Topology& topology);
Workload make_all_to_all(const WorkloadSpec& spec, const fabric::Topology& topology);
Workload make_ring_all_reduce(const WorkloadSpec& spec, const fabric::Topology& topology);
Workload make_tree_all_reduce(const WorkloadSpec& spec, const fabric::Topology& topology);
Workload make_reduce_scatter(const WorkloadSpec& spec, const fabric::Topology& topology);
Workload make_all_gather(const WorkloadSpec& spec, const fabric::Topology& topology);
Workload make_training(const WorkloadSpec& spec, const fabric::Topology& topology);
Workload make_flows(const WorkloadSpec& spec, const fabric::Topology& topology);

}  // namespace mrc::sim
