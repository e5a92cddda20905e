// IP addresses as GIDs write them: 16 bytes, IPv4 in the mapped form ::ffff:a.b.c.d.
#pragma once

#include <sys/socket.h>

#include <array>
#include <cstdint>
#include <string>
#include <vector>

namespace mrc::nccl {

struct Address {
  std::array<std::uint8_t, 16> bytes{};

  bool is_v4() const;
  bool is_loopback() const;
  bool is_link_local() const;
  friend bool operator==(const Address&, const Address&) = default;
};

// An address and a TCP port as the socket calls take it.
struct SocketName {
  sockaddr_storage storage{};
  socklen_t length = 0;

  const sockaddr* get() const { return reinterpret_cast<const sockaddr*>(&storage); }
};
SocketName socket_name(const Address& address, std::uint16_t port);
// The port of a bound socket, or 0.
std::uint16_t bound_port(int descriptor);

std::string to_text(const Address& address);

// Where a peer may reach a listener of this host: `first`, then further addresses of the same IP
// version on interfaces that are up, in case the way to the first one is down. Loopback stays
// alone.
std::vector<Address> reachable_addresses(const Address& first, std::size_t limit);

// The interface that carries `address`; empty when none does.
std::string interface_of(const Address& address);
// Where the interface's PCI device is in /sys; empty for virtual ones.
std::string pci_path_of(const std::string& interface);

}  // namespace mrc::nccl
