// The dialect of the wire that a device of this machine speaks.
#pragma once

#include <string>

namespace mrc::tool {

// By the configuration, as wire::dialect_text() has it. Without a name: of the first device.
std::string spoken_dialect(const std::string& device);

}  // namespace mrc::tool
