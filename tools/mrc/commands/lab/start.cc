#include "commands/lab/start.h"

#include <fcntl.h>
#include <fmt/core.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <csignal>
#include <exception>
#include <string>
#include <thread>

#include "lab/daemon.h"
#include "os/descriptor.h"
#include "terminal.h"

namespace mrc::tool::lab_tool {
namespace {

constexpr auto kPatience = std::chrono::seconds(5);
constexpr auto kStep = std::chrono::milliseconds(10);

lab::Daemon* running = nullptr;  // for the signal handler

void on_signal(int) {
  if (running != nullptr) running->stop();
}

void write_all(int descriptor, const std::string& text) {
  [[maybe_unused]] const ssize_t written = ::write(descriptor, text.data(), text.size());
}

// What the process behind the lab does. `ready` learns when it works: "+", or "-" and why not.
bool serve(lab::Directory& directory, const lab::ClusterOptions& options, int ready) {
  bool well = true;
  try {
    directory.set_up(options.topology.hosts);
    lab::Daemon daemon(directory, options);
    running = &daemon;
    std::signal(SIGPIPE, SIG_IGN);
    std::signal(SIGTERM, on_signal);
    std::signal(SIGINT, on_signal);
    write_all(ready, "+");
    ::close(ready);
    daemon.run();
    running = nullptr;
  } catch (const std::exception& error) {
    running = nullptr;
    well = false;
    fmt::print(stderr, "mrc lab: {}\n", error.what());
    write_all(ready, std::string("-") + error.what());
  }
  directory.remove();
  return well;
}

void leave_terminal(int nowhere) {
  ::setsid();
  std::signal(SIGHUP, SIG_IGN);
  ::prctl(PR_SET_NAME, "mrc-lab");
  for (const int stream : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO})
    ::dup2(nowhere, stream);
}

std::string read_all(int descriptor) {
  std::string text;
  std::array<char, 512> part;
  for (;;) {
    const ssize_t got = ::read(descriptor, part.data(), part.size());
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) return text;
    text.append(part.data(), static_cast<std::size_t>(got));
  }
}

ExitCode give_up(lab::Directory& directory, const char* what) {
  const int error = errno;
  directory.remove();
  fmt::print(stderr, "mrc lab up: {}: {}\n", what, std::strerror(error));
  return ExitCode::kFailed;
}

ExitCode start_in_background(lab::Directory& directory, const lab::ClusterOptions& options) {
  // A lab that kept the streams of its caller would keep whoever reads them waiting.
  const os::Descriptor nowhere(::open("/dev/null", O_RDWR | O_CLOEXEC));
  if (!nowhere.valid()) return give_up(directory, "/dev/null");
  std::array<int, 2> ends{};
  if (::pipe2(ends.data(), O_CLOEXEC) != 0) return give_up(directory, "no pipe");
  std::fflush(nullptr);
  const pid_t child = ::fork();
  if (child == 0) {
    ::close(ends[0]);
    leave_terminal(nowhere.get());
    ::_exit(serve(directory, options, ends[1]) ? 0 : 1);
  }
  ::close(ends[1]);
  const os::Descriptor ready(ends[0]);
  if (child < 0) return give_up(directory, "no process");
  directory.leave_lock();
  const std::string word = [&] {
    const LongWait wait("starting lab " + directory.name());
    return read_all(ready.get());
  }();
  if (word == "+") return ExitCode::kOk;
  ::waitpid(child, nullptr, 0);
  fmt::print(stderr, "mrc lab up: {}\n",
             word.empty() ? "the lab's process died at the start" : word.substr(1));
  return ExitCode::kFailed;
}

bool lock_in_time(lab::Directory& directory) {
  const auto end = std::chrono::steady_clock::now() + kPatience;
  while (!directory.lock()) {
    if (std::chrono::steady_clock::now() > end) return false;
    std::this_thread::sleep_for(kStep);
  }
  return true;
}

}  // namespace

ExitCode start_lab(lab::Directory& directory, const lab::ClusterOptions& options, bool foreground) {
  if (!directory.lock()) {
    fmt::print(stderr,
               "mrc lab up: lab '{}' is already up (process {}); `mrc lab down --name {}` ends it, "
               "--name gives another one\n",
               directory.name(), directory.holder(), directory.name());
    return ExitCode::kFailed;
  }
  if (!foreground) return start_in_background(directory, options);
  return serve(directory, options, ::dup(STDERR_FILENO)) ? ExitCode::kOk : ExitCode::kFailed;
}

ExitCode end_lab(lab::Directory& directory) {
  switch (directory.state()) {
    case lab::Directory::State::kAbsent:
      fmt::print("there is no lab '{}'\n", directory.name());
      return ExitCode::kOk;
    case lab::Directory::State::kLeftover:
      if (!directory.lock()) break;
      directory.remove();
      fmt::print("removed what a dead lab '{}' left behind\n", directory.name());
      return ExitCode::kOk;
    case lab::Directory::State::kUp:
      break;
  }
  const LongWait wait("ending lab " + directory.name());
  const int pid = directory.holder();
  lab::ControlClient client;
  if (client.connect(directory.control_path())) client.ask({"down"});
  if (!lock_in_time(directory)) {
    // It does not listen. The lock is held, so the number is still its own.
    if (pid > 0) ::kill(pid, SIGKILL);
    if (!lock_in_time(directory)) {
      fmt::print(stderr, "mrc lab down: process {} of lab '{}' does not end\n", pid,
                 directory.name());
      return ExitCode::kFailed;
    }
  }
  directory.remove();
  return ExitCode::kOk;
}

}  // namespace mrc::tool::lab_tool
