// Where a device is on each plane: GID <-> plane address, by rule or by table.
//
// The rule: the host part of an address is the same on all planes. A GID is an address of the first
// plane; its address on plane p is the network of plane p with the GID's host part. Peers listed in
// the configuration are looked up instead.
#pragma once

#include <netinet/in.h>
#include <sys/socket.h>

#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <vector>

#include "base/types.h"
#include "nic/config.h"
#include "wire/ip_address.h"

namespace mrc::nic {

// An address and port as the socket calls take it.
struct SocketAddress {
  union {
    sockaddr any;
    sockaddr_in v4;
    sockaddr_in6 v6;
  } value{};
  socklen_t length = 0;
};
// `scope` is the interface index that a link-local IPv6 address needs; ignored otherwise.
SocketAddress make_socket_address(const wire::IpAddress& address, std::uint16_t udp_port,
                                  unsigned scope);
wire::IpAddress address_of(const SocketAddress& from);
std::uint16_t udp_port_of(const SocketAddress& from);

// The first `bits` of `network`, the rest of `host`.
wire::IpAddress join_address(const wire::IpAddress& network, unsigned bits,
                             const wire::IpAddress& host);
bool same_network(const wire::IpAddress& a, const wire::IpAddress& b, unsigned bits);
unsigned address_bits(const wire::IpAddress& address);
bool is_link_local(const wire::IpAddress& address);

struct AddressOrder {
  bool operator()(const wire::IpAddress& a, const wire::IpAddress& b) const {
    return a.is_v4 != b.is_v4 ? a.is_v4 : a.bytes < b.bytes;
  }
};

class PlaneMap {
 public:
  explicit PlaneMap(const DeviceConfig& config);

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
  std::map<wire::IpAddress, std::vector<wire::IpAddress>, AddressOrder> planes_of_gid_;
  // One for each plane.
  std::vector<std::map<wire::IpAddress, wire::IpAddress, AddressOrder>> gid_of_address_;
};

}  // namespace mrc::nic
