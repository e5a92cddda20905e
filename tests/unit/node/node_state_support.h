// What the tests of the node state share: a directory of their own, states to put into it, and
// child processes.
#pragma once

#include <grp.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "node/node_state.h"
#include "support/temporary_directory.h"

namespace mrc::node::test {

using mrc::test::TemporaryDirectory;

inline std::unique_ptr<NodeState> open_state(const std::string& directory) {
  std::string error;
  auto state = NodeState::open(directory, error);
  EXPECT_NE(state, nullptr) << error;
  return state;
}

inline bool readable(int fd, int timeout_ms) {
  pollfd entry{.fd = fd, .events = POLLIN, .revents = 0};
  return poll(&entry, 1, timeout_ms) == 1;
}

inline std::size_t entries_in(const std::string& directory) {
  std::size_t count = 0;
  for ([[maybe_unused]] const auto& entry : std::filesystem::directory_iterator(directory))
    ++count;
  return count;
}

inline ProfileEv make_ev(std::uint32_t entropy, PortId port) {
  ProfileEv ev;
  ev.value = wire::structured_ev(entropy);
  ev.compact = ev.value;
  ev.port = port;
  ev.populated = true;
  return ev;
}

// A format and an EV profile of `count` EVs, both online under `id`, and a CC profile.
inline void put_profiles(NodeSnapshot& state, std::uint64_t id, unsigned count) {
  EvFormatProfile& format = state.formats[id];
  format.state = ProfileState::kOnline;
  format.kind = wire::EvKind::kStructured;
  format.field_widths = {16, 16};
  NodeEvProfile& profile = state.ev_profiles[id];
  profile.state = ProfileState::kOnline;
  profile.mode = EvMode::kExplicit;
  profile.format_id = id;
  profile.min_active = 1;
  profile.event_mask = 3;
  profile.evs.clear();
  for (unsigned i = 0; i < count; ++i)
    profile.evs.push_back(make_ev(0x1'0000 + i, PortId{static_cast<std::uint8_t>(1 + i % 4)}));
  NodeCcProfile& cc = state.cc_profiles[id];
  cc.state = ProfileState::kOnline;
  cc.cc.nscc.base_rtt_ns = 12'000;
  cc.cc.nscc.gamma = 0.8F;
}

// Runs `body` in a child, which ends with its result. Killed by the destructor if still alive.
class ChildProcess {
 public:
  explicit ChildProcess(const std::function<int()>& body) : pid_(fork()) {
    if (pid_ == 0) _exit(body());
  }
  ~ChildProcess() {
    if (pid_ > 0) kill_and_wait();
  }
  ChildProcess(const ChildProcess&) = delete;
  ChildProcess& operator=(const ChildProcess&) = delete;

  void kill_and_wait() {
    kill(pid_, SIGKILL);
    wait();
  }
  // Its exit status, or -1 when a signal ended it.
  int wait() {
    int status = 0;
    waitpid(pid_, &status, 0);
    pid_ = -1;
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  }

 private:
  pid_t pid_;
};

// Gives up root for good; only for children.
inline bool become(uid_t user) {
  return setgroups(0, nullptr) == 0 && setresgid(user, user, user) == 0 &&
         setresuid(user, user, user) == 0;
}

// A byte from a child says that it is ready; it then stays until it is killed.
class Ready {
 public:
  Ready() {
    if (pipe(ends_) != 0) std::abort();
  }
  ~Ready() {
    close(ends_[0]);
    close(ends_[1]);
  }
  Ready(const Ready&) = delete;
  Ready& operator=(const Ready&) = delete;

  bool tell() const { return write(ends_[1], "r", 1) == 1; }
  int tell_and_stay() const {
    alarm(60);  // whatever becomes of the test
    if (!tell()) return 1;
    while (true)
      pause();
  }
  bool await() const {
    char byte = 0;
    return readable(ends_[0], 20'000) && read(ends_[0], &byte, 1) == 1;
  }

 private:
  int ends_[2] = {-1, -1};
};

}  // namespace mrc::node::test
