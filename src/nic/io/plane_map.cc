#include "nic/io/plane_map.h"

namespace mrc::nic {

PlaneMap::PlaneMap(const node::DeviceConfig& config) : gid_of_address_(config.planes.size()) {
  for (const node::PlaneConfig& plane : config.planes) {
    networks_.push_back({.address = plane.address, .prefix_bits = plane.prefix_bits});
  }
  for (const node::PeerEntry& peer : config.peers) {
    planes_of_gid_[peer.gid] = peer.planes;
    for (std::size_t i = 0; i < peer.planes.size() && i < gid_of_address_.size(); ++i) {
      gid_of_address_[i][peer.planes[i]] = peer.gid;
    }
  }
}

std::optional<wire::IpAddress> PlaneMap::translate(const Network& from, const Network& to,
                                                   const wire::IpAddress& address) const {
  if (!os::same_network(from.address, address, from.prefix_bits)) return std::nullopt;
  // A host part longer than what `to` has room for must begin with zeros there.
  const wire::IpAddress host =
      os::join_address(wire::IpAddress{.is_v4 = address.is_v4}, from.prefix_bits, address);
  const wire::IpAddress none{.is_v4 = address.is_v4};
  if (!os::same_network(host, none, to.prefix_bits)) return std::nullopt;
  return os::join_address(to.address, to.prefix_bits, host);
}

std::optional<wire::IpAddress> PlaneMap::address_on(PortId port, const wire::IpAddress& gid) const {
  const std::size_t index = static_cast<std::size_t>(port) - 1;
  if (index >= networks_.size()) return std::nullopt;
  if (!planes_of_gid_.empty()) {
    const auto found = planes_of_gid_.find(gid);
    if (found != planes_of_gid_.end()) {
      if (index >= found->second.size()) return std::nullopt;
      return found->second[index];
    }
  }
  return translate(networks_[0], networks_[index], gid);
}

std::optional<wire::IpAddress> PlaneMap::gid_of(PortId port, const wire::IpAddress& address) const {
  const std::size_t index = static_cast<std::size_t>(port) - 1;
  if (index >= networks_.size()) return std::nullopt;
  const auto& table = gid_of_address_[index];
  if (!table.empty()) {
    const auto found = table.find(address);
    if (found != table.end()) return found->second;
  }
  return translate(networks_[index], networks_[0], address);
}

}  // namespace mrc::nic
