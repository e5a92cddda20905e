#include "node/telemetry_reader.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <tuple>
#include <utility>

#include "node/node_state_files.h"
#include "os/environment.h"

namespace mrc::node {
namespace {

constexpr std::string_view kFolderPrefix = "mrc-telemetry-";
constexpr unsigned kAttempts = 8;
constexpr std::size_t kMaxEntries = 65'536;
constexpr std::size_t kMaxProblems = 16;

void complain(TelemetryListing& listing, const std::string& line) {
  if (listing.problems.size() < kMaxProblems) listing.problems.push_back(line);
}

std::uint64_t version_of(std::span<const std::byte> page) {
  std::uint64_t version = 0;
  std::memcpy(&version, page.data() + offsetof(TelemetryHeader, version), sizeof version);
  return version;
}

// The version stayed what it was, so nobody has begun to write over the body it stands for: the
// next one goes to the other place. What is larger than a page is none.
int copy_page(int file, std::vector<std::byte>& page) {
  for (unsigned attempt = 0; attempt < kAttempts; ++attempt) {
    const int error = node_files::read_all(file, kTelemetryPageBytes, page);
    if (error != 0 || page.size() != kTelemetryPageBytes) return error;
    std::array<std::byte, sizeof(TelemetryHeader)> after{};
    if (::pread(file, after.data(), after.size(), 0) != static_cast<ssize_t>(after.size()))
      return EIO;
    if (version_of(after) == version_of(page)) return 0;
  }
  return EAGAIN;
}

bool is_wanted(const TelemetryQuery& query, const TelemetryBody& body) {
  if (query.pid && *query.pid != body.process.pid) return false;
  return query.device.empty() || query.device == body.device.text();
}

// Nothing is said of a page that goes, or has nothing in it yet.
void read_page(const TelemetryQuery& query, const std::string& path, uid_t folder_owner,
               TelemetryListing& listing) {
  os::Descriptor file;
  const node_files::Life life = node_files::life_of(path, file);
  struct stat info {};
  if (life == node_files::Life::kNone || !file.valid()) return;  // no file, or gone
  if (::fstat(file.get(), &info) != 0) return;
  if (info.st_uid != folder_owner) return;  // slipped into the folder of somebody else
  std::vector<std::byte> page;
  TelemetryReading reading{
      .path = path, .owner = info.st_uid, .alive = life == node_files::Life::kAlive, .body = {}};
  if (const int error = copy_page(file.get(), page); error != 0) {
    return complain(listing, path + ": " + std::strerror(error));
  }
  const Status decoded = decode_telemetry(page, reading.body);
  if (decoded.code() == ErrorCode::kBusy || (page.empty() && reading.alive)) return;
  if (!decoded.ok()) return complain(listing, path + ": " + decoded.what());
  if (is_wanted(query, reading.body)) listing.readings.push_back(std::move(reading));
}

void read_folder(const TelemetryQuery& query, const std::string& folder,
                 TelemetryListing& listing) {
  struct stat info {};
  if (::lstat(folder.c_str(), &info) != 0 || !S_ISDIR(info.st_mode)) return;
  // By the rights in effect: a service may read by a capability, as a user without any.
  if (::faccessat(AT_FDCWD, folder.c_str(), R_OK | X_OK, AT_EACCESS) != 0) {
    ++listing.closed_folders;
    return;
  }
  unsigned pages = 0;
  for (const std::string& name : node_files::list_directory(folder, kMaxTelemetryPages)) {
    if (!name.starts_with(kTelemetryPrefix) || ++pages > kMaxTelemetryPages) continue;
    read_page(query, node_files::path_in(folder, name), info.st_uid, listing);
  }
}

std::vector<std::string> folders_of(const std::string& directory) {
  std::vector<std::string> folders;
  // Our own first, however many others there are.
  const std::string own = telemetry_folder(directory, ::geteuid());
  folders.push_back(own);
  for (const std::string& name : node_files::list_directory(directory, kMaxEntries)) {
    const std::string path = node_files::path_in(directory, name);
    if (!name.starts_with(kFolderPrefix) || path == own) continue;
    if (folders.size() == kMaxTelemetryFolders) break;
    folders.push_back(path);
  }
  return folders;
}

}  // namespace

std::string telemetry_directory() {
  const char* const state = os::environment("MRC_STATE_DIR");
  return state != nullptr && state[0] == '/' ? state : "/dev/shm";
}

std::string telemetry_folder(const std::string& directory, uid_t user) {
  return directory + '/' + std::string(kFolderPrefix) + std::to_string(user);
}

TelemetryListing read_telemetry(const TelemetryQuery& query) {
  TelemetryListing listing;
  for (const std::string& folder : folders_of(query.directory))
    read_folder(query, folder, listing);
  std::ranges::sort(listing.readings, [](const auto& a, const auto& b) {
    return std::tuple(a.body.process.pid, a.body.device.text(), a.path) <
           std::tuple(b.body.process.pid, b.body.device.text(), b.path);
  });
  return listing;
}

unsigned clean_telemetry(const std::string& folder) {
  unsigned removed = 0;
  for (const std::string& name : node_files::list_directory(folder, kMaxTelemetryPages)) {
    if (!name.starts_with(kTelemetryPrefix)) continue;
    const std::string path = node_files::path_in(folder, name);
    os::Descriptor file;
    struct stat info {};
    // Removed while locked, so that a process about to lock it notices.
    if (node_files::life_of(path, file) != node_files::Life::kDead) continue;
    if (::fstat(file.get(), &info) != 0 || info.st_uid != ::geteuid()) continue;
    if (::unlink(path.c_str()) == 0) ++removed;
  }
  return removed;
}

unsigned clean_all_telemetry(const std::string& directory) {
  return clean_telemetry(telemetry_folder(directory, ::geteuid()));
}

}  // namespace mrc::node
