// The host ends of cables that are interfaces: hosts are network namespaces, and one end of each of
// their veth pairs is ours, in a namespace of the switches.
//
// A cut cable is our end taken down, so the host's interface loses its carrier. Hosts keep to their
// rate by themselves (the kernel holds their frames back), so what comes in is taken at once.
#pragma once

#include <cstdint>
#include <vector>

#include "lab/host_ports.h"
#include "lab/netns_world.h"
#include "os/descriptor.h"

namespace mrc::lab {

class InterfaceCables final : public HostPorts {
 public:
  // Throws std::runtime_error when the system refuses.
  InterfaceCables(const fabric::Routing& routing, FramePool& pool, const std::string& prefix);
  ~InterfaceCables() override;
  InterfaceCables(const InterfaceCables&) = delete;
  InterfaceCables& operator=(const InterfaceCables&) = delete;

  int descriptor() const override { return epoll_.get(); }
  void poll() override;
  void read(Picoseconds now) override;
  void flush() override;
  bool can_read() const override;
  void set_carrier(unsigned plane, unsigned host, bool up) override;
  unsigned connections(unsigned, unsigned) const override { return 0; }  // the kernel's business
  bool deliver(unsigned plane, unsigned host, FrameId frame) override;
  const NetnsPlan& plan() const { return world_.plan(); }

 private:
  struct Port {
    os::Descriptor socket;
    bool up = true;
    bool readable = false;
    std::vector<FrameId> out;
  };

  void read_port(unsigned number, Picoseconds now);

  unsigned planes_;
  FramePool* pool_;
  NetnsWorld world_;
  os::Descriptor epoll_;
  std::vector<Port> ports_;  // by host, then plane
};

}  // namespace mrc::lab
