#include "instance_lock.h"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <stdexcept>
#include <utility>

namespace mrc::tool {

InstanceLock::InstanceLock(const std::string& path) {
  const auto refuse = [&] { throw std::runtime_error(path + ": " + std::strerror(errno)); };
  os::Descriptor file(::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0644));
  if (!file.valid()) refuse();
  if (::flock(file.get(), LOCK_EX | LOCK_NB) != 0) {
    if (errno != EWOULDBLOCK) refuse();
    std::array<char, 16> text{};
    if (::pread(file.get(), text.data(), text.size() - 1, 0) > 0) holder_ = std::atoi(text.data());
    return;
  }
  const std::string pid = std::to_string(::getpid()) + "\n";
  if (::ftruncate(file.get(), 0) != 0 ||
      ::pwrite(file.get(), pid.data(), pid.size(), 0) != static_cast<ssize_t>(pid.size())) {
    refuse();
  }
  file_ = std::move(file);
}

}  // namespace mrc::tool
