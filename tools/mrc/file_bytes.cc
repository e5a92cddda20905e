#include "file_bytes.h"

#include <fcntl.h>
#include <fmt/core.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "failure.h"
#include "os/descriptor.h"

namespace mrc::tool {
namespace {

constexpr std::size_t kMaxFileBytes = std::size_t{1} << 30;
constexpr std::size_t kReadBytes = 1 << 20;

}  // namespace

std::vector<std::byte> read_file(const std::string& path) {
  const os::Descriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!file.valid()) throw Failure(fmt::format("{}: {}", path, std::strerror(errno)));
  std::vector<std::byte> bytes;
  for (;;) {
    const std::size_t before = bytes.size();
    if (before > kMaxFileBytes) {
      throw Failure(fmt::format("{}: larger than 1 GiB; a part of it will do", path));
    }
    bytes.resize(before + kReadBytes);
    const ssize_t got = ::read(file.get(), bytes.data() + before, kReadBytes);
    if (got < 0 && errno != EINTR) {
      throw Failure(fmt::format("{}: {}", path, std::strerror(errno)));
    }
    bytes.resize(before + static_cast<std::size_t>(std::max<ssize_t>(got, 0)));
    if (got == 0) return bytes;
  }
}

}  // namespace mrc::tool
