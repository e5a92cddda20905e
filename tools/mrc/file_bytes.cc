#include "file_bytes.h"

#include <fcntl.h>
#include <fmt/core.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <new>

#include "failure.h"
#include "os/descriptor.h"

namespace mrc::tool {
namespace {

constexpr std::size_t kReadBytes = 1 << 20;

[[noreturn]] void refuse_size(const std::string& path, std::size_t most) {
  throw Failure(fmt::format("{}: larger than {} MiB", path, most >> 20));
}

[[noreturn]] void refuse(const std::string& path, int reason) {
  throw Failure(fmt::format("{}: {}", path, std::strerror(reason)));
}

std::vector<std::byte> read_all(const os::Descriptor& file, const std::string& path,
                                std::size_t most) {
  struct stat facts = {};
  if (::fstat(file.get(), &facts) != 0) refuse(path, errno);
  const auto size = static_cast<std::size_t>(S_ISREG(facts.st_mode) ? facts.st_size : 0);
  if (size > most) refuse_size(path, most);
  std::vector<std::byte> bytes;
  bytes.reserve(size + kReadBytes);
  for (;;) {
    const std::size_t before = bytes.size();
    if (before > most) refuse_size(path, most);
    bytes.resize(before + kReadBytes);
    const ssize_t got = ::read(file.get(), bytes.data() + before, kReadBytes);
    if (got < 0 && errno != EINTR) refuse(path, errno);
    bytes.resize(before + static_cast<std::size_t>(std::max<ssize_t>(got, 0)));
    if (got == 0) return bytes;
  }
}

}  // namespace

std::vector<std::byte> read_file(const std::string& path, std::size_t most) {
  const os::Descriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!file.valid()) refuse(path, errno);
  try {
    return read_all(file, path, most);
  } catch (const std::bad_alloc&) {
    refuse(path, ENOMEM);
  }
}

}  // namespace mrc::tool
