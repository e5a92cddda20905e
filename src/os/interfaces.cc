#include "os/interfaces.h"

#include <fcntl.h>
#include <ifaddrs.h>
#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <net/if.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

#include <array>
#include <bit>
#include <cerrno>
#include <cstdlib>
#include <cstring>

#include "os/socket_address.h"

namespace mrc::os {
namespace {

constexpr std::uint64_t kBitsPerMegabit = 1'000'000;

SocketAddress copy_sockaddr(const sockaddr* from) {
  SocketAddress out;
  out.length = from->sa_family == AF_INET ? sizeof(sockaddr_in) : sizeof(sockaddr_in6);
  std::memcpy(&out.value, from, out.length);
  return out;
}

unsigned prefix_of(const sockaddr* mask, unsigned whole) {
  if (mask == nullptr) return whole;
  SocketAddress copy = copy_sockaddr(mask);
  // The family field of a mask is not always filled in.
  copy.value.any.sa_family = whole == 32 ? AF_INET : AF_INET6;
  unsigned bits = 0;
  for (const std::uint8_t byte : address_of(copy).bytes)
    bits += static_cast<unsigned>(std::popcount(byte));
  return bits;
}

}  // namespace

InterfaceList list_interfaces() {
  InterfaceList list;
  ifaddrs* first = nullptr;
  if (getifaddrs(&first) != 0) return list;
  list.known = true;
  for (const ifaddrs* entry = first; entry != nullptr; entry = entry->ifa_next) {
    if (entry->ifa_addr == nullptr) continue;
    const int family = entry->ifa_addr->sa_family;
    if (family != AF_INET && family != AF_INET6) continue;
    InterfaceAddress found;
    found.name = entry->ifa_name;
    found.index = if_nametoindex(entry->ifa_name);
    found.up = (entry->ifa_flags & IFF_UP) != 0 && (entry->ifa_flags & IFF_RUNNING) != 0;
    found.loopback = (entry->ifa_flags & IFF_LOOPBACK) != 0;
    found.address = address_of(copy_sockaddr(entry->ifa_addr));
    found.prefix_bits = prefix_of(entry->ifa_netmask, family == AF_INET ? 32 : 128);
    list.addresses.push_back(std::move(found));
  }
  freeifaddrs(first);
  return list;
}

const InterfaceAddress* find_interface(const InterfaceList& list, const std::string& name,
                                       const wire::IpAddress& address) {
  for (const InterfaceAddress& entry : list.addresses) {
    if (!name.empty() && entry.name != name) continue;
    if (entry.address == address) return &entry;
    if (entry.loopback && same_network(entry.address, address, entry.prefix_bits)) return &entry;
  }
  return nullptr;
}

const InterfaceAddress* choose_address(const InterfaceList& list, const std::string& name,
                                       bool allow_v4, bool allow_v6) {
  const InterfaceAddress* best = nullptr;
  const auto rank = [](const InterfaceAddress& entry) {
    if (entry.address.is_v4) return 0;
    return is_link_local(entry.address) ? 2 : 1;
  };
  for (const InterfaceAddress& entry : list.addresses) {
    if (entry.name != name) continue;
    if (entry.address.is_v4 ? !allow_v4 : !allow_v6) continue;
    if (best == nullptr || rank(entry) < rank(*best)) best = &entry;
  }
  return best;
}

bool interface_exists(const std::string& name) { return if_nametoindex(name.c_str()) != 0; }

std::uint32_t interface_mtu(const std::string& name) {
  ifreq request{};
  if (name.empty() || name.size() >= sizeof(request.ifr_name)) return 0;
  std::memcpy(request.ifr_name, name.data(), name.size());
  const Descriptor socket(::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  if (!socket.valid() || ::ioctl(socket.get(), SIOCGIFMTU, &request) != 0) return 0;
  return request.ifr_mtu > 0 ? static_cast<std::uint32_t>(request.ifr_mtu) : 0;
}

std::uint64_t interface_bits_per_second(const std::string& name) {
  if (name.empty() || name.find('/') != std::string::npos) return 0;
  const std::string path = "/sys/class/net/" + name + "/speed";
  const Descriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  std::array<char, 32> text{};
  if (!file.valid() || ::read(file.get(), text.data(), text.size() - 1) <= 0) return 0;
  const long megabits = std::strtol(text.data(), nullptr, 10);
  return megabits > 0 ? static_cast<std::uint64_t>(megabits) * kBitsPerMegabit : 0;
}

InterfaceWatch::InterfaceWatch()
    : socket_(::socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC | SOCK_NONBLOCK, NETLINK_ROUTE)) {
  sockaddr_nl address{};
  address.nl_family = AF_NETLINK;
  address.nl_groups = RTMGRP_LINK | RTMGRP_IPV4_IFADDR | RTMGRP_IPV6_IFADDR;
  void* const untyped = &address;
  if (!socket_.valid()) return;
  if (::bind(socket_.get(), static_cast<sockaddr*>(untyped), sizeof(address)) != 0) {
    socket_.close();
  }
}

bool InterfaceWatch::changed() {
  if (!works()) return false;
  std::array<std::byte, 8192> message;
  bool any = false;
  // Bounded: a flood of changes is taken up again at the next call.
  for (int i = 0; i < 64; ++i) {
    const ssize_t length = ::recv(socket_.get(), message.data(), message.size(), MSG_DONTWAIT);
    // An overrun socket (ENOBUFS) has lost messages, which is a change as well.
    if (length <= 0 && (length == 0 || errno != ENOBUFS)) break;
    any = true;
  }
  return any;
}

}  // namespace mrc::os
