#include "address.h"

#include <arpa/inet.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netinet/in.h>

#include <algorithm>
#include <climits>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <optional>

namespace mrc::nccl {
namespace {

constexpr std::array<std::uint8_t, 12> kMappedPrefix{0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff};

struct FreeInterfaces {
  void operator()(ifaddrs* list) const { freeifaddrs(list); }
};
using Interfaces = std::unique_ptr<ifaddrs, FreeInterfaces>;

Interfaces all_interfaces() {
  ifaddrs* list = nullptr;
  return Interfaces(getifaddrs(&list) == 0 ? list : nullptr);
}

std::optional<Address> address_of(const sockaddr* name) {
  Address address;
  if (name == nullptr) return std::nullopt;
  if (name->sa_family == AF_INET) {
    sockaddr_in v4{};
    std::memcpy(&v4, name, sizeof v4);
    std::copy(kMappedPrefix.begin(), kMappedPrefix.end(), address.bytes.begin());
    std::memcpy(address.bytes.data() + kMappedPrefix.size(), &v4.sin_addr, sizeof v4.sin_addr);
    return address;
  }
  if (name->sa_family != AF_INET6) return std::nullopt;
  sockaddr_in6 v6{};
  std::memcpy(&v6, name, sizeof v6);
  std::memcpy(address.bytes.data(), &v6.sin6_addr, sizeof v6.sin6_addr);
  return address;
}

}  // namespace

bool Address::is_v4() const {
  return std::equal(kMappedPrefix.begin(), kMappedPrefix.end(), bytes.begin());
}

bool Address::is_loopback() const {
  if (is_v4()) return bytes[12] == 127;
  return std::all_of(bytes.begin(), bytes.end() - 1, [](auto byte) { return byte == 0; }) &&
         bytes[15] == 1;
}

bool Address::is_link_local() const {
  if (is_v4()) return bytes[12] == 169 && bytes[13] == 254;
  return bytes[0] == 0xfe && (bytes[1] & 0xc0) == 0x80;
}

SocketName socket_name(const Address& address, std::uint16_t port) {
  SocketName name;
  if (address.is_v4()) {
    sockaddr_in v4{};
    v4.sin_family = AF_INET;
    v4.sin_port = htons(port);
    std::memcpy(&v4.sin_addr, address.bytes.data() + kMappedPrefix.size(), sizeof v4.sin_addr);
    std::memcpy(&name.storage, &v4, sizeof v4);
    name.length = sizeof v4;
    return name;
  }
  sockaddr_in6 v6{};
  v6.sin6_family = AF_INET6;
  v6.sin6_port = htons(port);
  std::memcpy(&v6.sin6_addr, address.bytes.data(), sizeof v6.sin6_addr);
  std::memcpy(&name.storage, &v6, sizeof v6);
  name.length = sizeof v6;
  return name;
}

std::uint16_t bound_port(int descriptor) {
  SocketName name;
  name.length = sizeof name.storage;
  if (getsockname(descriptor, reinterpret_cast<sockaddr*>(&name.storage), &name.length) != 0)
    return 0;
  if (name.storage.ss_family == AF_INET) {
    sockaddr_in v4{};
    std::memcpy(&v4, &name.storage, sizeof v4);
    return ntohs(v4.sin_port);
  }
  sockaddr_in6 v6{};
  std::memcpy(&v6, &name.storage, sizeof v6);
  return ntohs(v6.sin6_port);
}

std::string to_text(const Address& address) {
  std::array<char, INET6_ADDRSTRLEN> text{};
  if (address.is_v4()) {
    inet_ntop(AF_INET, address.bytes.data() + kMappedPrefix.size(), text.data(), text.size());
  } else {
    inet_ntop(AF_INET6, address.bytes.data(), text.data(), text.size());
  }
  return text.data();
}

std::vector<Address> reachable_addresses(const Address& first, std::size_t limit) {
  std::vector<Address> found{first};
  if (first.is_loopback()) return found;
  const Interfaces interfaces = all_interfaces();
  for (const ifaddrs* at = interfaces.get(); at != nullptr; at = at->ifa_next) {
    if (found.size() >= limit) break;
    const std::optional<Address> address = address_of(at->ifa_addr);
    if (!address || (at->ifa_flags & IFF_UP) == 0) continue;
    if (address->is_v4() != first.is_v4() || address->is_loopback() || address->is_link_local())
      continue;
    if (std::find(found.begin(), found.end(), *address) == found.end()) found.push_back(*address);
  }
  return found;
}

std::string interface_of(const Address& address) {
  const Interfaces interfaces = all_interfaces();
  for (const ifaddrs* at = interfaces.get(); at != nullptr; at = at->ifa_next) {
    if (address_of(at->ifa_addr) == address) return at->ifa_name;
  }
  return {};
}

std::string pci_path_of(const std::string& interface) {
  if (interface.empty()) return {};
  std::array<char, PATH_MAX> path{};
  const std::string link = "/sys/class/net/" + interface + "/device";
  return realpath(link.c_str(), path.data()) == nullptr ? std::string() : path.data();
}

}  // namespace mrc::nccl
