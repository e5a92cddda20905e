#include "commands/lab/execute.h"

#include <fmt/core.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <system_error>

#include "fabric/input_error.h"
#include "lab/control.h"
#include "lab/host_config.h"
#include "lab/net_namespace.h"
#include "launch/attach.h"
#include "os/descriptor.h"

namespace mrc::tool::lab_tool {
namespace {

constexpr int kGraceMs = 2'000;
constexpr int kNotFound = 127;
constexpr int kSignalBase = 128;

// Where a program runs: in a host, and in its network namespace if it has one.
struct Place {
  unsigned host = 0;
  std::string name_space;
};

void enter(const Place& place) {
  if (place.name_space.empty()) return;
  try {
    lab::enter_namespace(place.name_space);
  } catch (const std::system_error& error) {
    fmt::print(stderr, "mrc lab exec: {}; programs in namespaces are started by root\n",
               error.what());
    ::_exit(kNotFound);
  }
}

[[noreturn]] void become(const lab::Directory& directory, const Place& place,
                         const std::vector<std::string>& command, const sigset_t& signals,
                         pid_t parent) {
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (::getppid() != parent) ::_exit(kNotFound);
  ::sigprocmask(SIG_UNBLOCK, &signals, nullptr);
  enter(place);
  const lab::HostEnvironment environment = lab::host_environment(
      directory, place.host,
      place.name_space.empty() ? lab::SwitchKind::kProcess : lab::SwitchKind::kNamespace);
  for (const auto& [name, value] : environment.set)
    ::setenv(name.c_str(), value.c_str(), 1);
  for (const std::string& name : environment.unset)
    ::unsetenv(name.c_str());
  std::vector<std::string> words = command;
  std::vector<char*> arguments;
  arguments.reserve(words.size() + 1);
  for (std::string& word : words)
    arguments.push_back(word.data());
  arguments.push_back(nullptr);
  ::execvp(arguments[0], arguments.data());
  fmt::print(stderr, "mrc lab exec: {}: {}\n", command[0], std::strerror(errno));
  ::_exit(kNotFound);
}

// Signals to us go on to the program; Ctrl-C reaches both from the terminal.
void pass_on(int signals, pid_t child) {
  signalfd_siginfo info{};
  if (::read(signals, &info, sizeof(info)) != sizeof(info)) return;
  const int number = static_cast<int>(info.ssi_signo);
  if (number == SIGTERM || number == SIGHUP) ::kill(child, number);
}

int wait_for(pid_t child, int lab_socket, int signals) {
  const os::Descriptor process(static_cast<int>(::syscall(SYS_pidfd_open, child, 0U)));
  bool lab_is_there = true;
  for (;;) {
    std::array<pollfd, 3> descriptors{{{process.get(), POLLIN, 0},
                                       {signals, POLLIN, 0},
                                       {lab_is_there ? lab_socket : -1, POLLIN, 0}}};
    const int ready = ::poll(descriptors.data(), descriptors.size(), lab_is_there ? -1 : kGraceMs);
    if (ready == 0) ::kill(child, SIGKILL);
    if (ready > 0 && descriptors[1].revents != 0) pass_on(signals, child);
    if (ready > 0 && descriptors[2].revents != 0) {
      fmt::print(stderr, "mrc lab exec: the lab went away\n");
      lab_is_there = false;
      ::kill(child, SIGTERM);
    }
    int status = 0;
    if (::waitpid(child, &status, WNOHANG) == child)
      return WIFSIGNALED(status) ? kSignalBase + WTERMSIG(status) : WEXITSTATUS(status);
  }
}

}  // namespace

ExitCode execute(const lab::Directory& directory, const std::string& host,
                 const std::vector<std::string>& command) {
  lab::ControlClient client;
  attach(directory, client);
  const lab::Reply reply = client.ask({"hold", host, std::to_string(::getpid()), command.at(0)});
  if (!reply.ok) throw fabric::InputError(reply.text);
  sigset_t signals;
  ::sigemptyset(&signals);
  for (const int number : {SIGINT, SIGQUIT, SIGTERM, SIGHUP})
    ::sigaddset(&signals, number);
  ::sigprocmask(SIG_BLOCK, &signals, nullptr);
  const os::Descriptor signal_queue(::signalfd(-1, &signals, SFD_CLOEXEC | SFD_NONBLOCK));
  const pid_t self = ::getpid();
  const pid_t child = ::fork();
  if (child == 0)
    become(directory, {static_cast<unsigned>(std::stoul(host)), reply.text}, command, signals,
           self);
  if (child < 0) {
    fmt::print(stderr, "mrc lab exec: no process: {}\n", std::strerror(errno));
    return ExitCode::kFailed;
  }
  return static_cast<ExitCode>(wait_for(child, client.descriptor(), signal_queue.get()));
}

}  // namespace mrc::tool::lab_tool
