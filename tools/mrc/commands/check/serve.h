// The other end of `mrc check --peer`: tells what this host's device is, answers probes, echoes
// datagrams, and takes part in a transfer. One visitor at a time; who says anything else is turned
// away with a line.
#pragma once

#include <cstdint>

#include "exit_code.h"
#include "node/config.h"

namespace mrc::tool::check {

constexpr std::uint16_t kCheckPort = 18'519;

struct ServeOptions {
  std::uint16_t port = kCheckPort;  // 0: any
  bool once = false;                // until one transfer is done
  double wait_s = 0;                // end when nobody comes for so long; 0: never
  double timeout_s = 10;
  bool json = false;  // one line that says where
};

// Until Ctrl-C. Throws Failure when the port is taken or the device does not open.
ExitCode serve(const node::DeviceConfig& config, const ServeOptions& options);

}  // namespace mrc::tool::check
