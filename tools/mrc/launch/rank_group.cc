#include "launch/rank_group.h"

#include <fcntl.h>
#include <fmt/core.h>
#include <poll.h>
#include <sched.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <filesystem>

#include "collective/exchange.h"
#include "commands/lab/execute.h"
#include "failure.h"
#include "lab/control.h"
#include "lab/net_namespace.h"
#include "lab/netns_plan.h"
#include "launch/attach.h"
#include "launch/child_process.h"
#include "os/kernel_random.h"

namespace mrc::tool {
namespace {

constexpr std::size_t kMaxLineBytes = 1 << 20;
constexpr std::size_t kMaxErrorBytes = 16'384;
constexpr int kSignalBase = 128;

// The life of a rank's parent: `mrc lab exec` in a process of its own.
[[noreturn]] void be_rank(const lab::Directory& directory, unsigned host,
                          const std::vector<std::string>& words, int output, int errors) {
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (output >= 0) ::dup2(output, STDOUT_FILENO);
  ::dup2(errors, STDERR_FILENO);
  int code = static_cast<int>(ExitCode::kUsage);
  try {
    code = static_cast<int>(lab_tool::execute(directory, std::to_string(host), words));
  } catch (const std::exception& error) {
    fmt::print(stderr, "{}\n", error.what());
  }
  std::fflush(nullptr);
  ::_exit(code);
}

// Where the ranks meet: at the host of rank 0, where the others can reach it.
struct Meeting {
  collective::Listener listener;
  std::string address;
};

Meeting open_meeting(const lab::Directory& directory, unsigned host) {
  lab::ControlClient client;
  lab_tool::attach(directory, client);
  const lab::Reply reply =
      client.ask({"hold", std::to_string(host), std::to_string(::getpid()), "ranks"});
  if (!reply.ok) throw Failure(reply.text);
  const std::string& name_space = reply.text;
  if (name_space.empty())
    return {collective::Listener(0), lab::management_address(lab::SwitchKind::kProcess, host)};
  // A socket belongs to the namespace that its maker is in at the time.
  const os::Descriptor ours(::open("/proc/self/ns/net", O_RDONLY | O_CLOEXEC));
  lab::enter_namespace(name_space);
  Meeting meeting{collective::Listener(0),
                  lab::management_address(lab::SwitchKind::kNamespace, host)};
  if (::setns(ours.get(), CLONE_NEWNET) != 0)
    throw Failure(fmt::format("cannot leave a namespace: {}", std::strerror(errno)));
  return meeting;
}

}  // namespace

std::string own_program() { return std::filesystem::read_symlink("/proc/self/exe").string(); }

RankGroup::RankGroup(const lab::Directory& directory, const RankGroupOptions& options) {
  // The root's port is taken before any rank starts, so that nobody else can have it.
  const Meeting meeting = open_meeting(directory, options.hosts.at(0));
  const std::size_t count = options.hosts.size();
  ranks_.reserve(count);
  // By the environment: arguments are seen by every user of the machine.
  const std::string key = fmt::format("{:016x}", os::KernelRandom().next64());
  ::setenv("MRC_JOB_KEY", key.c_str(), 0);
  for (unsigned rank = 0; rank < count; ++rank) {
    std::vector<std::string> words = options.command;
    words.insert(words.end(),
                 {"--rank", std::to_string(rank), "--ranks", std::to_string(count), "--root",
                  fmt::format("{}:{}", meeting.address, meeting.listener.port())});
    if (rank == 0) {
      const int kept = ::dup(meeting.listener.descriptor());  // this one survives exec
      const os::Descriptor owner(kept);
      words.insert(words.end(), {"--listen-fd", std::to_string(kept)});
      start(directory, rank, options, words);
    } else {
      start(directory, rank, options, words);
    }
  }
}

void RankGroup::start(const lab::Directory& directory, unsigned rank,
                      const RankGroupOptions& options, const std::vector<std::string>& words) {
  Pipe output = make_pipe();
  Pipe errors = make_pipe();
  std::fflush(nullptr);
  const pid_t child = ::fork();
  if (child < 0) throw Failure(fmt::format("no process: {}", std::strerror(errno)));
  if (child == 0)
    be_rank(directory, options.hosts[rank], words, options.shows_output ? -1 : output.write.get(),
            errors.write.get());
  Rank made;
  made.process = child;
  made.life = os::Descriptor(static_cast<int>(::syscall(SYS_pidfd_open, child, 0U)));
  made.output = std::move(output.read);
  made.errors = std::move(errors.read);
  ranks_.push_back(std::move(made));
}

RankGroup::~RankGroup() {
  for (Rank& rank : ranks_) {
    if (rank.ended) continue;
    ::kill(rank.process, SIGKILL);
    ::waitpid(rank.process, nullptr, 0);
  }
}

bool RankGroup::running() const {
  for (const Rank& rank : ranks_)
    if (!rank.ended) return true;
  return false;
}

void RankGroup::signal(int number) {
  for (const Rank& rank : ranks_)
    if (!rank.ended) ::kill(rank.process, number);
}

void RankGroup::read_lines(Rank& rank, unsigned number, const OnLine& on_line) {
  take_bytes(rank.output, SIZE_MAX, rank.line);  // bounded below
  std::size_t from = 0;
  for (std::size_t end = 0; (end = rank.line.find('\n', from)) != std::string::npos;
       from = end + 1) {
    if (on_line) on_line(number, rank.line.substr(from, end - from));
  }
  rank.line.erase(0, from);
  if (rank.line.size() > kMaxLineBytes) rank.line.clear();
}

void RankGroup::read_errors(Rank& rank) { take_bytes(rank.errors, kMaxErrorBytes, rank.words); }

void RankGroup::take_end(unsigned number, const OnLine& on_line) {
  Rank& rank = ranks_[number];
  int status = 0;
  if (::waitpid(rank.process, &status, WNOHANG) != rank.process) return;
  rank.ended = true;
  read_lines(rank, number, on_line);
  read_errors(rank);
  const int code = WIFSIGNALED(status) ? kSignalBase + WTERMSIG(status) : WEXITSTATUS(status);
  if (code == 0 || result_ != 0) return;
  result_ = code;
  first_to_fail_ = number;
}

void RankGroup::poll(int timeout_ms, const OnLine& on_line) {
  std::vector<pollfd> waiting;
  waiting.reserve(3 * ranks_.size());
  for (const Rank& rank : ranks_) {
    const bool alive = !rank.ended;
    waiting.push_back({alive ? rank.life.get() : -1, POLLIN, 0});
    waiting.push_back({alive ? rank.output.get() : -1, POLLIN, 0});
    waiting.push_back({alive ? rank.errors.get() : -1, POLLIN, 0});
  }
  if (::poll(waiting.data(), waiting.size(), timeout_ms) <= 0) return;
  for (unsigned i = 0; i < ranks_.size(); ++i) {
    if ((waiting[3 * i + 1].revents & POLLIN) != 0) read_lines(ranks_[i], i, on_line);
    if ((waiting[3 * i + 2].revents & POLLIN) != 0) read_errors(ranks_[i]);
    if (waiting[3 * i].revents != 0) take_end(i, on_line);
  }
}

std::string RankGroup::complaint() const {
  if (result_ == 0) return {};
  const std::string& words = ranks_[first_to_fail_].words;
  const std::string line = words.substr(0, words.find('\n'));
  return fmt::format("rank {}: {}", first_to_fail_,
                     line.empty() ? fmt::format("ended with {}", result_) : line);
}

}  // namespace mrc::tool
