#include "node/telemetry_writer.h"

#include <fcntl.h>
#include <grp.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <ctime>
#include <fstream>
#include <iterator>
#include <new>
#include <optional>
#include <utility>

#include "node/telemetry_reader.h"

namespace mrc::node {
namespace {

constexpr std::size_t kGroupEntryBytes = 16'384;
constexpr int kStartField = 22;

std::optional<gid_t> find_group(const std::string& name) {
  gid_t number = 0;
  const char* const end = name.data() + name.size();
  const auto parsed = std::from_chars(name.data(), end, number);
  if (parsed.ec == std::errc{} && parsed.ptr == end) return number;
  group entry{};
  group* found = nullptr;
  std::array<char, kGroupEntryBytes> buffer;
  if (::getgrnam_r(name.c_str(), &entry, buffer.data(), buffer.size(), &found) != 0) return {};
  return found == nullptr ? std::optional<gid_t>() : entry.gr_gid;
}

// In /dev/shm anybody may have made a folder of that name before us.
int make_own_folder(const std::string& folder, os::Descriptor& out) {
  if (::mkdir(folder.c_str(), 0700) != 0 && errno != EEXIST) return errno;
  out = os::Descriptor(::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
  struct stat info {};
  if (!out.valid() || ::fstat(out.get(), &info) != 0) return errno;
  const bool ours = info.st_uid == ::geteuid() && (info.st_mode & (S_IWGRP | S_IWOTH)) == 0;
  return ours ? 0 : EPERM;
}

int give_to_group(int file, gid_t group, mode_t mode) {
  if (::fchown(file, static_cast<uid_t>(-1), group) != 0) return errno;
  return ::fchmod(file, mode) == 0 ? 0 : errno;
}

// Blocks are taken now: where memory ends later, a write to the page would end the process.
std::byte* map_page(int file) {
  if (const int error = ::posix_fallocate(file, 0, kTelemetryPageBytes); error != 0) {
    errno = error;
    return nullptr;
  }
  void* const at =
      ::mmap(nullptr, kTelemetryPageBytes, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  return at == MAP_FAILED ? nullptr : static_cast<std::byte*>(at);
}

std::string why(const std::string& folder, int error) {
  const bool foreign = error == EPERM || error == ELOOP;
  return "telemetry: " + folder + ": " +
         (foreign ? "is not a folder of ours alone" : std::strerror(error)) +
         "; counters of this process cannot be read from outside";
}

std::uint64_t start_ticks() {
  std::ifstream file("/proc/self/stat");
  const std::string text((std::istreambuf_iterator<char>(file)), {});
  // The name of the program, in brackets, may hold blanks and brackets.
  std::size_t at = text.rfind(')');
  for (int field = 2; field < kStartField && at != std::string::npos; ++field)
    at = text.find(' ', at + 1);
  std::uint64_t ticks = 0;
  if (at == std::string::npos || at + 1 >= text.size()) return 0;
  std::from_chars(text.data() + at + 1, text.data() + text.size(), ticks);
  return ticks;
}

std::int64_t clock_ns(clockid_t clock) {
  timespec now{};
  ::clock_gettime(clock, &now);
  return now.tv_sec * kSecondNs + now.tv_nsec;
}

}  // namespace

std::unique_ptr<TelemetryWriter> TelemetryWriter::open(const TelemetryPlace& place,
                                                       std::string& error) {
  const std::string folder = telemetry_folder(place.directory, ::geteuid());
  os::Descriptor opened;
  node_files::LifeDescriptor lock;
  std::string path;
  int code = make_own_folder(folder, opened);
  if (code == 0) {
    clean_telemetry(folder);
    code = node_files::create_life_file(folder, kTelemetryPrefix, lock, path, 0600);
  }
  std::byte* page = nullptr;
  if (code == 0 && (page = map_page(lock.get())) == nullptr) {
    code = errno;
    ::unlink(path.c_str());
  }
  // Who may not write where the node keeps its state is a guest of its owner, and knows.
  if (code == EACCES) return nullptr;
  if (code != 0) {
    error = why(folder, code);
    return nullptr;
  }
  if (!place.group.empty()) {
    const std::optional<gid_t> group = find_group(place.group);
    int refused = group ? give_to_group(opened.get(), *group, 0750) : ENOENT;
    if (refused == 0) refused = give_to_group(lock.get(), *group, 0640);
    if (refused != 0) {
      error = "telemetry: cannot be given to group " + place.group + ": " +
              (group ? std::strerror(refused) : "there is none of that name");
    }
  }
  return std::unique_ptr<TelemetryWriter>(
      new TelemetryWriter(std::move(lock), std::move(path), page));
}

TelemetryWriter::TelemetryWriter(node_files::LifeDescriptor lock, std::string path, std::byte* page)
    : lock_(std::move(lock)), path_(std::move(path)), page_(page), owner_(::getpid()) {
  const TelemetryHeader header{.magic = TelemetryHeader::kMagic,
                               .layout = kTelemetryLayout,
                               .body_bytes = sizeof(TelemetryBody)};
  std::memcpy(page_, &header, sizeof header);
}

TelemetryWriter::~TelemetryWriter() {
  remove();
  ::munmap(page_, kTelemetryPageBytes);
}

void TelemetryWriter::remove() {
  if (owner_ == ::getpid()) ::unlink(path_.c_str());
}

// The fence keeps these bytes behind the last version: who still reads the body that is written
// over now sees that there is a newer one.
void TelemetryWriter::write(const TelemetryBody& body) {
  ++version_;
  std::atomic_thread_fence(std::memory_order_seq_cst);
  std::memcpy(page_ + telemetry_body_at(version_), &body, sizeof body);
  auto* const version =
      reinterpret_cast<std::uint64_t*>(page_ + offsetof(TelemetryHeader, version));
  std::atomic_ref<std::uint64_t>(*version).store(version_, std::memory_order_release);
}

TelemetryProcess own_process() {
  static const std::uint64_t kTicks = start_ticks();
  TelemetryProcess process{.pid = static_cast<std::uint64_t>(::getpid()), .start_ticks = kTicks};
  const std::int64_t booted = clock_ns(CLOCK_REALTIME) - clock_ns(CLOCK_BOOTTIME);
  const auto tick_ns = static_cast<std::uint64_t>(kSecondNs / ::sysconf(_SC_CLK_TCK));
  process.started_unix_ns = booted + static_cast<std::int64_t>(kTicks * tick_ns);
  process.cpu_ns = static_cast<std::uint64_t>(clock_ns(CLOCK_PROCESS_CPUTIME_ID));
  std::ifstream file("/proc/self/comm");
  std::string name;
  std::getline(file, name);
  process.name.set(name);
  return process;
}

}  // namespace mrc::node
