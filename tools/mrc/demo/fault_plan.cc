#include "demo/fault_plan.h"

#include <fmt/core.h>

#include <algorithm>

#include "base/assert.h"
#include "base/prng.h"

namespace mrc::demo {
namespace {

constexpr DurationNs kGrainNs = 10 * kMicrosecondNs;
constexpr DurationNs kShortestFaultNs = 20 * kMicrosecondNs;
constexpr unsigned kExtraCuts = 3;
constexpr unsigned kPathSpine = 3;
constexpr unsigned kFirstExtraSpine = 4;
// Which plane and which host meet their fate; taken modulo what there is.
constexpr unsigned kPathPlane = 1;
constexpr unsigned kDyingPlane = 2;
constexpr unsigned kPortPlane = 3;
constexpr unsigned kPortHost = 5;

PortId nth_plane(unsigned number, const Topology& topology) {
  return static_cast<PortId>((number - 1) % topology.planes() + 1);
}

// A share of the transfer, as a round time that is never at the very start.
TimeNs moment(DurationNs span_ns, unsigned percent) {
  return std::max(span_ns * percent / 100 / kGrainNs * kGrainNs, 2 * kGrainNs);
}

// In a short transfer that would be at once; every fault lasts long enough to be noticed.
TimeNs repair_moment(DurationNs span_ns, unsigned percent, TimeNs cut_at) {
  return std::max(moment(span_ns, percent), cut_at + kShortestFaultNs);
}

}  // namespace

const char* fault_kind_name(FaultKind kind) {
  switch (kind) {
    case FaultKind::kPath:
      return "path";
    case FaultKind::kPlane:
      return "plane";
    case FaultKind::kPort:
      return "port";
  }
  return "unknown";
}

std::string describe(const Fault& fault) {
  const auto plane = static_cast<unsigned>(fault.plane);
  switch (fault.kind) {
    case FaultKind::kPath:
      return fmt::format("plane {}: the cable between T0 {} and T1 {} goes dark", plane, fault.leaf,
                         fault.spine);
    case FaultKind::kPlane:
      return fmt::format("plane {}: every T1 switch dies", plane);
    case FaultKind::kPort:
      return fmt::format("plane {}: host {} loses its port", plane, fault.host);
  }
  return "";
}

FaultPlan::FaultPlan(const Options& options, const Topology& topology, DurationNs span_ns) {
  MRC_ASSERT(kFirstExtraSpine + kExtraCuts <= topology.spines());
  const bool storm = options.fail == FailMode::kStorm;
  const PortId path_plane = nth_plane(kPathPlane, topology);
  if (storm || options.fail == FailMode::kPath) {
    add_path(moment(span_ns, 15), {path_plane, 0, kPathSpine}, topology);
  }
  if (storm || options.fail == FailMode::kPlane) {
    const TimeNs at = moment(span_ns, 30);
    add_plane(at, repair_moment(span_ns, 60, at), topology);
  }
  if (storm || options.fail == FailMode::kPort) {
    const TimeNs at = moment(span_ns, 75);
    add_port(at, repair_moment(span_ns, 95, at), topology);
  }
  Prng prng(options.seed ^ 0xFA17);
  for (unsigned i = 0; storm && i < kExtraCuts; ++i) {
    // Not on the dying plane, so that each fault's effect can be told from the others'.
    const PortId plane = nth_plane(kDyingPlane + 1 + prng.below(topology.planes() - 1), topology);
    // Each on a spine of its own, so that no cable is cut twice.
    const Trunk trunk{plane, prng.below(topology.leaves()), kFirstExtraSpine + i};
    add_path(moment(span_ns, 10 + prng.below(80)), trunk, topology);
  }
  std::stable_sort(faults_.begin(), faults_.end(),
                   [](const Fault& a, const Fault& b) { return a.at < b.at; });
  for (std::uint32_t i = 0; i < faults_.size(); ++i) {
    actions_.push_back({faults_[i].at, FaultId{i}, false});
    if (faults_[i].repair_at != kNever)
      actions_.push_back({faults_[i].repair_at, FaultId{i}, true});
  }
  std::stable_sort(actions_.begin(), actions_.end(),
                   [](const FaultAction& a, const FaultAction& b) { return a.at < b.at; });
}

void FaultPlan::add_path(TimeNs at, const Trunk& trunk, const Topology& topology) {
  faults_.push_back({.kind = FaultKind::kPath,
                     .at = at,
                     .plane = trunk.plane,
                     .leaf = trunk.leaf,
                     .spine = trunk.spine,
                     .links = {topology.leaf_to_spine(trunk), topology.spine_to_leaf(trunk)}});
}

void FaultPlan::add_plane(TimeNs at, TimeNs repair_at, const Topology& topology) {
  Fault fault{.kind = FaultKind::kPlane,
              .at = at,
              .repair_at = repair_at,
              .plane = nth_plane(kDyingPlane, topology)};
  for (unsigned leaf = 0; leaf < topology.leaves(); ++leaf) {
    for (unsigned spine = 0; spine < topology.spines(); ++spine) {
      fault.links.push_back(topology.leaf_to_spine({fault.plane, leaf, spine}));
      fault.links.push_back(topology.spine_to_leaf({fault.plane, leaf, spine}));
    }
  }
  faults_.push_back(fault);
}

void FaultPlan::add_port(TimeNs at, TimeNs repair_at, const Topology& topology) {
  Fault fault{.kind = FaultKind::kPort,
              .at = at,
              .repair_at = repair_at,
              .plane = nth_plane(kPortPlane, topology),
              .host = kPortHost % topology.hosts()};
  fault.links = {topology.host_to_leaf(fault.host, fault.plane),
                 topology.leaf_to_host(fault.host, fault.plane)};
  faults_.push_back(fault);
}

}  // namespace mrc::demo
