#include "sim/bound.h"

#include <algorithm>

#include "sim/mrc_host.h"
#include "sim/rate_history.h"
#include "sim/roce_host.h"

namespace mrc::sim {
namespace {

using fabric::LinkId;
using fabric::LinkTier;
using fabric::Topology;

// Links that a set of flows must share, and what they carry.
struct Resource {
  std::uint64_t bytes = 0;
  std::uint64_t largest_flow = 0;
  Time first_start = kEndOfTime;
  unsigned fewest_hops = ~0U;  // of its flows
};

void load(Resource& resource, const Task& task, unsigned hops) {
  resource.bytes += task.bytes;
  resource.largest_flow = std::max(resource.largest_flow, task.bytes);
  resource.first_start = std::min(resource.first_start, task.delay);
  resource.fewest_hops = std::min(resource.fewest_hops, hops);
}

// Each transport has headers of its own: with 4 KiB payload 4,242 bytes over SRv6, 4,178 in RoCEv2.
std::uint32_t full_frame_bytes(const SimConfig& config) {
  return config.transport == Transport::kMrc ? full_packet_bytes(config) : roce_frame_bytes(config);
}

class BoundFinder {
 public:
  BoundFinder(const SimConfig& config, const Topology& topology,
              const std::vector<fabric::Fault>& faults, const IdealTimes& ideal)
      : topology_(topology),
        ideal_(ideal),
        rates_(faults, config.end_ps),
        wire_share_(static_cast<double>(full_frame_bytes(config)) / config.path_mtu),
        packet_bytes_(full_frame_bytes(config)),
        connections_(config.workload.connections) {}

  Bound find(const Workload& workload);

 private:
  void add_loads(const Workload& workload);
  void consider(const Resource& resource, const std::vector<LinkId>& links, LinkTier tier,
                const std::string& name);
  void consider_both(const Resource& leaving, const Resource& coming,
                     const std::vector<LinkId>& out, LinkTier tier, const std::string& place);
  void consider_resources();
  void consider_chains(const Workload& workload);
  double time_for_us(double wire_bytes, const std::vector<LinkId>& links, double link_bps) const;
  double line_time_us(std::uint64_t bytes) const;
  double chain_us(const Task& task) const;
  double nearer_us(unsigned hops) const;
  void raise(double us, const std::string& reason) {
    if (us > bound_.us) bound_ = {us, reason};
  }

