// The back end over UDP sockets: any interface, no privileges.
#pragma once

#include "nic/io/backend.h"

namespace mrc::nic {

BackendResult open_udp_backend(const node::DeviceConfig& config);

}  // namespace mrc::nic
