#include "node/node_state_files.h"

#include <dirent.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <pthread.h>
#include <sys/file.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <map>
#include <memory>
#include <mutex>
#include <thread>
#include <utility>

#include "os/host_bug.h"
#include "os/kernel_random.h"

namespace mrc::node::node_files {
namespace {

constexpr unsigned kMaxEntries = 1U << 20;  // of a folder that all users may add to
constexpr int kCreateAttempts = 100;

// --- Descriptors that a child of fork() must not keep

struct LifeRegistry {
  std::mutex mutex;
  std::vector<int> fds;
};

// Lives for ever: fork handlers may run at any time.
LifeRegistry& life_registry() {
  static auto* registry = new LifeRegistry;
  return *registry;
}

void before_fork() { life_registry().mutex.lock(); }
void after_fork_in_parent() { life_registry().mutex.unlock(); }
void after_fork_in_child() {
  LifeRegistry& registry = life_registry();
  const int nowhere = open("/dev/null", O_RDONLY | O_CLOEXEC);
  for (const int fd : registry.fds) {
    // The number stays taken, as its owner will close it.
    if (nowhere < 0 || dup3(nowhere, fd, O_CLOEXEC) < 0) close(fd);
  }
  if (nowhere >= 0) close(nowhere);
  registry.fds.clear();
  registry.mutex.unlock();
}

// --- Rights

bool has_net_admin() {
  __user_cap_header_struct header{.version = _LINUX_CAPABILITY_VERSION_3, .pid = 0};
  std::array<__user_cap_data_struct, _LINUX_CAPABILITY_U32S_3> data{};
  if (syscall(SYS_capget, &header, data.data()) != 0) return false;
  return (data[CAP_NET_ADMIN / 32].effective >> (CAP_NET_ADMIN % 32) & 1) != 0;
}

// What a privileged controller creates in the directory of another user belongs to that user, or
// they could not go on with it.
void give_to_owner(int fd, const std::string& directory) {
  struct stat info {};
  if (stat(directory.c_str(), &info) != 0 || info.st_uid == geteuid()) return;
  // Not what the user has merely linked here.
  struct stat own {};
  if (fstat(fd, &own) != 0 || (!S_ISDIR(own.st_mode) && own.st_nlink != 1)) return;
  if (fchown(fd, info.st_uid, info.st_gid) != 0) return;  // they still can replace it
}

// Inside a user namespace all owners from outside, root too, show as one.
bool is_nameless(uid_t owner) {
  constexpr uid_t kNameless = 65'534;
  constexpr std::uint64_t kAllUsers = 0xFFFF'FFFF;
  if (owner != kNameless) return false;
  std::ifstream map("/proc/self/uid_map");
  std::uint64_t inside = 0;
  std::uint64_t outside = 0;
  std::uint64_t count = 0;
  return map >> inside >> outside >> count && count != kAllUsers;
}

bool is_believed(uid_t owner) { return owner == 0 || owner == geteuid() || is_nameless(owner); }

std::string folder_of(const std::string& path) {
  const std::size_t slash = path.find_last_of('/');
  if (slash == std::string::npos) return ".";
  return slash == 0 ? "/" : path.substr(0, slash);
}

// Only root can have put something there, so it has the owner that root wants.
bool is_roots_alone(const std::string& folder) {
  struct stat info {};
  return stat(folder.c_str(), &info) == 0 && info.st_uid == 0 &&
         (info.st_mode & (S_IWGRP | S_IWOTH)) == 0;
}

// What is wrong with the owner or the mode of a directory, or nothing.
std::string distrust_one(const std::string& path, bool others_may_add) {
  struct stat named {};
  struct stat info {};
  if (lstat(path.c_str(), &named) != 0 || stat(path.c_str(), &info) != 0)
    return std::strerror(errno);
  const bool given_by_root = is_roots_alone(folder_of(path));
  for (const uid_t owner : {named.st_uid, info.st_uid}) {
    if (!is_believed(owner) && !given_by_root)
      return "belongs to user " + std::to_string(owner) + ", neither to you nor to root";
  }
  const bool sticky = (info.st_mode & S_ISVTX) != 0;
  if ((info.st_mode & S_IWOTH) != 0 && !(others_may_add && sticky))
    return "can be written by every user";
  return {};
}

int permission_error(int error) { return error == EACCES ? EPERM : error; }

bool same_file(int fd, const std::string& path) {
  struct stat held {};
  struct stat named {};
  return fstat(fd, &held) == 0 && stat(path.c_str(), &named) == 0 && held.st_dev == named.st_dev &&
         held.st_ino == named.st_ino;
}

int wait_for_lock(int fd, std::chrono::steady_clock::time_point deadline) {
  auto pause = std::chrono::microseconds(50);
  while (flock(fd, LOCK_EX | LOCK_NB) != 0) {
    if (errno != EWOULDBLOCK && errno != EINTR) return errno;
    if (std::chrono::steady_clock::now() > deadline) return ETIMEDOUT;
    std::this_thread::sleep_for(pause);
    pause = std::min(2 * pause, std::chrono::microseconds(5'000));
  }
  return 0;
}

int write_all(int fd, std::span<const std::byte> bytes) {
  while (!bytes.empty()) {
    const ssize_t count = write(fd, bytes.data(), bytes.size());
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) return count < 0 ? errno : EIO;
    bytes = bytes.subspan(static_cast<std::size_t>(count));
  }
  return 0;
}

int sync_directory(const std::string& directory) {
  const os::Descriptor fd(open(directory.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!fd.valid()) return errno;
  // Some file systems cannot; then they have nothing to lose by it either.
  if (fsync(fd.get()) != 0 && errno != EINVAL && errno != ENOTSUP) return errno;
  return 0;
}

int write_new_file(const std::string& directory, const std::string& path,
                   std::span<const std::byte> bytes) {
  // What a killed writer left behind has this name too, so nothing piles up.
  unlink(path.c_str());
  const os::Descriptor fd(
      open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0644));
  if (!fd.valid()) return permission_error(errno);
  if (fchmod(fd.get(), 0644) != 0) return errno;
  give_to_owner(fd.get(), directory);
  if (const int error = write_all(fd.get(), bytes); error != 0) return error;
  return fsync(fd.get()) == 0 ? 0 : errno;
}

}  // namespace

LifeDescriptor::LifeDescriptor(os::Descriptor fd) : fd_(std::move(fd)) {
  static const int kRegistered =
      pthread_atfork(before_fork, after_fork_in_parent, after_fork_in_child);
  static_cast<void>(kRegistered);
  LifeRegistry& registry = life_registry();
  const std::lock_guard lock(registry.mutex);
  registry.fds.push_back(fd_.get());
}

LifeDescriptor::~LifeDescriptor() { forget(); }

LifeDescriptor& LifeDescriptor::operator=(LifeDescriptor&& other) noexcept {
  if (this != &other) {
    forget();
    fd_ = std::move(other.fd_);
  }
  return *this;
}

void LifeDescriptor::forget() {
  if (!fd_.valid()) return;
  LifeRegistry& registry = life_registry();
  const std::lock_guard lock(registry.mutex);
  std::erase(registry.fds, fd_.get());
  fd_.close();
}

int make_directories(const std::string& path) {
  for (std::size_t at = path.find('/', 1); at != std::string::npos; at = path.find('/', at + 1)) {
    const std::string parent = path.substr(0, at);
    if (mkdir(parent.c_str(), 0755) != 0 && errno != EEXIST) {
      struct stat info {};
      if (stat(parent.c_str(), &info) != 0) return errno;
    }
  }
  if (mkdir(path.c_str(), 0755) == 0) return 0;
  const int error = errno;
  struct stat info {};
  if (stat(path.c_str(), &info) != 0) return error;
  return S_ISDIR(info.st_mode) ? 0 : ENOTDIR;
}

int make_directory(const std::string& path, mode_t mode) {
  if (mkdir(path.c_str(), 0700) != 0) return errno == EEXIST ? 0 : errno;
  const os::Descriptor fd(open(path.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
  if (!fd.valid()) {
    const int error = errno;
    rmdir(path.c_str());  // closed to everybody else as it is, it would stay so
    return error;
  }
  give_to_owner(fd.get(), path + "/..");
  return fchmod(fd.get(), mode) == 0 ? 0 : errno;
}

int may_control(const std::string& directory) {
  struct stat info {};
  if (stat(directory.c_str(), &info) != 0) return permission_error(errno);
  return info.st_uid == geteuid() || has_net_admin() ? 0 : EPERM;
}

std::string distrust(const std::string& directory) {
  if (geteuid() == 0 || MRC_HOST_BUG(kStateOfAnybody)) return {};
  const std::size_t end = directory.find_last_not_of('/');
  const std::string path = directory.substr(0, end + 1);
  const std::string folder = folder_of(path);
  std::string where = path;
  std::string problem = distrust_one(path, false);
  if (problem.empty()) {
    where = folder;
    problem = distrust_one(folder, true);
  }
  if (problem.empty()) return {};
  return where + ": " + problem +
         "; have that changed, or name another directory (MRC_STATE_DIR, or `directory` of the "
         "device)";
}

bool speaks_for(const std::string& directory, uid_t owner) {
  if (MRC_HOST_BUG(kAnybodyWithdraws)) return true;
  struct stat info {};
  return is_believed(owner) || (stat(directory.c_str(), &info) == 0 && info.st_uid == owner);
}

int lock_file(const std::string& directory, const std::string& name, DurationNs patience_ns,
              LifeDescriptor& out) {
  const std::string path = path_in(directory, name);
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::nanoseconds(patience_ns);
  while (true) {
    os::Descriptor fd(open(path.c_str(), O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600));
    if (!fd.valid()) return permission_error(errno);
    give_to_owner(fd.get(), directory);
    if (const int error = wait_for_lock(fd.get(), deadline); error != 0) return error;
    if (same_file(fd.get(), path)) {  // somebody may have removed it while we waited
      out = LifeDescriptor(std::move(fd));
      return 0;
    }
  }
}

int replace_file(const std::string& directory, const std::string& name,
                 std::span<const std::byte> bytes) {
  const std::string path = path_in(directory, name);
  const std::string fresh = path + ".new";
  int error = write_new_file(directory, fresh, bytes);
  if (error == 0 && rename(fresh.c_str(), path.c_str()) != 0) error = permission_error(errno);
  if (error != 0) {
    unlink(fresh.c_str());
    return error;
  }
  // It has happened: everybody sees the new file, whether or not it would outlive a loss of power.
  if (const int unsure = sync_directory(directory); unsure != 0)
    complain(path + ": written, but not known to be on the disk: " + std::strerror(unsure));
  return 0;
}

int open_for_reading(const std::string& path, os::Descriptor& out) {
  out = os::Descriptor(open(path.c_str(), O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC));
  if (!out.valid()) return errno;
  struct stat info {};
  if (fstat(out.get(), &info) != 0) return errno;
  return S_ISREG(info.st_mode) ? 0 : EINVAL;
}

int read_all(int fd, std::size_t limit, std::vector<std::byte>& out) {
  struct stat info {};
  if (fstat(fd, &info) != 0) return errno;
  if (static_cast<std::uint64_t>(info.st_size) > limit) return EFBIG;
  out.resize(static_cast<std::size_t>(info.st_size));
  std::size_t at = 0;
  while (at < out.size()) {
    const ssize_t count = pread(fd, out.data() + at, out.size() - at, static_cast<off_t>(at));
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return errno;
    if (count == 0) break;
    at += static_cast<std::size_t>(count);
  }
  out.resize(at);
  return 0;
}

int create_life_file(const std::string& directory, const std::string& prefix, LifeDescriptor& lock,
                     std::string& path, mode_t mode) {
  for (int attempt = 0; attempt < kCreateAttempts; ++attempt) {
    path = path_in(directory, prefix);
    path += unique_name();
    os::Descriptor fd(open(path.c_str(), O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, mode));
    if (!fd.valid()) {
      if (errno == EEXIST) continue;
      return errno;
    }
    if (fchmod(fd.get(), mode) != 0 || flock(fd.get(), LOCK_EX) != 0) return errno;
    // Until it was locked it looked like that of a dead process, and may have been removed.
    struct stat info {};
    if (fstat(fd.get(), &info) != 0) return errno;
    if (info.st_nlink == 0) continue;
    lock = LifeDescriptor(std::move(fd));
    return 0;
  }
  return EAGAIN;
}

Life life_of(const std::string& path, os::Descriptor& fd) {
  const int error = open_for_reading(path, fd);
  if (error == EINVAL || error == ENOENT || error == ELOOP || error == EACCES) return Life::kNone;
  const bool dead = error == 0 && flock(fd.get(), LOCK_SH | LOCK_NB) == 0;
  return dead ? Life::kDead : Life::kAlive;
}

bool for_each_life_file(const std::string& directory, std::string_view prefix,
                        const std::function<bool(const LifeFile& file)>& found) {
  const std::unique_ptr<DIR, int (*)(DIR*)> dir(opendir(directory.c_str()), closedir);
  if (!dir) return errno == ENOENT || errno == EACCES;
  std::map<uid_t, unsigned> seen;
  for (unsigned entries = 0; entries < kMaxEntries; ++entries) {
    const dirent* const entry = readdir(dir.get());
    if (entry == nullptr) return true;
    if (!std::string_view(entry->d_name).starts_with(prefix)) continue;
    struct stat info {};
    if (fstatat(dirfd(dir.get()), entry->d_name, &info, AT_SYMLINK_NOFOLLOW) != 0) continue;
    if (++seen[info.st_uid] > kMaxLifeFilesOfOwner) continue;
    const std::string path = path_in(directory, entry->d_name);
    os::Descriptor fd;
    const Life life = life_of(path, fd);
    // Removed while locked, so that a process about to lock it notices.
    if (life == Life::kDead) unlink(path.c_str());
    if (life == Life::kAlive && !found({fd.get(), info.st_uid})) return true;
  }
  return true;
}

std::vector<std::string> list_directory(const std::string& directory, std::size_t limit) {
  std::vector<std::string> names;
  const std::unique_ptr<DIR, int (*)(DIR*)> dir(opendir(directory.c_str()), closedir);
  if (!dir) return names;
  while (const dirent* entry = readdir(dir.get())) {
    if (entry->d_name[0] == '.') continue;
    if (names.size() == limit) break;
    names.emplace_back(entry->d_name);
  }
  return names;
}

std::string path_in(const std::string& directory, std::string_view name) {
  std::string path = directory;
  path += '/';
  path += name;
  return path;
}

std::string unique_name() {
  std::array<char, 40> text{};
  std::snprintf(text.data(), text.size(), "%d-%016llx", static_cast<int>(getpid()),
                static_cast<unsigned long long>(os::KernelRandom().next64()));
  return text.data();
}

void complain(const std::string& line) {
  const std::string text = "mrc: " + line + "\n";
  if (write(STDERR_FILENO, text.data(), text.size()) < 0) return;  // nobody to tell
}

}  // namespace mrc::node::node_files
