// The back end of whole frames, Ethernet first: over virtual cables to a virtual switch or another
// device, or over interfaces of the host.
#pragma once

#include "nic/io/backend.h"

namespace mrc::nic {

BackendResult open_wire_backend(const node::DeviceConfig& config);

}  // namespace mrc::nic
