#include "controller/drain.h"

#include <fmt/core.h>

#include <algorithm>
#include <cstring>
#include <map>
#include <utility>

#include "controller/session.h"
#include "fabric/input_error.h"

namespace mrc::controller {
namespace {

using fabric::DrainKind;
using fabric::DrainTarget;
using fabric::NodeKind;
using node::NodeSnapshot;
using node::PathExclusion;

PortId port_of_plane(unsigned plane) { return static_cast<PortId>(plane + 1); }

PathExclusion whole_port(unsigned plane) { return {.port = port_of_plane(plane)}; }

PathExclusion pass(unsigned plane, std::initializer_list<wire::Usid> hops) {
  PathExclusion exclusion{.port = port_of_plane(plane),
                          .hop_count = static_cast<std::uint8_t>(hops.size())};
  std::copy(hops.begin(), hops.end(), exclusion.hops.begin());
  return exclusion;
}

// The cable of a host in one plane, as another host, or that one itself, meets it.
void add_port(const fabric::Routing& routing, unsigned of, unsigned plane, unsigned host,
              std::vector<PathExclusion>& all) {
  if (of == host) return all.push_back(whole_port(plane));
  const auto in_plane = static_cast<std::uint8_t>(plane);
  const fabric::Node t0{NodeKind::kT0, in_plane, routing.topology().t0_of(of)};
  const wire::Usid port = routing.usid_of({NodeKind::kHost, in_plane, of});
  for (unsigned cable = 0; cable < routing.topology().cables(); ++cable)
    all.push_back(pass(plane, {routing.usid_of(t0, cable), port}));
}

// The ways up and down through cables between a T0 and a T1. A way begins with the first uSID of
// its T0, whichever cable it takes.
void add_cables(const fabric::Routing& routing, const DrainTarget& target,
                std::vector<PathExclusion>& all) {
  const unsigned first = target.cable.value_or(0);
  const unsigned last = target.cable.value_or(routing.usids_of(target.lower.kind) - 1);
  for (unsigned cable = first; cable <= last; ++cable) {
    const wire::Usid upper = routing.usid_of(target.node, cable);
    all.push_back(pass(target.plane, {routing.usid_of(target.lower), upper}));
    all.push_back(pass(target.plane, {upper, routing.usid_of(target.lower, cable)}));
  }
}

std::string why_not(int error) {
  if (error == EPERM) return "not permitted: this takes the owner of the device or CAP_NET_ADMIN";
  if (error == E2BIG) return "no more parts can be drained at a time";
  return std::strerror(error);
}

}  // namespace

DrainNode open_drain_node(const fabric::Topology& topology, unsigned host,
                          const node::DeviceConfig& device) {
  if (device.planes.size() != topology.planes()) {
    throw fabric::InputError(fmt::format("{} of host {} has {} ports, the fabric has {} planes",
                                         device.name, host, device.planes.size(),
                                         topology.planes()));
  }
  if (device.backend != node::BackendKind::kWire || device.srv6_routes.empty()) {
    throw fabric::InputError(
        fmt::format("{} of host {} does not choose the ways of its packets, so none can be kept "
                    "clear: it has no srv6_route (docs/controller.md)",
                    device.name, host));
  }
  std::string error;
  DrainNode opened{.host = host, .state = node::NodeState::open(device.directory, error)};
  if (!opened.state) throw CtlError(error);
  return opened;
}

std::vector<std::string> drained_parts(const std::string& directory) {
  std::string error;
  const auto state = node::NodeState::open(directory, error);
  if (!state) throw CtlError(error);
  std::vector<std::string> names;
  for (const auto& [name, part] : state->snapshot()->drained)
    names.push_back(name);
  return names;
}

std::vector<PathExclusion> exclusions_of(const fabric::Routing& routing, const DrainTarget& target,
                                         unsigned host) {
  std::vector<PathExclusion> all;
  switch (target.kind) {
    case DrainKind::kPlane:
      all.push_back(whole_port(target.plane));
      break;
    case DrainKind::kSwitch:
      for (unsigned cable = 0; cable < routing.usids_of(target.node.kind); ++cable)
        all.push_back(pass(target.plane, {routing.usid_of(target.node, cable)}));
      break;
    case DrainKind::kCable:
      add_cables(routing, target, all);
      break;
    case DrainKind::kPort:
      add_port(routing, target.node.index, target.plane, host, all);
      break;
    case DrainKind::kHost:
      for (unsigned plane = 0; plane < routing.topology().planes(); ++plane)
        add_port(routing, target.node.index, plane, host, all);
      break;
  }
  return all;
}

FabricDrains::FabricDrains(const fabric::Routing& routing, std::vector<DrainNode> nodes)
    : routing_(&routing) {
  for (DrainNode& each : nodes)
    nodes_.push_back({.it = std::move(each), .before = {}});
}

std::vector<FabricDrains::Entry> FabricDrains::list() const {
  std::map<std::string, Entry> all;
  for (const Node& each : nodes_) {
    for (const auto& [name, part] : each.it.state->snapshot()->drained) {
      Entry& entry = all[name];
      entry.name = name;
      entry.by = part.by;
      ++entry.nodes;
    }
  }
  std::vector<Entry> entries;
  entries.reserve(all.size());
  for (auto& [name, entry] : all)
    entries.push_back(std::move(entry));
  return entries;
}

// Parts of another fabric are no way of this one.
std::vector<DrainTarget> FabricDrains::out_of_use(const std::set<std::string>& also) const {
  const fabric::Topology& topology = routing_->topology();
  std::vector<DrainTarget> targets;
  const auto add = [&](const std::string& name) {
    try {
      targets.push_back(fabric::parse_drain_target(name, topology));
    } catch (const fabric::InputError& error) {
      throw CtlError(
          fmt::format("{} is drained, which this fabric does not have ({}); `mrc "
                      "undrain {}` gives it back",
                      name, error.what(), name));
    }
  };
  for (const Entry& entry : list())
    add(entry.name);
  for (const std::string& name : also)
    add(name);
  for (const Node& each : nodes_) {
    const PortMask enabled = each.it.state->snapshot()->ports_enabled;
    for (unsigned plane = 0; plane < topology.planes(); ++plane)
      if (!enabled.contains(port_of_plane(plane)))
        add(fmt::format("host:{}/plane:{}", each.it.host, plane));
  }
  return targets;
}

std::optional<fabric::HostPair> FabricDrains::would_cut_off(
    const DrainTarget& target, const std::set<std::string>& also) const {
  return fabric::pair_cut_off(*routing_, out_of_use(also), std::span(&target, 1));
}

void FabricDrains::note_followers() {
  for (Node& each : nodes_)
    each.before = each.it.state->followers();
}

void FabricDrains::drain(const DrainTarget& target, node::DrainedBy by) {
  note_followers();
  last_ = target.name;
  for (Node& each : nodes_)
    each.changed = false;
  for (Node& each : nodes_) {
    const int error = each.it.state->update([&](NodeSnapshot& state) {
      each.changed =
          state.drained
              .try_emplace(target.name,
                           node::DrainedPart{by, exclusions_of(*routing_, target, each.it.host)})
              .second;
      return 0;
    });
    if (error != 0) {
      each.changed = false;
      take_back();
      throw CtlError(fmt::format("host {}: {}; nothing changed", each.it.host, why_not(error)));
    }
    each.version = each.it.state->snapshot()->version;
  }
}

void FabricDrains::give_back(Node& node, const std::string& name) {
  const int error = node.it.state->update([&](NodeSnapshot& state) {
    state.drained.erase(name);
    return 0;
  });
  if (error != 0) {
    throw CtlError(
        fmt::format("host {}: {}; {} stays drained there", node.it.host, why_not(error), name));
  }
  node.version = node.it.state->snapshot()->version;
}

void FabricDrains::take_back() {
  for (Node& each : nodes_) {
    if (std::exchange(each.changed, false)) give_back(each, last_);
  }
}

void FabricDrains::undrain(const std::string& name) {
  note_followers();
  for (Node& each : nodes_)
    give_back(each, name);
}

FabricDrains::Progress FabricDrains::progress() const {
  Progress progress;
  for (const Node& each : nodes_) {
    for (const node::NodeFollower& now : each.it.state->followers()) {
      const Process process{.host = each.it.host, .pid = now.process};
      if (now.version < each.version) {
        progress.behind.push_back(process);
        continue;
      }
      const auto same = std::find_if(
          each.before.begin(), each.before.end(),
          [&](const node::NodeFollower& earlier) { return earlier.process == now.process; });
      const std::uint64_t had = same == each.before.end() ? 0 : same->stranded;
      if (now.stranded > had && !progress.stranded)
        progress.stranded = Stranded{.process = process, .queue_pairs = now.stranded - had};
    }
  }
  return progress;
}

}  // namespace mrc::controller