  const Topology& topology_;
  const IdealTimes& ideal_;
  RateHistory rates_;
  double wire_share_;
  double packet_bytes_;
  unsigned connections_;
  std::vector<Resource> host_out_;
  std::vector<Resource> host_in_;
  std::vector<Resource> t0_up_;
  std::vector<Resource> t0_down_;
  std::vector<Resource> pod_up_;
  std::vector<Resource> pod_down_;
  Bound bound_;
};

// At the rate of all ports of a host.
double BoundFinder::line_time_us(std::uint64_t bytes) const {
  const double bps = static_cast<double>(topology_.spec().host_link.bits_per_second);
  return static_cast<double>(bytes) * wire_share_ * 8e6 / (bps * topology_.planes());
}

// When these links, each as fast as the faults allow, have carried so much.
double BoundFinder::time_for_us(double wire_bytes, const std::vector<LinkId>& links,
                                double link_bps) const {
  std::vector<RateHistory::Change> steps;  // `share` is a difference here
  for (const LinkId link : links) {
    double share = 1;
    for (const RateHistory::Change& change : rates_.of(link)) {
      steps.push_back({change.at, change.share - share});
      share = change.share;
    }
  }
  std::stable_sort(steps.begin(), steps.end(),
                   [](const auto& a, const auto& b) { return a.at < b.at; });
  double bits = wire_bytes * 8;
  double healthy = static_cast<double>(links.size());
  double at_us = 0;
  for (const RateHistory::Change& step : steps) {
    const double until_us = static_cast<double>(step.at) / 1e6;
    const double can = (until_us - at_us) * healthy * link_bps / 1e6;
    if (can >= bits) break;
    bits -= can;
    at_us = until_us;
    healthy += step.share;
  }
  return healthy < 1e-9 ? at_us : at_us + bits * 1e6 / (healthy * link_bps);
}

void BoundFinder::consider(const Resource& resource, const std::vector<LinkId>& links,
                           LinkTier tier, const std::string& name) {
  if (resource.bytes == 0) return;
  const auto bps = static_cast<double>(topology_.link_class(tier).bits_per_second);
  const double needs_us =
      time_for_us(static_cast<double>(resource.bytes) * wire_share_, links, bps);
  // What the largest flow needs beyond the time on the line is the round trip, which is shorter for
  // flows that stay near.
  const double idle_us = ideal_.us(resource.largest_flow) -
                         line_time_us(resource.largest_flow * connections_) -
                         nearer_us(resource.fewest_hops);
  raise(static_cast<double>(resource.first_start) / 1e6 + needs_us + idle_us, name);
}

void BoundFinder::add_loads(const Workload& workload) {
  host_out_.resize(topology_.hosts());
  host_in_.resize(topology_.hosts());
  t0_up_.resize(topology_.spec().t0);
  t0_down_.resize(topology_.spec().t0);
  pod_up_.resize(topology_.spec().pods);
  pod_down_.resize(topology_.spec().pods);
  for (const Task& task : workload.tasks) {
    if (task.kind != Task::Kind::kTransfer) continue;
    const unsigned hops = topology_.hops(task.source, task.destination);
    load(host_out_[task.source], task, hops);
    load(host_in_[task.destination], task, hops);
    const unsigned from = topology_.t0_of(task.source);
    const unsigned to = topology_.t0_of(task.destination);
    if (from == to) continue;
    load(t0_up_[from], task, hops);
    load(t0_down_[to], task, hops);
    if (topology_.pod_of_t0(from) == topology_.pod_of_t0(to)) continue;
    load(pod_up_[topology_.pod_of_t0(from)], task, hops);
    load(pod_down_[topology_.pod_of_t0(to)], task, hops);
  }
}

// `out` are the links that lead away from the place, the others run beside them.
void BoundFinder::consider_both(const Resource& leaving, const Resource& coming,
                                const std::vector<LinkId>& out, LinkTier tier,
                                const std::string& place) {
  std::vector<LinkId> in;
  in.reserve(out.size());
  for (const LinkId link : out)
    in.push_back(topology_.reverse(link));
  consider(leaving, out, tier, "bytes out of " + place);
  consider(coming, in, tier, "bytes into " + place);
}

void BoundFinder::consider_resources() {
  const unsigned planes = topology_.planes();
  std::vector<LinkId> links;
  for (unsigned host = 0; host < topology_.hosts(); ++host) {
    links.clear();
    for (unsigned plane = 0; plane < planes; ++plane)
      links.push_back(topology_.host_up(plane, host));
    consider_both(host_out_[host], host_in_[host], links, LinkTier::kHost,
                  "host:" + std::to_string(host));
  }
  for (unsigned t0 = 0; t0 < topology_.spec().t0; ++t0) {
    links.clear();
    for (unsigned plane = 0; plane < planes; ++plane)
      for (unsigned up = 0; up < topology_.uplinks_per_t0(); ++up)
        links.push_back(topology_.t0_up(plane, t0, up));
    consider_both(t0_up_[t0], t0_down_[t0], links, LinkTier::kT0T1, "t0:" + std::to_string(t0));
  }
  for (unsigned pod = 0; topology_.three_tier() && pod < topology_.spec().pods; ++pod) {
    links.clear();
    const unsigned first = pod * topology_.t1_per_pod();
    for (unsigned plane = 0; plane < planes; ++plane)
      for (unsigned t1 = first; t1 < first + topology_.t1_per_pod(); ++t1)
        for (unsigned t2 = 0; t2 < topology_.t2_per_group(); ++t2)
          links.push_back(topology_.t1_up(plane, t1, t2));
    consider_both(pod_up_[pod], pod_down_[pod], links, LinkTier::kT1T2,
                  "pod:" + std::to_string(pod));
  }
}

// How much shorter a round trip over so many links is than one over the greatest distance.
double BoundFinder::nearer_us(unsigned hops) const {
  constexpr double kAnswerBytes = 128;
  double us = 0;
  for (unsigned tier = hops / 2; tier < topology_.longest_hops() / 2; ++tier) {
    const fabric::LinkClass& c = topology_.link_class(static_cast<LinkTier>(tier));
    const double store_us =
        (packet_bytes_ + kAnswerBytes) * 8e6 / static_cast<double>(c.bits_per_second);
    us += 2 * (2 * static_cast<double>(c.delay_ps) / 1e6 + store_us);
  }
  return us;
}

// From post until the last byte is in the receiver's memory, on an idle fabric: every hop stores
// the last packet before it goes on.
double BoundFinder::chain_us(const Task& task) const {
  const double start_us = static_cast<double>(task.delay) / 1e6;
  if (task.kind == Task::Kind::kCompute) return start_us;
  const unsigned hops = topology_.hops(task.source, task.destination);
  const double last_bytes = std::min(packet_bytes_, static_cast<double>(task.bytes) * wire_share_);
  double us = start_us + line_time_us(task.bytes);
  for (unsigned tier = 0; tier < hops / 2; ++tier) {
    const fabric::LinkClass& c = topology_.link_class(static_cast<LinkTier>(tier));
    const double store_us = last_bytes * 8e6 / static_cast<double>(c.bits_per_second);
    // The time on the first link is in the line time.
    us += 2 * static_cast<double>(c.delay_ps) / 1e6 + store_us * (tier == 0 ? 1 : 2);
  }
  return us;
}

void BoundFinder::consider_chains(const Workload& workload) {
  const std::size_t count = workload.tasks.size();
  std::vector<std::uint32_t> waits(count);
  for (const TaskId later : workload.dependents)
    ++waits[later];
  std::vector<double> start_us(count);
  std::vector<TaskId> ready;
  for (TaskId task = 0; task < count; ++task)
    if (waits[task] == 0) ready.push_back(task);
  while (!ready.empty()) {
    const TaskId id = ready.back();
    ready.pop_back();
    const Task& task = workload.tasks[id];
    const double end_us = start_us[id] + chain_us(task);
    raise(end_us, "the longest chain of tasks");
    for (std::uint32_t i = 0; i < task.dependent_count; ++i) {
      const TaskId later = workload.dependents[task.first_dependent + i];
      start_us[later] = std::max(start_us[later], end_us);
      if (--waits[later] == 0) ready.push_back(later);
    }
  }
}

Bound BoundFinder::find(const Workload& workload) {
  for (const Task& task : workload.tasks) {
    if (task.kind != Task::Kind::kTransfer) continue;
    const double nearer = nearer_us(topology_.hops(task.source, task.destination));
    raise(ideal_.us(task.bytes) - nearer, "the largest flow");
  }
  add_loads(workload);
  consider_resources();
  consider_chains(workload);
  return bound_;
}

}  // namespace

Bound lower_bound(const SimConfig& config, const Topology& topology, const Workload& workload,
                  const std::vector<fabric::Fault>& faults, const IdealTimes& ideal) {
  return BoundFinder(config, topology, faults, ideal).find(workload);
}

}  // namespace mrc::sim
