#include "launch/lab_process.h"

#include <fcntl.h>
#include <fmt/core.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstring>

#include "commands/lab/start.h"
#include "failure.h"
#include "launch/attach.h"
#include "os/descriptor.h"

namespace mrc::tool {
namespace {

// The lab stays in the foreground of a process of its own, which is told to end when we are gone,
// and then removes what it has made.
[[noreturn]] void be_lab(lab::Directory& directory, const lab::ClusterOptions& options, int word,
                         pid_t parent) {
  ::prctl(PR_SET_PDEATHSIG, SIGTERM);
  if (::getppid() != parent) ::_exit(1);
  // Ctrl-C is for whoever made the lab, who ends it when its hosts are done.
  ::setpgid(0, 0);
  ::dup2(word, STDERR_FILENO);
  ::close(word);
  const ExitCode code = lab_tool::start_lab(directory, options, true);
  std::fflush(nullptr);
  ::_exit(static_cast<int>(code));
}

// "+" when the lab is up, else its words of complaint.
std::string first_words(int descriptor) {
  std::array<char, 1024> part = {};
  ssize_t got = 0;
  do {
    got = ::read(descriptor, part.data(), part.size());
  } while (got < 0 && errno == EINTR);
  std::string text(part.data(), got > 0 ? static_cast<std::size_t>(got) : 0);
  return text.substr(0, text.find('\n'));
}

}  // namespace

LabProcess::LabProcess(const std::string& name, const lab::ClusterOptions& options)
    : directory_(lab::Directory::default_base(), name) {
  std::array<int, 2> ends = {};
  if (::pipe2(ends.data(), O_CLOEXEC) != 0)
    throw Failure(fmt::format("no pipe: {}", std::strerror(errno)));
  const os::Descriptor read_end(ends[0]);
  os::Descriptor write_end(ends[1]);
  std::fflush(nullptr);
  const pid_t self = ::getpid();
  process_ = ::fork();
  if (process_ < 0) throw Failure(fmt::format("no process: {}", std::strerror(errno)));
  if (process_ == 0) be_lab(directory_, options, write_end.get(), self);
  write_end.close();
  const std::string word = first_words(read_end.get());
  if (!word.starts_with('+')) {
    ::waitpid(process_, nullptr, 0);
    throw Failure("the lab does not come up: " + word);
  }
  lab_tool::attach(directory_, control_);
}

LabProcess::~LabProcess() {
  ::kill(process_, SIGTERM);
  ::waitpid(process_, nullptr, 0);
}

}  // namespace mrc::tool
