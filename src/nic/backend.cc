#include "nic/backend.h"

#include "nic/udp_backend.h"
#include "nic/wire_backend.h"

namespace mrc::nic {

BackendResult open_backend(const DeviceConfig& config) {
  if (config.planes.empty() || config.planes.size() > kMaxPorts) {
    return {.backend = nullptr, .error = config.name + ": a device has 1 to 16 planes"};
  }
  return config.backend == BackendKind::kWire ? open_wire_backend(config)
                                              : open_udp_backend(config);
}

}  // namespace mrc::nic
