// IP addresses as the socket calls take them, and what prefixes make of them.
#pragma once

#include <netinet/in.h>
#include <sys/socket.h>

#include <cstdint>

#include "wire/ip_address.h"

namespace mrc::os {

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

}  // namespace mrc::os
