// Collectives as NCCL runs them over the network, one rank per host.

#include <algorithm>

#include "base/assert.h"
#include "fabric/input_error.h"
#include "sim/workload_makers.h"

namespace mrc::sim {
namespace {

using fabric::InputError;
using fabric::Topology;

constexpr std::uint64_t kSliceBytes = 128 * 1'024;
constexpr unsigned kMaxSlices = 8;

unsigned slice_count(const WorkloadSpec& spec, std::uint64_t chunk_bytes) {
  if (spec.slices > 0) return spec.slices;
  return static_cast<unsigned>(std::clamp<std::uint64_t>(chunk_bytes / kSliceBytes, 1, kMaxSlices));
}

// No transfer may end up empty.
void check_bytes(const WorkloadSpec& spec, std::uint64_t bytes, std::uint64_t pieces) {
  const std::uint64_t needed = pieces * std::max(1u, spec.slices) * spec.connections;
  if (bytes < needed)
    throw InputError("workload: " + spec.name + " needs at least " + std::to_string(needed) +
                     " bytes here, one per piece, not " + std::to_string(bytes));
}

enum class RingKind : std::uint8_t { kReduceScatter, kAllGather, kAllReduce };

// In step t rank r passes on chunk r - t, which it got in step t - 1 from rank r - 1. While chunks
// are being reduced, the rank's own data must be there as well.
void add_ring(WorkloadBuilder& builder, const WorkloadSpec& spec, RingKind kind,
              std::uint64_t bytes, RingGroup& group) {
  const auto ranks = static_cast<std::uint32_t>(group.hosts.size());
  check_bytes(spec, bytes, ranks);
  const std::uint32_t steps = (ranks - 1) * (kind == RingKind::kAllReduce ? 2 : 1);
  const std::uint32_t reducing = kind == RingKind::kAllGather ? 1 : ranks - 1;
  const unsigned slices = slice_count(spec, bytes / ranks);
  group.done.assign(ranks, {});
  for (unsigned slice = 0; slice < slices; ++slice) {
    std::vector<TaskRange> before;
    for (std::uint32_t t = 0; t < steps; ++t) {
      std::vector<TaskRange> sends(ranks);
      for (std::uint32_t r = 0; r < ranks; ++r) {
        const std::uint32_t chunk = (r + 2 * ranks - t) % ranks;
        sends[r] =
            add_transfer(builder, spec.connections, group.hosts[r], group.hosts[(r + 1) % ranks],
                         even_share(even_share(bytes, ranks, chunk), slices, slice));
        if (t > 0) builder.wait(sends[r], before[(r + ranks - 1) % ranks]);
        if (t < reducing && !group.ready.empty()) builder.wait(sends[r], group.ready[r]);
      }
      before = std::move(sends);
    }
    for (std::uint32_t r = 0; r < ranks; ++r)
      group.done[(r + 1) % ranks].push_back(before[r]);
  }
}

Workload make_ring(const WorkloadSpec& spec, const Topology& topology, RingKind kind) {
  WorkloadBuilder builder(spec.name);
  RingGroup group{participants(spec, topology), {}, {}};
  add_ring(builder, spec, kind, spec.bytes, group);
  const auto ranks = static_cast<std::uint32_t>(group.hosts.size());
  const double factor = (kind == RingKind::kAllReduce ? 2.0 : 1.0) * (ranks - 1) / ranks;
  builder.set_collective(ranks, spec.bytes, factor);
  return builder.build();
}

// One slice of one of the two trees: reduced towards the root, then spread from it. Node p of the
// tree has the children 2p + 1 and 2p + 2; `hosts` is indexed by node.
void add_tree_slice(WorkloadBuilder& builder, unsigned connections,
                    const std::vector<std::uint32_t>& hosts, std::uint64_t bytes) {
  const auto nodes = static_cast<std::uint32_t>(hosts.size());
  std::vector<TaskRange> up(nodes);
  std::vector<TaskRange> down(nodes);
  const auto wait_for_children = [&](TaskRange later, std::uint32_t node) {
    for (std::uint32_t child = 2 * node + 1; child <= 2 * node + 2 && child < nodes; ++child)
      builder.wait(later, up[child]);
  };
  for (std::uint32_t node = nodes - 1; node > 0; --node) {
    up[node] = add_transfer(builder, connections, hosts[node], hosts[(node - 1) / 2], bytes);
    wait_for_children(up[node], node);
  }
  for (std::uint32_t node = 1; node < nodes; ++node) {
    const std::uint32_t parent = (node - 1) / 2;
    down[node] = add_transfer(builder, connections, hosts[parent], hosts[node], bytes);
    if (parent == 0)
      wait_for_children(down[node], 0);
    else
      builder.wait(down[node], down[parent]);
  }
}

}  // namespace

void add_ring_all_reduce(WorkloadBuilder& builder, const WorkloadSpec& spec, std::uint64_t bytes,
                         RingGroup& group) {
  MRC_ASSERT(group.ready.size() == group.hosts.size());
  add_ring(builder, spec, RingKind::kAllReduce, bytes, group);
}

Workload make_ring_all_reduce(const WorkloadSpec& spec, const Topology& topology) {
  return make_ring(spec, topology, RingKind::kAllReduce);
}

Workload make_reduce_scatter(const WorkloadSpec& spec, const Topology& topology) {
  return make_ring(spec, topology, RingKind::kReduceScatter);
}

Workload make_all_gather(const WorkloadSpec& spec, const Topology& topology) {
  return make_ring(spec, topology, RingKind::kAllGather);
}

// Two trees with half of the bytes each. The second is the mirror image of the first, so that who
// passes data on in one is a leaf in the other and every port carries about the same.
Workload make_tree_all_reduce(const WorkloadSpec& spec, const Topology& topology) {
  WorkloadBuilder builder(spec.name);
  std::vector<std::uint32_t> hosts = participants(spec, topology);
  check_bytes(spec, spec.bytes, 2);
  for (unsigned tree = 0; tree < 2; ++tree) {
    const std::uint64_t bytes = even_share(spec.bytes, 2, tree);
    const unsigned slices = slice_count(spec, bytes);
    for (unsigned slice = 0; slice < slices; ++slice)
      add_tree_slice(builder, spec.connections, hosts, even_share(bytes, slices, slice));
    std::reverse(hosts.begin(), hosts.end());
  }
  const auto ranks = static_cast<std::uint32_t>(hosts.size());
  builder.set_collective(ranks, spec.bytes, 2.0 * (ranks - 1) / ranks);
  return builder.build();
}

// In round k every rank sends to the k-th after it and receives from the k-th before it; a rank
// begins round k when it has received what round k - window brought.
Workload make_all_to_all(const WorkloadSpec& spec, const Topology& topology) {
  WorkloadBuilder builder(spec.name);
  const std::vector<std::uint32_t> hosts = participants(spec, topology);
  const auto ranks = static_cast<std::uint32_t>(hosts.size());
  check_bytes(spec, spec.bytes, ranks);
  const std::uint32_t window = spec.window == 0 ? ranks : spec.window;
  std::vector<std::vector<TaskRange>> rounds(1);
  for (std::uint32_t k = 1; k < ranks; ++k) {
    std::vector<TaskRange> sends(ranks);
    for (std::uint32_t r = 0; r < ranks; ++r) {
      const std::uint32_t peer = (r + k) % ranks;
      sends[r] = add_transfer(builder, spec.connections, hosts[r], hosts[peer],
                              even_share(spec.bytes, ranks, peer));
      if (k > window)
        builder.wait(sends[r], rounds[k - window][(r + ranks - (k - window)) % ranks]);
    }
    rounds.push_back(std::move(sends));
  }
  builder.set_collective(ranks, spec.bytes, 1.0 * (ranks - 1) / ranks);
  return builder.build();
}

}  // namespace mrc::sim
