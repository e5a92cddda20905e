#include "launch/child_process.h"

#include <fcntl.h>
#include <fmt/core.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstring>

#include "failure.h"

namespace mrc::tool {
namespace {

constexpr int kNotFound = 127;
constexpr int kSignalBase = 128;
constexpr std::size_t kMaxOutputBytes = std::size_t{1} << 20;
constexpr std::size_t kMaxErrorBytes = 16'384;

void use(int stream, int as) {
  if (stream >= 0) ::dup2(stream, as);
}

}  // namespace

Pipe make_pipe() {
  std::array<int, 2> ends = {};
  if (::pipe2(ends.data(), O_CLOEXEC) != 0)
    throw Failure(fmt::format("no pipe: {}", std::strerror(errno)));
  ::fcntl(ends[0], F_SETFL, O_NONBLOCK);
  return {os::Descriptor(ends[0]), os::Descriptor(ends[1])};
}

bool take_bytes(const os::Descriptor& from, std::size_t most, std::string& text) {
  std::array<char, 4096> part;
  for (;;) {
    const ssize_t got = ::read(from.get(), part.data(), part.size());
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return errno == EAGAIN;
    if (got == 0) return false;
    const std::size_t room = most > text.size() ? most - text.size() : 0;
    text.append(part.data(), std::min(static_cast<std::size_t>(got), room));
  }
}

void become(std::vector<std::string> words, const Streams& streams, pid_t parent) {
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (::getppid() != parent) ::_exit(kNotFound);
  use(streams.input, STDIN_FILENO);
  use(streams.output, STDOUT_FILENO);
  use(streams.errors, STDERR_FILENO);
  std::vector<char*> arguments;
  arguments.reserve(words.size() + 1);
  for (std::string& word : words)
    arguments.push_back(word.data());
  arguments.push_back(nullptr);
  ::execvp(arguments[0], arguments.data());
  ::dprintf(STDERR_FILENO, "%s: cannot be started: %s\n", arguments[0], std::strerror(errno));
  ::_exit(kNotFound);
}

ChildProcess::ChildProcess(const std::vector<std::string>& words) {
  Pipe output = make_pipe();
  Pipe errors = make_pipe();
  const os::Descriptor nothing(::open("/dev/null", O_RDONLY | O_CLOEXEC));
  const pid_t self = ::getpid();
  std::fflush(nullptr);
  process_ = ::fork();
  if (process_ < 0) throw Failure(fmt::format("no process: {}", std::strerror(errno)));
  if (process_ == 0) {
    ::setpgid(0, 0);  // Ctrl-C is for us: we end it when we end
    become(words, {nothing.get(), output.write.get(), errors.write.get()}, self);
  }
  output_.from = std::move(output.read);
  errors_.from = std::move(errors.read);
}

ChildProcess::~ChildProcess() {
  if (ended_) return;
  kill();
  ::waitpid(process_, nullptr, 0);
}

void ChildProcess::kill() {
  // With what it has started itself, once it leads a group of its own.
  if (!ended_ && ::kill(-process_, SIGKILL) != 0) ::kill(process_, SIGKILL);
}

void ChildProcess::look() {
  if (ended_) return;
  int status = 0;
  // First its end, then its words: whatever it wrote is there to be read by then.
  const bool gone = ::waitpid(process_, &status, WNOHANG) == process_;
  output_.take(kMaxOutputBytes);
  errors_.take(kMaxErrorBytes);
  if (!gone) return;
  ended_ = true;
  code_ = WIFSIGNALED(status) ? kSignalBase + WTERMSIG(status) : WEXITSTATUS(status);
}

}  // namespace mrc::tool
