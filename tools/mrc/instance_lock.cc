#include "instance_lock.h"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <stdexcept>
#include <string_view>
#include <system_error>
#include <utility>

namespace mrc::tool {
namespace {

// 0 for what is no process: signals to 0, 1 and less go to many.
int process_in(std::string_view text) {
  int process = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), process);
  const bool whole = error == std::errc{} && end != text.data() + text.size() && *end == '\n';
  return whole && process > 1 ? process : 0;
}

}  // namespace

InstanceLock::InstanceLock(const std::string& path) {
  const auto refuse = [&] { throw std::runtime_error(path + ": " + std::strerror(errno)); };
  os::Descriptor file(::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0644));
  if (!file.valid()) refuse();
  if (::flock(file.get(), LOCK_EX | LOCK_NB) != 0) {
    if (errno != EWOULDBLOCK) refuse();
    std::array<char, 16> text{};
    if (::pread(file.get(), text.data(), text.size() - 1, 0) > 0) holder_ = process_in(text.data());
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
