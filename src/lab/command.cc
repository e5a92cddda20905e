#include "lab/command.h"

#include <spawn.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <stdexcept>
#include <string_view>

#include "os/descriptor.h"

namespace mrc::lab {
namespace {

// Files without a name; nobody has to read or write while the program runs.
os::Descriptor memory_file(std::string_view content) {
  os::Descriptor file(::memfd_create("mrc-lab", MFD_CLOEXEC));
  while (file.valid() && !content.empty()) {
    const ssize_t written = ::write(file.get(), content.data(), content.size());
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) return {};
    content.remove_prefix(static_cast<std::size_t>(written));
  }
  if (file.valid()) ::lseek(file.get(), 0, SEEK_SET);
  return file;
}

std::string first_line(int file) {
  std::array<char, 512> text{};
  const ssize_t got = ::pread(file, text.data(), text.size(), 0);
  const std::string_view all(text.data(), got > 0 ? static_cast<std::size_t>(got) : 0);
  return std::string(all.substr(0, all.find('\n')));
}

class FileActions {
 public:
  FileActions() { ::posix_spawn_file_actions_init(&actions_); }
  ~FileActions() { ::posix_spawn_file_actions_destroy(&actions_); }
  FileActions(const FileActions&) = delete;
  FileActions& operator=(const FileActions&) = delete;
  void use(const os::Descriptor& file, int as) {
    ::posix_spawn_file_actions_adddup2(&actions_, file.get(), as);
  }
  const posix_spawn_file_actions_t* get() const { return &actions_; }

 private:
  posix_spawn_file_actions_t actions_{};
};

}  // namespace

void run_command(const std::vector<std::string>& words, const std::string& input) {
  const os::Descriptor in = memory_file(input);
  const os::Descriptor out = memory_file({});
  if (!in.valid() || !out.valid()) throw std::runtime_error("no memory for a command");
  FileActions files;
  files.use(in, STDIN_FILENO);
  files.use(out, STDOUT_FILENO);
  files.use(out, STDERR_FILENO);
  std::vector<std::string> copy = words;
  std::vector<char*> arguments;
  arguments.reserve(copy.size() + 1);
  for (std::string& word : copy)
    arguments.push_back(word.data());
  arguments.push_back(nullptr);
  pid_t child = 0;
  const int error =
      ::posix_spawnp(&child, arguments[0], files.get(), nullptr, arguments.data(), environ);
  if (error == ENOENT) {
    throw std::runtime_error("there is no program '" + words[0] +
                             "'; ip and tc are in the package iproute2");
  }
  if (error != 0) throw std::runtime_error(words[0] + ": " + std::strerror(error));
  int status = 0;
  while (::waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  if (WIFEXITED(status) && WEXITSTATUS(status) == 0) return;
  std::string text;
  for (const std::string& word : words)
    text += (text.empty() ? "" : " ") + word;
  throw std::runtime_error(text + ": " + first_line(out.get()));
}

}  // namespace mrc::lab
