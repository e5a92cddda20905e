// The network interfaces of this machine: which addresses they have, whether they are up, and news
// of changes.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "os/descriptor.h"
#include "wire/ip_address.h"

namespace mrc::os {

struct InterfaceAddress {
  std::string name;
  unsigned index = 0;
  bool up = false;  // administratively up and with a carrier
  bool loopback = false;
  wire::IpAddress address;
  unsigned prefix_bits = 0;
};

// One entry per address; an interface without addresses has none. `known` is false where the system
// does not tell (some sandboxes).
struct InterfaceList {
  bool known = false;
  std::vector<InterfaceAddress> addresses;
};
InterfaceList list_interfaces();

// The entry that carries `address`: by being it, or, on a loopback interface, by its network
// holding it. With a name only entries of that interface count. Null when there is none.
const InterfaceAddress* find_interface(const InterfaceList& list, const std::string& name,
                                       const wire::IpAddress& address);

// The address of an interface that stands for a plane: IPv4 before IPv6, wide before link-local.
const InterfaceAddress* choose_address(const InterfaceList& list, const std::string& name,
                                       bool allow_v4, bool allow_v6);

bool interface_exists(const std::string& name);

// 0 when the system does not tell.
std::uint32_t interface_mtu(const std::string& name);
std::uint64_t interface_bits_per_second(const std::string& name);

// Tells that something about links or addresses changed, not what.
class InterfaceWatch {
 public:
  // Without a descriptor when the system refuses; the caller then looks once a second.
  InterfaceWatch();
  int descriptor() const { return socket_.get(); }
  bool works() const { return socket_.valid(); }
  // Reads everything that waits; true when there was something.
  bool changed();

 private:
  Descriptor socket_;
};

}  // namespace mrc::os
