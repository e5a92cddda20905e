// All bytes of a file, as commands that read captures want them.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

namespace mrc::tool {

// Throws a Failure when it cannot be read or is larger than 1 GiB.
std::vector<std::byte> read_file(const std::string& path);

}  // namespace mrc::tool
