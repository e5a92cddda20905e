#include "fabric/routing.h"

#include <algorithm>
#include <bit>
#include <numeric>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/assert.h"
#include "base/prng.h"
#include "fabric/input_error.h"

namespace mrc::fabric {
namespace {

constexpr unsigned kPlaneShift = 16;  // of an EV

unsigned bits_for(unsigned count) {
  return count > 1 ? static_cast<unsigned>(std::bit_width(count - 1)) : 0;
}

wire::Usid usid(const wire::UsidRange& range, unsigned index) {
  return wire::Usid{static_cast<std::uint16_t>(range.first + index)};
}

// The device a uSID stands for, or a number that no device of this range has.
unsigned device(const wire::UsidRange& range, wire::Usid usid) {
  return static_cast<unsigned>(usid) - range.first;
}

void require_numbers(const wire::UsidRange& range, std::uint64_t devices, const char* kind) {
  if (devices <= range.count) return;
  throw InputError("topology: " + std::to_string(devices) + " " + kind + " but only " +
                   std::to_string(range.count) + " uSIDs for them");
}

// What the switches of a hash-routed fabric compute: addresses and entropy, salted with the switch
// so that tiers do not decide alike.
std::uint32_t hash(const Node& at, unsigned source, unsigned destination, std::uint32_t entropy) {
  const std::uint64_t identity = std::uint64_t{static_cast<std::uint8_t>(at.kind)} << 40 |
                                 std::uint64_t{at.plane} << 32 | at.index;
  std::uint64_t h = mix64(0x9E37'79B9'7F4A'7C15 + identity);
  h = mix64(h ^ (std::uint64_t{source} << 32 | destination));
  return static_cast<std::uint32_t>(mix64(h + entropy) >> 32);
}

unsigned choose(std::uint32_t random, unsigned choices) {
  return static_cast<unsigned>((std::uint64_t{random} * choices) >> 32);
}

}  // namespace

Routing::Routing(const Topology& topology, const wire::UsidPlan& plan)
    : topology_(&topology),
      plan_(plan),
      up_bits_(bits_for(topology.uplinks_per_t0())),
      t2_bits_(bits_for(topology.t2_per_group())) {
  const Status sound = wire::check_usid_plan(plan);
  if (!sound.ok()) throw InputError(std::string("uSID plan: ") + sound.what());
  const TopologySpec& spec = topology.spec();
  require_numbers(plan.host_port, topology.hosts_per_t0(), "hosts per T0");
  const bool bundles = spec.cables > 1;
  require_numbers(plan.t0, std::uint64_t{spec.t0} * spec.cables,
                  bundles ? "cables to a T1 of all T0 switches" : "T0 switches per plane");
  require_numbers(plan.t1, std::uint64_t{spec.t1} * spec.cables,
                  bundles ? "cables to a T0 of all T1 switches" : "T1 switches per plane");
  require_numbers(plan.t2, spec.t2, "T2 switches per plane");
  if (up_bits_ + t2_bits_ > kPlaneShift) {
    throw InputError("topology: " + std::to_string(topology.paths_per_plane()) +
                     " paths per plane do not fit into the 16 bits of an EV");
  }
}

wire::Usid Routing::usid_of(const Node& node, unsigned cable) const {
  const unsigned cables = topology_->cables();
  switch (node.kind) {
    case NodeKind::kHost:
      return usid(plan_.host_port, topology_->place_at_t0(node.index));
    case NodeKind::kT0:
      return usid(plan_.t0, node.index * cables + cable);
    case NodeKind::kT1:
      return usid(plan_.t1, node.index * cables + cable);
    case NodeKind::kT2:
      return usid(plan_.t2, node.index);
  }
  return wire::kNoUsid;
}

unsigned Routing::usids_of(NodeKind kind) const {
  return kind == NodeKind::kT0 || kind == NodeKind::kT1 ? topology_->cables() : 1;
}

bool Routing::owns(const Node& node, wire::Usid usid) const {
  return static_cast<unsigned>(usid) - static_cast<unsigned>(usid_of(node)) < usids_of(node.kind);
}

wire::UsidBlock Routing::block_of(unsigned plane) const {
  return wire::plane_block(plan_, PortId{static_cast<std::uint8_t>(plane + 1)});
}

std::uint32_t Routing::entropy_of(const Path& path) const {
  return (std::uint32_t{path.plane} + 1) << kPlaneShift | std::uint32_t{path.t2} << up_bits_ |
         path.up;
}

bool Routing::path_of(std::uint32_t entropy, Path& path) const {
  const std::uint32_t plane = (entropy >> kPlaneShift) - 1;
  const std::uint32_t ways = entropy & 0xFFFF;
  const std::uint32_t up = ways & ((1U << up_bits_) - 1);
  const std::uint32_t t2 = ways >> up_bits_;
  if (plane >= topology_->planes() || up >= topology_->uplinks_per_t0()) return false;
  if (t2 != 0 && t2 >= topology_->t2_per_group()) return false;
  path = {static_cast<std::uint8_t>(plane), static_cast<std::uint16_t>(up),
          static_cast<std::uint16_t>(t2)};
  return true;
}

UsidList Routing::usids(unsigned source, unsigned destination, const Path& path) const {
  const Topology& t = *topology_;
  const unsigned from = t.t0_of(source);
  const unsigned to = t.t0_of(destination);
  const unsigned in_pod = t.t1_of_uplink(path.up);
  const unsigned cable = t.cable_of_uplink(path.up);
  const wire::Usid host = usid(plan_.host_port, t.place_at_t0(destination));
  const auto t0 = [&](unsigned n, unsigned k) {
    return usid_of({NodeKind::kT0, path.plane, n}, k);
  };
  const auto t1 = [&](unsigned pod) {
    return usid_of({NodeKind::kT1, path.plane, pod * t.t1_per_pod() + in_pod}, cable);
  };
  if (from == to) return {t0(from, 0), host};
  const unsigned up_pod = t.pod_of_t0(from);
  const unsigned down_pod = t.pod_of_t0(to);
  if (up_pod == down_pod) return {t0(from, 0), t1(up_pod), t0(to, cable), host};
  const wire::Usid t2 = usid(plan_.t2, in_pod * t.t2_per_group() + path.t2);
  return {t0(from, 0), t1(up_pod), t2, t1(down_pod), t0(to, cable), host};
}

wire::IpAddress Routing::carrier(unsigned source, unsigned destination, const Path& path) const {
  const UsidList list = usids(source, destination, path);
  std::size_t count = 0;
  while (count < list.size() && list[count] != wire::kNoUsid) {
    ++count;
  }
  return wire::build_carrier(block_of(path.plane), std::span(list).first(count)).value();
}

bool Routing::read_carrier(const wire::IpAddress& carrier, unsigned& source_t0,
                           unsigned& destination, Path& path) const {
  const Topology& t = *topology_;
  const unsigned count = wire::usid_count(carrier);
  if (count != 2 && count != 4 && count != 6) return false;
  const auto usid = [&carrier](unsigned position) { return wire::usid_at(carrier, position); };
  const unsigned from = device(plan_.t0, usid(0)) / t.cables();
  const unsigned to = device(plan_.t0, usid(count - 2)) / t.cables();
  const unsigned place = device(plan_.host_port, usid(count - 1));
  if (from >= t.spec().t0 || to >= t.spec().t0 || place >= t.hosts_per_t0()) return false;

  // Whatever the carrier says, it must be what the sender would have written for the same path.
  Path candidate;
  candidate.plane = static_cast<std::uint8_t>(static_cast<std::uint32_t>(carrier_block(carrier)) -
                                              plan_.first_block);
  if (count > 2)
    candidate.up = static_cast<std::uint16_t>(device(plan_.t1, usid(1)) % t.uplinks_per_t0());
  if (count > 4 && t.three_tier())
    candidate.t2 = static_cast<std::uint16_t>(device(plan_.t2, usid(2)) % t.t2_per_group());
  const unsigned to_host = to * t.hosts_per_t0() + place;
  if (candidate.plane >= t.planes()) return false;
  if (this->carrier(from * t.hosts_per_t0(), to_host, candidate) != carrier) return false;
  source_t0 = from;
  destination = to_host;
  path = candidate;
  return true;
}

Routing::LinkList Routing::links(unsigned source, unsigned destination, const Path& path) const {
  const Topology& t = *topology_;
  const unsigned plane = path.plane;
  const unsigned from = t.t0_of(source);
  const unsigned to = t.t0_of(destination);
  const LinkId first = t.host_up(plane, source);
  const LinkId last = t.host_down(plane, destination);
  if (from == to) return {{first, last}, 2};
  const LinkId up = t.t0_up(plane, from, path.up);
  const unsigned in_pod = t.t1_of_uplink(path.up);
  const unsigned down_t1 = t.pod_of_t0(to) * t.t1_per_pod() + in_pod;
  const LinkId down = t.t1_down(plane, down_t1, to % t.t0_per_pod(), t.cable_of_uplink(path.up));
  if (t.pod_of_t0(from) == t.pod_of_t0(to)) return {{first, up, down, last}, 4};
  const unsigned up_t1 = t.pod_of_t0(from) * t.t1_per_pod() + in_pod;
  const unsigned t2 = in_pod * t.t2_per_group() + path.t2;
  return {{first, up, t.t1_up(plane, up_t1, path.t2), t.t2_down(plane, t2, t.pod_of_t0(to)), down,
           last},
          6};
}

LinkId Routing::next_by_usid(const Node& at, wire::Usid active, wire::Usid next) const {
  const Topology& t = *topology_;
  switch (at.kind) {
    case NodeKind::kHost:
      return kNoLink;
    case NodeKind::kT0: {
      if (!owns(at, active)) return kNoLink;
      const unsigned place = device(plan_.host_port, next);
      if (place < t.hosts_per_t0())
        return t.host_down(at.plane, at.index * t.hosts_per_t0() + place);
      const unsigned first_t1 = t.three_tier() ? t.pod_of_t0(at.index) * t.t1_per_pod() : 0;
      const unsigned up = device(plan_.t1, next) - first_t1 * t.cables();
      return up < t.uplinks_per_t0() ? t.t0_up(at.plane, at.index, up) : kNoLink;
    }
    case NodeKind::kT1: {
      if (!owns(at, active)) return kNoLink;
      const unsigned pod = t.three_tier() ? at.index / t.t1_per_pod() : 0;
      const unsigned down = device(plan_.t0, next) - pod * t.t0_per_pod() * t.cables();
      if (down < t.t0_per_pod() * t.cables())
        return t.t1_down(at.plane, at.index, 0, down);  // counted through, from the first T0 on
      const unsigned group = at.index - pod * t.t1_per_pod();
      const unsigned t2 = device(plan_.t2, next) - group * t.t2_per_group();
      return t2 < t.t2_per_group() ? t.t1_up(at.plane, at.index, t2) : kNoLink;
    }
    case NodeKind::kT2: {
      if (device(plan_.t2, active) != at.index) return kNoLink;
      const unsigned t1 = device(plan_.t1, next);
      if (t1 >= t.spec().t1) return kNoLink;
      const unsigned pod = t1 / t.t1_per_pod();
      const bool same_group = at.index / t.t2_per_group() == t1 - pod * t.t1_per_pod();
      return same_group ? t.t2_down(at.plane, at.index, pod) : kNoLink;
    }
  }
  return kNoLink;
}

LinkId Routing::down_link(const Node& at, unsigned destination, unsigned cable) const {
  const Topology& t = *topology_;
  const unsigned t0 = t.t0_of(destination);
  switch (at.kind) {
    case NodeKind::kHost:
      return kNoLink;
    case NodeKind::kT0:
      return t0 == at.index ? t.host_down(at.plane, destination) : kNoLink;
    case NodeKind::kT1:
      return t.pod_of_t0(t0) == at.index / t.t1_per_pod()
                 ? t.t1_down(at.plane, at.index, t0 % t.t0_per_pod(), cable)
                 : kNoLink;
    case NodeKind::kT2:
      return t.t2_down(at.plane, at.index, t.pod_of_t0(t0));
  }
  return kNoLink;
}

LinkId Routing::next_by_structured_ev(const Node& at, unsigned destination,
                                      std::uint32_t entropy) const {
  const Topology& t = *topology_;
  const std::uint32_t ways = entropy & 0xFFFF;
  const unsigned up = ways & ((1U << up_bits_) - 1);
  const LinkId down = down_link(at, destination, t.cable_of_uplink(up));
  if (down != kNoLink || at.kind == NodeKind::kHost) return down;
  if (at.kind == NodeKind::kT0)
    return up < t.uplinks_per_t0() ? t.t0_up(at.plane, at.index, up) : kNoLink;
  const unsigned t2 = ways >> up_bits_;
  return t2 < t.t2_per_group() ? t.t1_up(at.plane, at.index, t2) : kNoLink;
}

LinkId Routing::next_by_hash(const Node& at, unsigned source, unsigned destination,
                             std::uint32_t entropy) const {
  const Topology& t = *topology_;
  // A T1 goes on through the cable of the number by which the packet came, so that Path can say it.
  unsigned cable = 0;
  if (at.kind == NodeKind::kT1 && t.cables() > 1) {
    const Node first{NodeKind::kT0, at.plane, t.t0_of(source)};
    const unsigned up = choose(hash(first, source, destination, entropy), t.uplinks_per_t0());
    cable = t.cable_of_uplink(up);
  }
  const LinkId down = down_link(at, destination, cable);
  if (down != kNoLink || at.kind == NodeKind::kHost) return down;
  const std::uint32_t random = hash(at, source, destination, entropy);
  if (at.kind == NodeKind::kT0)
    return t.t0_up(at.plane, at.index, choose(random, t.uplinks_per_t0()));
  return t.t1_up(at.plane, at.index, choose(random, t.t2_per_group()));
}

std::vector<Route> Routing::table(const Node& at) const {
  const Topology& t = *topology_;
  std::vector<Route> routes;
  const auto add = [&](LinkId link) {
    const Link described = t.describe(link);
    routes.push_back({usid_of(described.to, described.cable), link, described.to});
  };
  switch (at.kind) {
    case NodeKind::kHost:
      break;
    case NodeKind::kT0:
      for (unsigned place = 0; place < t.hosts_per_t0(); ++place)
        add(t.host_down(at.plane, at.index * t.hosts_per_t0() + place));
      for (unsigned up = 0; up < t.uplinks_per_t0(); ++up)
        add(t.t0_up(at.plane, at.index, up));
      break;
    case NodeKind::kT1:
      for (unsigned t0 = 0; t0 < t.t0_per_pod(); ++t0)
        for (unsigned cable = 0; cable < t.cables(); ++cable)
          add(t.t1_down(at.plane, at.index, t0, cable));
      for (unsigned t2 = 0; t2 < t.t2_per_group(); ++t2)
        add(t.t1_up(at.plane, at.index, t2));
      break;
    case NodeKind::kT2:
      for (unsigned pod = 0; pod < t.spec().pods; ++pod)
        add(t.t2_down(at.plane, at.index, pod));
      break;
  }
  return routes;
}

unsigned Routing::port_of(LinkId link) const {
  const Topology& t = *topology_;
  const Link l = t.describe(link);
  const unsigned to = l.to.index;
  switch (l.from.kind) {
    case NodeKind::kHost:
      return l.from.plane;
    case NodeKind::kT0:
      return l.to.kind == NodeKind::kHost
                 ? t.place_at_t0(to)
                 : t.hosts_per_t0() + to % t.t1_per_pod() * t.cables() + l.cable;
    case NodeKind::kT1:
      return l.to.kind == NodeKind::kT0 ? to % t.t0_per_pod() * t.cables() + l.cable
                                        : t.t0_per_pod() * t.cables() + to % t.t2_per_group();
    case NodeKind::kT2:
      return to / t.t1_per_pod();
  }
  return 0;
}

namespace {

// Throws when `evs` cannot be spread over the planes.
void check_ev_count(const Topology& topology, unsigned evs) {
  if (evs < topology.planes()) {
    throw InputError("EVs: " + std::to_string(evs) + " are too few for " +
                     std::to_string(topology.planes()) + " planes");
  }
  if (evs > kMaxEvsPerQp) {
    throw InputError("EVs: at most " + std::to_string(kMaxEvsPerQp) + " are possible, not " +
                     std::to_string(evs));
  }
}

unsigned evs_per_plane(const Topology& topology, unsigned evs) {
  check_ev_count(topology, evs);
  return std::min(evs / topology.planes(), topology.paths_per_plane());
}

}  // namespace

unsigned sample_count(const Topology& topology, unsigned evs) {
  const unsigned paths = topology.paths_per_plane();
  return paths / std::gcd(paths, evs_per_plane(topology, evs));
}

namespace {

// The ways up of a host's sample, in the order in which it takes them: one T1 after the other, from
// that of its place on, and a second T2 of a T1 only after the first of every T1. So the hosts of a
// T0 that send at the same time do not meet on its uplinks.
std::vector<unsigned> ways_in_turn(const Topology& t, unsigned per_plane, unsigned samples,
                                   unsigned place) {
  // How often all samples together use each path: 1 where `per_plane` divides the paths.
  const unsigned uses = std::uint64_t{samples} * per_plane / t.paths_per_plane();
  const unsigned t2_choices = t.three_tier() ? t.t2_per_group() : 1;
  std::vector<unsigned> of_t1(t.paths_per_plane() / t2_choices);
  std::vector<std::pair<unsigned, unsigned>> ways;  // the how-manieth over its T1, way
  for (unsigned i = 0; i < per_plane; ++i) {
    // i * samples + sample is different for every pair, and `uses` neighbours share a path.
    const unsigned way = (i * samples + place % samples) / uses;
    ways.emplace_back(of_t1[way / t2_choices]++, way);
  }
  std::sort(ways.begin(), ways.end());
  std::rotate(ways.begin(), ways.begin() + place / samples % per_plane, ways.end());
  std::vector<unsigned> result;
  result.reserve(ways.size());
  for (const auto& [round, way] : ways)
    result.push_back(way);
  return result;
}

}  // namespace

core::EvProfile make_ev_profile(const Routing& routing, unsigned evs, unsigned place) {
  const Topology& t = routing.topology();
  const unsigned per_plane = evs_per_plane(t, evs);
  const unsigned t2_choices = t.three_tier() ? t.t2_per_group() : 1;
  std::vector<core::EvEntry> entries;
  entries.reserve(std::size_t{per_plane} * t.planes());
  for (const unsigned way : ways_in_turn(t, per_plane, sample_count(t, evs), place)) {
    for (unsigned plane = 0; plane < t.planes(); ++plane) {
      const Path path{static_cast<std::uint8_t>(plane),
                      static_cast<std::uint16_t>(way / t2_choices),
                      static_cast<std::uint16_t>(way % t2_choices)};
      entries.push_back({.entropy = routing.entropy_of(path),
                         .port = PortId{static_cast<std::uint8_t>(plane + 1)}});
    }
  }
  return core::EvProfile::create(entries, 0xFFFF'FFFF, core::EvOrder::kAsListed).value();
}

core::EvProfile make_hashed_profile(const Topology& topology, unsigned evs) {
  check_ev_count(topology, evs);
  std::vector<core::EvEntry> entries;
  for (unsigned i = 0; i < evs / topology.planes(); ++i) {
    for (unsigned plane = 0; plane < topology.planes(); ++plane) {
      entries.push_back({.entropy = (plane + 1) << kPlaneShift | i,
                         .port = PortId{static_cast<std::uint8_t>(plane + 1)}});
    }
  }
  return core::EvProfile::create(entries).value();
}

}  // namespace mrc::fabric
