#include "os/socket_address.h"

#include <cstring>

namespace mrc::os {
namespace {

// The bits of byte `index` that belong to a prefix of `bits` bits.
std::uint8_t prefix_mask(std::size_t index, unsigned bits) {
  const std::size_t first = index * 8;
  if (bits >= first + 8) return 0xFF;
  if (bits <= first) return 0;
  return static_cast<std::uint8_t>(0xFF00U >> (bits - first));
}

}  // namespace

bool is_link_local(const wire::IpAddress& address) {
  return !address.is_v4 && address.bytes[0] == 0xFE && (address.bytes[1] & 0xC0) == 0x80;
}

SocketAddress make_socket_address(const wire::IpAddress& address, std::uint16_t udp_port,
                                  unsigned scope) {
  SocketAddress out;
  if (address.is_v4) {
    out.value.v4.sin_family = AF_INET;
    out.value.v4.sin_port = htons(udp_port);
    std::memcpy(&out.value.v4.sin_addr, address.bytes.data(), 4);
    out.length = sizeof(sockaddr_in);
  } else {
    out.value.v6.sin6_family = AF_INET6;
    out.value.v6.sin6_port = htons(udp_port);
    std::memcpy(&out.value.v6.sin6_addr, address.bytes.data(), 16);
    out.value.v6.sin6_scope_id = is_link_local(address) ? scope : 0;
    out.length = sizeof(sockaddr_in6);
  }
  return out;
}

wire::IpAddress address_of(const SocketAddress& from) {
  wire::IpAddress address;
  address.is_v4 = from.value.any.sa_family == AF_INET;
  if (address.is_v4) {
    std::memcpy(address.bytes.data(), &from.value.v4.sin_addr, 4);
  } else {
    std::memcpy(address.bytes.data(), &from.value.v6.sin6_addr, 16);
  }
  return address;
}

std::uint16_t udp_port_of(const SocketAddress& from) {
  const bool is_v4 = from.value.any.sa_family == AF_INET;
  return ntohs(is_v4 ? from.value.v4.sin_port : from.value.v6.sin6_port);
}

unsigned address_bits(const wire::IpAddress& address) { return address.is_v4 ? 32 : 128; }

wire::IpAddress join_address(const wire::IpAddress& network, unsigned bits,
                             const wire::IpAddress& host) {
  wire::IpAddress out = network;
  for (std::size_t i = 0; i < address_bits(network) / 8; ++i) {
    const std::uint8_t mask = prefix_mask(i, bits);
    out.bytes[i] = static_cast<std::uint8_t>((network.bytes[i] & mask) | (host.bytes[i] & ~mask));
  }
  return out;
}

bool same_network(const wire::IpAddress& a, const wire::IpAddress& b, unsigned bits) {
  return a.is_v4 == b.is_v4 &&
         join_address(a, bits, wire::IpAddress{}) == join_address(b, bits, wire::IpAddress{});
}

}  // namespace mrc::os
