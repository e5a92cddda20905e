// A network interface as a cable: whole frames through a packet socket, which needs CAP_NET_RAW.
//
// The socket stays open while the interface is down, since closing one waits for the kernel's
// readers; it is opened anew only when the interface is another one of the same name. The kernel
// hands over frames for our UDP port alone, so processes of one host share the interface.
#pragma once

#include <cstdint>
#include <string>

#include "nic/io/wire/wire_cable.h"
#include "os/descriptor.h"

namespace mrc::nic {

struct InterfaceCableOptions {
  std::string interface;
  bool is_v4 = false;
  std::uint16_t udp_port = 0;  // of this process
  // What may wait in the kernel, so that a full interface is felt here and not lost behind it.
  std::uint32_t send_buffer_bytes = 0;
};

class WireInterfaceCable final : public WireCable {
 public:
  // The text of an error, empty when there is none. The interface must exist.
  std::string open(InterfaceCableOptions options);

  bool advance(TimeNs now) override;
  bool connected() const override { return up_; }
  bool lost() override;
  TimeNs next_attempt() const override { return kNever; }  // the kernel tells of changes
  int connection() const override { return socket_.get(); }

 private:
  // Opens the socket on the interface as it is now. False with errno when that fails.
  bool attach();
  bool has_carrier() const;
  void take_down(TimeNs now) override;
  void forget_error();

  InterfaceCableOptions options_;
  os::Descriptor socket_;
  unsigned index_ = 0;  // of the interface the socket is bound to
  bool up_ = false;
};

}  // namespace mrc::nic
