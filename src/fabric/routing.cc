#include "fabric/routing.h"

#include <bit>
#include <numeric>
#include <span>
#include <string>

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

void require_numbers(const wire::UsidRange& range, unsigned devices, const char* kind) {
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
      t1_bits_(bits_for(topology.t1_per_pod())),
      t2_bits_(bits_for(topology.t2_per_group())) {
  const Status sound = wire::check_usid_plan(plan);
  if (!sound.ok()) throw InputError(std::string("uSID plan: ") + sound.what());
  const TopologySpec& spec = topology.spec();
  require_numbers(plan.host_port, topology.hosts_per_t0(), "hosts per T0");
  require_numbers(plan.t0, spec.t0, "T0 switches per plane");
  require_numbers(plan.t1, spec.t1, "T1 switches per plane");
  require_numbers(plan.t2, spec.t2, "T2 switches per plane");
  if (t1_bits_ + t2_bits_ > kPlaneShift) {
    throw InputError("topology: " + std::to_string(topology.paths_per_plane()) +
                     " paths per plane do not fit into the 16 bits of an EV");
  }
}

wire::Usid Routing::usid_of(const Node& node) const {
  switch (node.kind) {
    case NodeKind::kHost:
      return usid(plan_.host_port, topology_->place_at_t0(node.index));
    case NodeKind::kT0:
      return usid(plan_.t0, node.index);
    case NodeKind::kT1:
      return usid(plan_.t1, node.index);
    case NodeKind::kT2:
      return usid(plan_.t2, node.index);
  }
  return wire::kNoUsid;
}

wire::UsidBlock Routing::block_of(unsigned plane) const {
  return wire::plane_block(plan_, PortId{static_cast<std::uint8_t>(plane + 1)});
}

std::uint32_t Routing::entropy_of(const Path& path) const {
  return (std::uint32_t{path.plane} + 1) << kPlaneShift | std::uint32_t{path.t2} << t1_bits_ |
         path.t1;
}

bool Routing::path_of(std::uint32_t entropy, Path& path) const {
  const std::uint32_t plane = (entropy >> kPlaneShift) - 1;
  const std::uint32_t ways = entropy & 0xFFFF;
  const std::uint32_t t1 = ways & ((1U << t1_bits_) - 1);
  const std::uint32_t t2 = ways >> t1_bits_;
  if (plane >= topology_->planes() || t1 >= topology_->t1_per_pod()) return false;
  if (t2 != 0 && t2 >= topology_->t2_per_group()) return false;
  path = {static_cast<std::uint8_t>(plane), static_cast<std::uint16_t>(t1),
          static_cast<std::uint16_t>(t2)};
  return true;
}

UsidList Routing::usids(unsigned source, unsigned destination, const Path& path) const {
  const Topology& t = *topology_;
  const unsigned from = t.t0_of(source);
  const unsigned to = t.t0_of(destination);
  const wire::Usid host = usid(plan_.host_port, t.place_at_t0(destination));
  if (from == to) return {usid(plan_.t0, from), host};
  const unsigned up_t1 = t.pod_of_t0(from) * t.t1_per_pod() + path.t1;
  if (t.pod_of_t0(from) == t.pod_of_t0(to))
    return {usid(plan_.t0, from), usid(plan_.t1, up_t1), usid(plan_.t0, to), host};
  const unsigned down_t1 = t.pod_of_t0(to) * t.t1_per_pod() + path.t1;
  const unsigned t2 = path.t1 * t.t2_per_group() + path.t2;
  return {usid(plan_.t0, from),    usid(plan_.t1, up_t1), usid(plan_.t2, t2),
          usid(plan_.t1, down_t1), usid(plan_.t0, to),    host};
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
  const unsigned from = device(plan_.t0, usid(0));
  const unsigned to = device(plan_.t0, usid(count - 2));
  const unsigned place = device(plan_.host_port, usid(count - 1));
  if (from >= t.spec().t0 || to >= t.spec().t0 || place >= t.hosts_per_t0()) return false;

  // Whatever the carrier says, it must be what the sender would have written for the same path.
  Path candidate;
  candidate.plane = static_cast<std::uint8_t>(static_cast<std::uint32_t>(carrier_block(carrier)) -
                                              plan_.first_block);
  if (count > 2)
    candidate.t1 = static_cast<std::uint16_t>(device(plan_.t1, usid(1)) % t.t1_per_pod());
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
  const LinkId up = t.t0_up(plane, from, path.t1);
  const unsigned down_t1 = t.pod_of_t0(to) * t.t1_per_pod() + path.t1;
  const LinkId down = t.t1_down(plane, down_t1, to % t.t0_per_pod());
  if (t.pod_of_t0(from) == t.pod_of_t0(to)) return {{first, up, down, last}, 4};
  const unsigned up_t1 = t.pod_of_t0(from) * t.t1_per_pod() + path.t1;
  const unsigned t2 = path.t1 * t.t2_per_group() + path.t2;
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
      if (device(plan_.t0, active) != at.index) return kNoLink;
      const unsigned place = device(plan_.host_port, next);
      if (place < t.hosts_per_t0())
        return t.host_down(at.plane, at.index * t.hosts_per_t0() + place);
      const unsigned first_t1 = t.three_tier() ? t.pod_of_t0(at.index) * t.t1_per_pod() : 0;
      const unsigned t1 = device(plan_.t1, next) - first_t1;
      return t1 < t.t1_per_pod() ? t.t0_up(at.plane, at.index, t1) : kNoLink;
    }
    case NodeKind::kT1: {
      if (device(plan_.t1, active) != at.index) return kNoLink;
      const unsigned pod = t.three_tier() ? at.index / t.t1_per_pod() : 0;
      const unsigned t0 = device(plan_.t0, next) - pod * t.t0_per_pod();
      if (t0 < t.t0_per_pod()) return t.t1_down(at.plane, at.index, t0);
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

LinkId Routing::down_link(const Node& at, unsigned destination) const {
  const Topology& t = *topology_;
  const unsigned t0 = t.t0_of(destination);
  switch (at.kind) {
    case NodeKind::kHost:
      return kNoLink;
    case NodeKind::kT0:
      return t0 == at.index ? t.host_down(at.plane, destination) : kNoLink;
    case NodeKind::kT1:
      return t.pod_of_t0(t0) == at.index / t.t1_per_pod()
                 ? t.t1_down(at.plane, at.index, t0 % t.t0_per_pod())
                 : kNoLink;
    case NodeKind::kT2:
      return t.t2_down(at.plane, at.index, t.pod_of_t0(t0));
  }
  return kNoLink;
}

LinkId Routing::next_by_structured_ev(const Node& at, unsigned destination,
                                      std::uint32_t entropy) const {
  const LinkId down = down_link(at, destination);
  if (down != kNoLink || at.kind == NodeKind::kHost) return down;
  const Topology& t = *topology_;
  const std::uint32_t ways = entropy & 0xFFFF;
  if (at.kind == NodeKind::kT0) {
    const unsigned t1 = ways & ((1U << t1_bits_) - 1);
    return t1 < t.t1_per_pod() ? t.t0_up(at.plane, at.index, t1) : kNoLink;
  }
  const unsigned t2 = ways >> t1_bits_;
  return t2 < t.t2_per_group() ? t.t1_up(at.plane, at.index, t2) : kNoLink;
}

LinkId Routing::next_by_hash(const Node& at, unsigned source, unsigned destination,
                             std::uint32_t entropy) const {
  const LinkId down = down_link(at, destination);
  if (down != kNoLink || at.kind == NodeKind::kHost) return down;
  const Topology& t = *topology_;
  const std::uint32_t random = hash(at, source, destination, entropy);
  if (at.kind == NodeKind::kT0) return t.t0_up(at.plane, at.index, choose(random, t.t1_per_pod()));
  return t.t1_up(at.plane, at.index, choose(random, t.t2_per_group()));
}

std::vector<Route> Routing::table(const Node& at) const {
  const Topology& t = *topology_;
  std::vector<Route> routes;
  const auto add = [&](LinkId link) {
    const Node next = t.describe(link).to;
    routes.push_back({usid_of(next), link, next});
  };
  switch (at.kind) {
    case NodeKind::kHost:
      break;
    case NodeKind::kT0:
      for (unsigned place = 0; place < t.hosts_per_t0(); ++place)
        add(t.host_down(at.plane, at.index * t.hosts_per_t0() + place));
      for (unsigned t1 = 0; t1 < t.t1_per_pod(); ++t1)
        add(t.t0_up(at.plane, at.index, t1));
      break;
    case NodeKind::kT1:
      for (unsigned t0 = 0; t0 < t.t0_per_pod(); ++t0)
        add(t.t1_down(at.plane, at.index, t0));
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

core::EvProfile make_ev_profile(const Routing& routing, unsigned evs, unsigned sample) {
  const Topology& t = routing.topology();
  const unsigned per_plane = evs_per_plane(t, evs);
  const unsigned samples = sample_count(t, evs);
  // How often all samples together use each path: 1 where `per_plane` divides the paths.
  const unsigned uses = std::uint64_t{samples} * per_plane / t.paths_per_plane();
  const unsigned t2_choices = t.three_tier() ? t.t2_per_group() : 1;
  std::vector<core::EvEntry> entries;
  entries.reserve(std::size_t{per_plane} * t.planes());
  for (unsigned i = 0; i < per_plane; ++i) {
    // i * samples + sample is different for every pair, and `uses` neighbours share a path.
    const unsigned way = (i * samples + sample % samples) / uses;
    for (unsigned plane = 0; plane < t.planes(); ++plane) {
      const Path path{static_cast<std::uint8_t>(plane),
                      static_cast<std::uint16_t>(way / t2_choices),
                      static_cast<std::uint16_t>(way % t2_choices)};
      entries.push_back({.entropy = routing.entropy_of(path),
                         .port = PortId{static_cast<std::uint8_t>(plane + 1)}});
    }
  }
  return core::EvProfile::create(entries).value();
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
