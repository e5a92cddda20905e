// Network namespaces by name, as `ip netns` has them, and what a lab does to the interfaces in
// them.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "os/descriptor.h"

namespace mrc::lab {

struct InterfaceCounters {
  std::uint64_t sent_frames = 0;
  std::uint64_t sent_bytes = 0;
  std::uint64_t send_drops = 0;
};

// An existing namespace. Sockets in it are opened once, so that nothing has to enter it later.
class NetNamespace {
 public:
  // Throws std::system_error.
  explicit NetNamespace(std::string name);

  const std::string& name() const { return name_; }
  // Takes an interface up or down. Throws std::system_error.
  void set_up(const std::string& interface, bool up) const;
  // Up and with somebody up at the other end.
  bool has_carrier(const std::string& interface) const;
  // Of all interfaces, by name; empty when the kernel does not tell.
  std::map<std::string, InterfaceCounters> counters() const;
  // A packet socket that sees whole frames of `protocol` (ETH_P_*) on one interface; never blocks.
  os::Descriptor packet_socket(const std::string& interface, int protocol) const;

 private:
  std::string name_;
  os::Descriptor interfaces_;  // for ioctl
  os::Descriptor netlink_;
};

// Moves the calling thread into a namespace. Throws std::system_error.
void enter_namespace(const std::string& name);
// Names that begin with `prefix`, sorted.
std::vector<std::string> list_namespaces(const std::string& prefix);
// Removes them; what runs in one keeps it alive until it ends. False when one could not be removed.
bool remove_namespaces(const std::string& prefix);

}  // namespace mrc::lab
