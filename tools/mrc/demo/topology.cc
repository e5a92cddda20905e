#include "demo/topology.h"

#include <algorithm>
#include <vector>

namespace mrc::demo {
namespace {

constexpr unsigned kHostsPerLeaf = 4;
constexpr unsigned kSpines = 8;
constexpr std::uint64_t kHostPrefix = 0xFD00'0000'0000'0000;
// Source ports of data come from the dynamic range.
constexpr std::uint32_t kFirstSourcePort = 0xC000;

unsigned plane_index(PortId plane) { return static_cast<unsigned>(plane) - 1; }

}  // namespace

Topology::Topology(unsigned hosts, unsigned planes)
    : hosts_(hosts),
      planes_(planes),
      leaves_(std::max(2U, (hosts + kHostsPerLeaf - 1) / kHostsPerLeaf)),
      spines_(kSpines) {}

Path Topology::path(EvIndex ev) const {
  const auto index = static_cast<unsigned>(ev);
  return {.plane = static_cast<PortId>(index % planes_ + 1), .spine = index / planes_};
}

core::EvProfile Topology::make_profile() const {
  std::vector<core::EvEntry> entries;
  for (unsigned i = 0; i < paths(); ++i) {
    const Path p = path(EvIndex{static_cast<std::uint16_t>(i)});
    const auto plane = static_cast<std::uint32_t>(p.plane);
    entries.push_back({.entropy = plane << 16 | (kFirstSourcePort + i), .port = p.plane});
  }
  return core::EvProfile::create(entries).value();
}

wire::IpAddress Topology::carrier(const Flow& flow, const Path& path) const {
  return wire::path_carrier(usid_plan_,
                            wire::PathAcrossT1{.plane = path.plane,
                                               .source_t0 = leaf_of(flow.source),
                                               .t1 = path.spine,
                                               .destination_t0 = leaf_of(flow.destination),
                                               .host_port = leaf_port_of(flow.destination)})
      .value();
}

LinkId Topology::host_to_leaf(unsigned host, PortId plane) const {
  return LinkId{2 * (plane_index(plane) * hosts_ + host)};
}

LinkId Topology::leaf_to_host(unsigned host, PortId plane) const {
  return LinkId{2 * (plane_index(plane) * hosts_ + host) + 1};
}

unsigned Topology::trunk_index(const Trunk& trunk) const {
  const unsigned on_plane = trunk.leaf * spines_ + trunk.spine;
  return planes_ * hosts_ + plane_index(trunk.plane) * leaves_ * spines_ + on_plane;
}

LinkId Topology::leaf_to_spine(const Trunk& trunk) const { return LinkId{2 * trunk_index(trunk)}; }

LinkId Topology::spine_to_leaf(const Trunk& trunk) const {
  return LinkId{2 * trunk_index(trunk) + 1};
}

wire::IpAddress host_address(unsigned host) {
  return wire::ipv6_address(kHostPrefix, std::uint64_t{host} + 1);
}

Address endpoint_address(const wire::IpAddress& address) {
  Address result;
  for (std::size_t i = 0; i < 8; ++i) {
    result.high = result.high << 8 | address.bytes[i];
    result.low = result.low << 8 | address.bytes[i + 8];
  }
  return result;
}

}  // namespace mrc::demo
