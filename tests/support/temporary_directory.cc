#include "support/temporary_directory.h"

#include <signal.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstring>
#include <filesystem>

namespace mrc::test {
namespace {

constexpr std::size_t kMaxPath = 256;

// What a signal handler finds. An entry is free while it has no owner; children of a test that
// forks are not the owners of what its parent made.
struct Entry {
  std::atomic<pid_t> owner = 0;
  std::array<char, kMaxPath> path{};
};
std::array<Entry, 64> entries;

// Only what a signal handler may call.
void remove_and_end(int number) {
  for (Entry& entry : entries) {
    if (entry.owner != getpid()) continue;
    const pid_t child = fork();
    if (child == 0) {
      execl("/bin/rm", "rm", "-rf", entry.path.data(), nullptr);
      _exit(1);
    }
    waitpid(child, nullptr, 0);
  }
  signal(number, SIG_DFL);
  raise(number);
}

void handle_signals() {
  for (const int number : {SIGTERM, SIGINT, SIGHUP, SIGABRT}) {
    struct sigaction action {};
    action.sa_handler = remove_and_end;
    sigaction(number, &action, nullptr);
  }
}

void note(const std::string& path) {
  static const bool once = (handle_signals(), true);
  static_cast<void>(once);
  if (path.size() >= kMaxPath) abort();
  const auto free = std::ranges::find_if(entries, [](const Entry& e) { return e.owner == 0; });
  if (free == entries.end()) abort();
  std::ranges::copy(path.c_str(), path.c_str() + path.size() + 1, free->path.begin());
  free->owner = getpid();
}

void forget(const std::string& path) {
  for (Entry& entry : entries)
    if (path == entry.path.data()) entry.owner = 0;
}

}  // namespace

TemporaryDirectory::TemporaryDirectory()
    : path_(std::filesystem::temp_directory_path() / "mrc-unit-XXXXXX") {
  if (mkdtemp(path_.data()) == nullptr) abort();
  note(path_);
}

TemporaryDirectory::~TemporaryDirectory() {
  std::error_code ignored;
  std::filesystem::remove_all(path_, ignored);
  forget(path_);
}

}  // namespace mrc::test
