// The back end over UDP sockets: any interface, no privileges.
#pragma once

#include "nic/backend.h"

namespace mrc::nic {

BackendResult open_udp_backend(const DeviceConfig& config);

}  // namespace mrc::nic
