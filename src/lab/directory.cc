#include "lab/directory.h"

#include <fcntl.h>
#include <fmt/core.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <stdexcept>
#include <string>
#include <system_error>
#include <utility>

#include "fabric/input_error.h"
#include "lab/net_namespace.h"
#include "os/environment.h"

namespace mrc::lab {
namespace {

constexpr std::size_t kMaxName = 32;

[[noreturn]] void fail(const std::string& what) {
  throw std::system_error(errno, std::generic_category(), what);
}

// False when there is nothing to make it in.
bool make_folder(const std::string& path) {
  if (::mkdir(path.c_str(), 0700) == 0 || errno == EEXIST) return true;
  if (errno != ENOENT) fail(path);
  return false;
}

// A folder in /tmp that somebody else made is no place for sockets. False when it was removed in
// this moment.
bool make_base(const std::string& path) {
  const auto parent = std::filesystem::path(path).parent_path();
  std::error_code error;
  if (!parent.empty()) std::filesystem::create_directories(parent, error);
  if (error) {
    errno = error.value();
    fail(path);
  }
  struct stat info {};
  if (!make_folder(path)) return false;
  if (::lstat(path.c_str(), &info) != 0) {
    if (errno == ENOENT) return false;
    fail(path);
  }
  if (!S_ISDIR(info.st_mode) || info.st_uid != ::geteuid()) {
    throw fabric::InputError(path + " belongs to somebody else; choose a place with --dir");
  }
  return true;
}

bool same_file(int descriptor, const std::string& path) {
  struct stat open {};
  struct stat named {};
  return ::fstat(descriptor, &open) == 0 && ::stat(path.c_str(), &named) == 0 &&
         open.st_dev == named.st_dev && open.st_ino == named.st_ino;
}

}  // namespace

std::string Directory::default_base() {
  const char* const runtime = os::environment("XDG_RUNTIME_DIR");
  if (runtime != nullptr && runtime[0] == '/') return std::string(runtime) + "/mrc-lab";
  return "/tmp/mrc-lab-" + std::to_string(::geteuid());
}

Directory::Directory(std::string base, std::string name)
    : base_(std::move(base)), name_(std::move(name)) {
  const bool sound = !name_.empty() && name_.size() <= kMaxName &&
                     std::all_of(name_.begin(), name_.end(), [](unsigned char c) {
                       return std::isalnum(c) != 0 || c == '-' || c == '_';
                     });
  if (!sound) {
    throw fabric::InputError("a lab's name has 1 to 32 letters, digits, '-' and '_', not '" +
                             name_ + "'");
  }
  // Programs in the lab may have another working directory.
  base_ = std::filesystem::absolute(base_).lexically_normal();
  path_ = base_ + "/" + name_;
}

bool Directory::lock() {
  const std::string file = path_ + "/lock";
  for (;;) {
    // A lab that ends removes its folder, and the one around it when that is empty.
    if (!make_base(base_) || !make_folder(path_)) continue;
    os::Descriptor lock(::open(file.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600));
    if (!lock.valid() && errno == ENOENT) continue;  // removed in this moment
    if (!lock.valid()) {
      const int error = errno;
      // Gone if they are empty, as when they are new.
      if (::rmdir(path_.c_str()) == 0) ::rmdir(base_.c_str());
      errno = error;
      fail(file);
    }
    if (::flock(lock.get(), LOCK_EX | LOCK_NB) != 0) {
      if (errno == EWOULDBLOCK) return false;
      fail(file);
    }
    // Whoever had the lock may have removed the file before we got it.
    if (!same_file(lock.get(), file)) continue;
    lock_ = std::move(lock);
    return true;
  }
}

Directory::State Directory::state() const {
  const os::Descriptor lock(::open((path_ + "/lock").c_str(), O_RDWR | O_CLOEXEC));
  if (lock.valid())
    return ::flock(lock.get(), LOCK_SH | LOCK_NB) == 0 ? State::kLeftover : State::kUp;
  const auto is_nothing = [] { return errno == ENOENT || errno == ENOTDIR; };
  struct stat info {};
  if (is_nothing() && ::lstat(path_.c_str(), &info) == 0) return State::kLeftover;
  if (is_nothing()) return State::kAbsent;
  // Whether it lives, only those can tell who may open its lock.
  throw std::runtime_error("the lab in " + path_ + " cannot be looked at: " + std::strerror(errno) +
                           "; be its user, or name another place with --dir");
}

int Directory::holder() const {
  const os::Descriptor lock(::open((path_ + "/lock").c_str(), O_RDONLY | O_CLOEXEC));
  std::array<char, 16> text{};
  if (!lock.valid() || ::read(lock.get(), text.data(), text.size() - 1) <= 0) return 0;
  return std::atoi(text.data());
}

void Directory::set_up(unsigned hosts) {
  const std::string pid = std::to_string(::getpid()) + "\n";
  if (::ftruncate(lock_.get(), 0) != 0 ||
      ::pwrite(lock_.get(), pid.data(), pid.size(), 0) != static_cast<ssize_t>(pid.size())) {
    fail(path_ + "/lock");
  }
  for (const auto& entry : std::filesystem::directory_iterator(path_)) {
    if (entry.path().filename() != "lock") std::filesystem::remove_all(entry.path());
  }
  remove_namespaces(namespace_prefix());
  std::vector<std::string> folders = {ports_path(), path_ + "/h"};
  for (unsigned host = 0; host < hosts; ++host)
    folders.push_back(host_path(host));
  for (const std::string& folder : folders)
    if (!make_folder(folder)) fail(folder);
}

std::string Directory::namespace_prefix() const {
  // Labs of one name in different places are different labs.
  std::uint32_t hash = 0x811C'9DC5;
  for (const char c : path_)
    hash = (hash ^ static_cast<unsigned char>(c)) * 0x0100'0193;
  return fmt::format("mrc.{}.{:08x}.", name_, hash);
}

void Directory::remove() {
  remove_namespaces(namespace_prefix());
  // The lock goes last: without it somebody else would begin to remove the same things, and each
  // would give up where the other was faster.
  std::error_code ignored;
  std::vector<std::filesystem::path> things;
  for (const auto& entry : std::filesystem::directory_iterator(path_, ignored))
    if (entry.path().filename() != "lock") things.push_back(entry.path());
  for (const std::filesystem::path& thing : things)
    std::filesystem::remove_all(thing, ignored);
  std::filesystem::remove_all(path_, ignored);
  ::rmdir(base_.c_str());  // only when it was the last lab
  lock_.close();
}

std::vector<std::string> list_labs(const std::string& base) {
  std::vector<std::string> names;
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator(base, error)) {
    if (entry.is_directory(error)) names.push_back(entry.path().filename());
  }
  std::sort(names.begin(), names.end());
  return names;
}

}  // namespace mrc::lab
