#include "spoken_dialect.h"

#include "node/config.h"

namespace mrc::tool {

std::string spoken_dialect(const std::string& device) {
  for (const node::DeviceConfig& config : node::load_config().devices) {
    if (device.empty() || config.name == device) {
      return std::string(wire::dialect_text(config.dialect).view());
    }
  }
  return {};
}

}  // namespace mrc::tool
