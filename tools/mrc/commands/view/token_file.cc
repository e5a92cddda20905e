#include "commands/view/token_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <string_view>

#include "commands/view/serve.h"
#include "fabric/input_error.h"
#include "os/descriptor.h"

namespace mrc::tool::view_tool {
namespace {

using fabric::InputError;

constexpr std::size_t kMinTokenBytes = 16;
constexpr std::size_t kMaxTokenBytes = 64;
constexpr std::string_view kTokenLetters = "0123456789abcdefghijklmnopqrstuvwxyz";

[[noreturn]] void refuse(const std::string& path, const std::string& why) {
  throw InputError("--token-file " + path + ": " + why);
}

// Whoever reads it may break the lab: nobody else does.
std::string write_token(const std::string& path) {
  std::string token = fresh_token();
  const std::string line = token + '\n';
  constexpr int kFlags = O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW;
  const os::Descriptor file(::open(path.c_str(), kFlags, S_IRUSR | S_IWUSR));
  if (!file.valid() || ::write(file.get(), line.data(), line.size()) != std::ssize(line))
    refuse(path, std::string("cannot be written: ") + std::strerror(errno));
  return token;
}

// Who chose the token knows it: a file of somebody else is not taken.
void check_owner(const os::Descriptor& file, const std::string& path) {
  struct stat about = {};
  if (::fstat(file.get(), &about) != 0) refuse(path, std::strerror(errno));
  if (!S_ISREG(about.st_mode)) refuse(path, "is no regular file; name another one");
  if (about.st_uid != ::geteuid())
    refuse(path, "belongs to somebody else, who would know the token; name another one");
  if ((about.st_mode & (S_IRWXG | S_IRWXO)) != 0)
    refuse(path, "others than you have access to it; remove it, and a new one is made");
}

}  // namespace

std::string kept_token(const std::string& path) {
  // Not blocking: to open a pipe would wait for its writer.
  constexpr int kFlags = O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK;
  const os::Descriptor file(::open(path.c_str(), kFlags));
  if (!file.valid() && errno == ENOENT) return write_token(path);
  if (!file.valid() && errno == ELOOP) refuse(path, "is a symbolic link; name the file itself");
  if (!file.valid()) refuse(path, std::string("cannot be read: ") + std::strerror(errno));
  check_owner(file, path);
  std::array<char, kMaxTokenBytes + 2> bytes = {};
  const ssize_t got = ::read(file.get(), bytes.data(), bytes.size());
  std::string_view token(bytes.data(), got > 0 ? static_cast<std::size_t>(got) : 0);
  while (token.ends_with('\n') || token.ends_with(' '))
    token.remove_suffix(1);
  if (token.size() < kMinTokenBytes || token.size() > kMaxTokenBytes ||
      token.find_first_not_of(kTokenLetters) != std::string_view::npos)
    refuse(path, "holds no token (16 to 64 letters and digits); remove it, and a new one is made");
  return std::string(token);
}

}  // namespace mrc::tool::view_tool
