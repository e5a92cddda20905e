// The paths of a device that writes its own SRv6 headers: which carrier a packet to a GID gets on a
// port, by the routes of its configuration and the entropy of the path.
//
// A route is a list of uSIDs in which one may be a choice (the T1) and one may follow it (the T0,
// where there are several cables between the two). An entropy whose high half is the port and whose
// low half counts the choices names one of them, as in the EVs of a fabric (docs/fabric.md). Others
// get the choices in turn, in the order in which paths are prepared, so that as many paths as there
// are choices use each of them once.
#pragma once

#include <cstdint>
#include <unordered_map>
#include <vector>

#include "node/config.h"
#include "wire/ip_address.h"

namespace mrc::nic {

class WireTunnel {
 public:
  explicit WireTunnel(const node::DeviceConfig& config);

  // Remembers an entropy; at set-up only.
  void prepare(PortId port, std::uint32_t entropy);
  // False when no route leads there: the packet goes out plain.
  bool find_carrier(PortId port, const wire::IpAddress& gid, std::uint32_t entropy,
                    wire::IpAddress& carrier) const;

 private:
  static constexpr std::size_t kMaxKnown = 4'096;  // of a port; what comes later goes by its value

  unsigned choice_of(std::size_t port_index, std::uint32_t entropy, unsigned choices) const;

  std::vector<node::Srv6Route> routes_;  // longest prefix first
  std::vector<wire::UsidBlock> blocks_;
  std::vector<std::unordered_map<std::uint32_t, std::uint16_t>> known_;  // by port
  mutable wire::IpAddress last_gid_;
  mutable const node::Srv6Route* last_route_ = nullptr;
};

}  // namespace mrc::nic
