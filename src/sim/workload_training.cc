// A loop of data-parallel training steps.
//
// Every rank computes forward, then backward in equal parts, one per bucket of gradients. When a
// bucket is computed, its ring all-reduce runs while the backward pass goes on; all-reduces follow
// one another in order, as they do on one stream. A rank begins its next step when it has the sums
// of all buckets: nothing but the rings themselves holds the ranks together.

#include "fabric/input_error.h"
#include "sim/workload_makers.h"

namespace mrc::sim {
namespace {

using fabric::InputError;
using fabric::Topology;

class TrainingLoop {
 public:
  TrainingLoop(const WorkloadSpec& spec, const Topology& topology)
      : spec_(spec), builder_(spec.name) {
    ring_.hosts = participants(spec, topology);
    ring_.ready.resize(ring_.hosts.size());
    ring_.done.resize(ring_.hosts.size());
  }

  Workload make() {
    for (unsigned step = 0; step < spec_.steps; ++step)
      add_step();
    return builder_.build();
  }

 private:
  // Computes on rank `r` after `before`, and when the last all-reduce there is complete if asked.
  TaskId compute(std::size_t r, Time duration, TaskRange before, bool after_ring) {
    const TaskId task = builder_.compute(ring_.hosts[r], duration);
    builder_.wait({task, 1}, before);
    if (after_ring)
      for (const TaskRange& part : ring_.done[r])
        builder_.wait({task, 1}, part);
    return task;
  }

  void add_step() {
    builder_.begin_step();
    const Time forward_ps = spec_.compute_ps / 3;
    const Time bucket_ps = (spec_.compute_ps - forward_ps) / spec_.buckets;
    std::vector<TaskId> computed(ring_.hosts.size());
    for (std::size_t r = 0; r < ring_.hosts.size(); ++r)
      computed[r] = compute(r, forward_ps, {}, true);
    for (unsigned bucket = 0; bucket < spec_.buckets; ++bucket) {
      for (std::size_t r = 0; r < ring_.hosts.size(); ++r) {
        computed[r] = compute(r, bucket_ps, {computed[r], 1}, false);
        ring_.ready[r] = {compute(r, 0, {computed[r], 1}, bucket > 0), 1};
      }
      add_ring_all_reduce(builder_, spec_, even_share(spec_.bytes, spec_.buckets, bucket), ring_);
    }
  }

  const WorkloadSpec& spec_;
  WorkloadBuilder builder_;
  RingGroup ring_;  // of the bucket that was added last
};

}  // namespace

Workload make_training(const WorkloadSpec& spec, const Topology& topology) {
  if (spec.steps < 1) throw InputError("workload: training needs at least one step");
  if (spec.buckets < 1) throw InputError("workload: training needs at least one bucket");
  if (spec.compute_ps < 0) throw InputError("workload: computing takes no negative time");
  return TrainingLoop(spec, topology).make();
}

}  // namespace mrc::sim
