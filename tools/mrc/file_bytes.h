// All bytes of a file, as commands that read captures and recordings want them.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

namespace mrc::tool {

constexpr std::size_t kMaxCaptureBytes = std::size_t{1} << 30;

// Throws a Failure when it cannot be read, or is larger than `most`: at once where its size is
// known, and after so many bytes where it is not.
std::vector<std::byte> read_file(const std::string& path, std::size_t most = kMaxCaptureBytes);

}  // namespace mrc::tool
