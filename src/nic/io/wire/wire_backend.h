// The back end over virtual cables: whole frames, Ethernet first, to a virtual switch or to another
// device.
#pragma once

#include "nic/io/backend.h"

namespace mrc::nic {

BackendResult open_wire_backend(const node::DeviceConfig& config);

}  // namespace mrc::nic
