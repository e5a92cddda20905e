// Where a device is on each plane: GID <-> plane address, by rule or by table.
//
// The rule: the host part of an address is the same on all planes. A GID is an address of the first
// plane; its address on plane p is the network of plane p with the GID's host part. Peers listed in
// the configuration are looked up instead.
#pragma once

#include <map>
#include <optional>
#include <vector>

#include "base/types.h"
#include "node/config.h"
#include "os/socket_address.h"
#include "wire/ip_address.h"

namespace mrc::nic {

class PlaneMap {
 public:
  explicit PlaneMap(const node::DeviceConfig& config);

  // Nothing when the GID is of another network or IP version, or its host part too long.
  std::optional<wire::IpAddress> address_on(PortId port, const wire::IpAddress& gid) const;
  std::optional<wire::IpAddress> gid_of(PortId port, const wire::IpAddress& address) const;

 private:
  struct Network {
    wire::IpAddress address;
    unsigned prefix_bits = 0;
  };
  std::optional<wire::IpAddress> translate(const Network& from, const Network& to,
                                           const wire::IpAddress& address) const;

  std::vector<Network> networks_;
  std::map<wire::IpAddress, std::vector<wire::IpAddress>, os::AddressOrder> planes_of_gid_;
  // One for each plane.
  std::vector<std::map<wire::IpAddress, wire::IpAddress, os::AddressOrder>> gid_of_address_;
};

}  // namespace mrc::nic
