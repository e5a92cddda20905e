// Scenarios in which things go wrong on purpose.
#include <dirent.h>
#include <dlfcn.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <thread>
#include <vector>

#include "link.h"
#include "mrc_ctl.h"
#include "scenarios.h"

namespace mrc::test {
namespace {

constexpr std::size_t kLarge = std::size_t{32} << 20;

std::size_t thread_count() {
  DIR* const tasks = opendir("/proc/self/task");
  MRC_CHECK(tasks != nullptr);
  std::size_t count = 0;
  while (const dirent* entry = readdir(tasks))
    count += entry->d_name[0] != '.' ? 1 : 0;
  closedir(tasks);
  return count;
}

// How many threads there are before the plug-in is loaded. Sanitizers start one with the first.
std::size_t threads_before() {
  std::thread([] {}).join();
  return thread_count();
}

// A thread that was joined may be listed a little longer.
void expect_threads(std::size_t count) {
  const Patience patience("the engine thread to end");
  while (thread_count() != count)
    patience.wait();
}

LinkOptions pair_options(const Setting& setting, int number = 0) {
  const int other = 1 - setting.rank;
  return {.rank = setting.rank, .next = other, .previous = other, .number = number};
}

// Tests until it is done or fails. For peers that went away.
Result outcome(Driver& driver, void* request) {
  const Patience patience("an outcome");
  int done = 0;
  while (done == 0) {
    const Result result = driver.test(request, &done, nullptr);
    if (result != Result::kSuccess) return result;
    patience.wait();
  }
  return Result::kSuccess;
}

// Receives and sends of large messages, as many as go.
void flood(Driver& driver, Link& link, Buffer& in, Buffer& out, std::vector<void*>& requests) {
  for (int i = 0; i < 8; ++i)
    requests.push_back(post_receive(driver, link.receive, in, kLarge, 0));
  for (int i = 0; i < 1'000 && requests.size() < 12; ++i) {
    void* request = nullptr;
    if (driver.isend(link.send, out.data(), kLarge, 0, out.memory(), &request) != Result::kSuccess)
      return;
    if (request != nullptr) requests.push_back(request);
    usleep(1'000);
  }
}

void check_message(Driver& driver, Link& link, const Setting& setting) {
  Buffer in(driver, link.receive, 10'000);
  Buffer out(driver, link.send, 10'000);
  in.clear();
  out.fill(static_cast<std::uint64_t>(setting.rank), 10'000);
  void* const receive = post_receive(driver, link.receive, in, 10'000, 0);
  void* const send = post_send(driver, link.send, out, 10'000, 0);
  MRC_CHECK(finish(driver, receive) == 10'000 && finish(driver, send) == 10'000);
  in.check(static_cast<std::uint64_t>(1 - setting.rank), 10'000);
}

}  // namespace

void abort_in_flight(const Setting& setting) {
  const std::size_t threads = threads_before();
  const Meeting meeting(setting.directory, setting.rank);
  {
    Driver driver(setting.plugin, setting.version);
    driver.init();
    for (int round = 0; round < 3; ++round) {
      Link link = make_link(driver, meeting, pair_options(setting, round));
      std::vector<void*> requests;
      {
        Buffer in(driver, link.receive, kLarge);
        Buffer out(driver, link.send, kLarge);
        flood(driver, link, in, out, requests);
        if (setting.rank == 1) {
          // Each one is done or fails; none hangs.
          for (void* request : requests) {
            const Result result = outcome(driver, request);
            MRC_CHECK(result == Result::kSuccess || result == Result::kRemoteError);
          }
        }
      }
      close_link(driver, link);
    }
    Link link = make_link(driver, meeting, pair_options(setting, 9));
    check_message(driver, link, setting);
    close_link(driver, link);
  }
  expect_threads(threads);
}

void peer_killed(const Setting& setting) {
  const std::size_t threads = threads_before();
  {
    Driver driver(setting.plugin, setting.version);
    driver.init();
    const Meeting meeting(setting.directory, setting.rank);
    Link link = make_link(driver, meeting, pair_options(setting));
    {
      Buffer in(driver, link.receive, kLarge);
      Buffer out(driver, link.send, kLarge);
      check_message(driver, link, setting);
      std::vector<void*> requests;
      flood(driver, link, in, out, requests);
      if (setting.rank == 1) kill(getpid(), SIGKILL);
      bool told = false;
      for (void* request : requests) {
        const Result result = outcome(driver, request);
        told = told || result == Result::kRemoteError;
        MRC_CHECK(result == Result::kSuccess || result == Result::kRemoteError);
      }
      MRC_CHECK(told);
      MRC_CHECK(Driver::log_text().find("is lost") != std::string::npos);
    }
    close_link(driver, link);
  }
  expect_threads(threads);
}

void too_long(const Setting& setting) {
  Driver driver(setting.plugin, setting.version);
  driver.init();
  const Meeting meeting(setting.directory, setting.rank);
  Link link = make_link(driver, meeting, pair_options(setting));
  {
    Buffer in(driver, link.receive, 1'000);
    Buffer out(driver, link.send, 1'001);
    in.clear();
    if (setting.rank == 1) {
      void* const receive = post_receive(driver, link.receive, in, 1'000, 0);
      MRC_CHECK(outcome(driver, receive) == Result::kInvalidUsage);
      in.check(0, 0);
    } else {
      const Patience patience("an error");
      Result result = Result::kSuccess;
      while (result == Result::kSuccess) {
        void* request = nullptr;
        result = driver.isend(link.send, out.data(), 1'001, 0, out.memory(), &request);
        MRC_CHECK(request == nullptr);
        patience.wait();
      }
      MRC_CHECK(result == Result::kInvalidUsage);
    }
    MRC_CHECK(Driver::log_text().find("same sizes") != std::string::npos);
    meeting.barrier("told", setting.ranks);
  }
  close_link(driver, link);
}

void close_early(const Setting& setting) {
  Driver driver(setting.plugin, setting.version);
  driver.init();
  const Meeting meeting(setting.directory, setting.rank);
  for (int round = 0; round < 20; ++round) {
    Link link = make_link(driver, meeting, pair_options(setting, round));
    {
      Buffer in(driver, link.receive, 200'000);
      Buffer out(driver, link.send, 200'000);
      if (setting.rank == 1) {
        finish(driver, post_receive(driver, link.receive, in, 200'000, 0));
      } else {
        finish(driver, post_send(driver, link.send, out, 200'000, 0));
      }
    }
    close_link(driver, link);
  }
}

void bad_input(const Setting& setting) {
  const std::size_t threads = threads_before();
  {
    Driver driver(setting.plugin, setting.version);
    if (driver.finalize_context) MRC_CHECK(driver.finalize_context(nullptr) == Result::kSuccess);
    for (const char* hidden : {"ibv_get_device_list", "mrc_create_qp"})
      MRC_CHECK(dlsym(driver.library(), hidden) == nullptr);
    driver.init();
    Properties of;
    MRC_CHECK(driver.properties(-1, of) == Result::kInvalidArgument);
    MRC_CHECK(driver.properties(1'000, of) == Result::kInvalidArgument);
    MRC_CHECK(driver.devices(nullptr) == Result::kInvalidArgument);
    Handle handle{};
    void* comm = nullptr;
    MRC_CHECK(driver.listen(99, handle.data(), &comm) != Result::kSuccess && comm == nullptr);
    MRC_CHECK(driver.listen(0, nullptr, &comm) == Result::kInvalidArgument);
    MRC_CHECK(driver.connect(0, handle.data(), &comm) == Result::kInvalidArgument);
    std::fill(handle.begin(), handle.end(), std::byte{0xff});
    MRC_CHECK(driver.connect(0, handle.data(), &comm) == Result::kInvalidArgument);
    void* listener = nullptr;
    MRC_CHECK(driver.listen(0, handle.data(), &listener) == Result::kSuccess);
    Handle forged = handle;
    forged[16] = std::byte{1};  // a number in it that this process never gave out
    MRC_CHECK(driver.connect(0, forged.data(), &comm) == Result::kInvalidArgument);
    MRC_CHECK(driver.close_listen(listener) == Result::kSuccess);
    const Patience patience("a refusal");
    Result result = Result::kSuccess;
    while (result == Result::kSuccess) {
      result = driver.connect(0, handle.data(), &comm);
      patience.wait();
      usleep(1'000);
    }
    MRC_CHECK(result == Result::kRemoteError && comm == nullptr);
    MRC_CHECK(driver.close_send(nullptr) == Result::kSuccess);
    MRC_CHECK(driver.close_receive(nullptr) == Result::kSuccess);
    MRC_CHECK(driver.close_listen(nullptr) == Result::kSuccess);
    int done = 0;
    MRC_CHECK(driver.test(nullptr, &done, nullptr) == Result::kInvalidArgument);
    std::byte byte{};
    void* memory = nullptr;
    MRC_CHECK(driver.reg_mr(nullptr, &byte, 1, nccl::kPointerHost, &memory) ==
              Result::kInvalidArgument);
  }
  expect_threads(threads);
}

void no_device(const Setting& setting) {
  Driver driver(setting.plugin, setting.version);
  MRC_CHECK(driver.try_init() != Result::kSuccess);
  // The cause is in the log that NCCL keeps, not only on stderr.
  const std::string log = Driver::log_text();
  const char* const cause = std::getenv("CAUSE");
  MRC_CHECK(cause != nullptr && log.find(cause) < log.find("no MRC device can be used"));
  MRC_CHECK(log.find("no MRC device can be used") != std::string::npos);
  if (driver.finalize_context) MRC_CHECK(driver.finalize_context(nullptr) == Result::kSuccess);
}

// Two ends that would lose each other's packets without a word.
void refused_peer(const Setting& setting) {
  const Meeting meeting(setting.directory, setting.rank);
  Driver driver(setting.plugin, setting.version);
  driver.init();
  void* comm = nullptr;
  Result result = Result::kSuccess;
  const Patience patience("a refusal");
  if (setting.rank == 0) {
    Handle handle{};
    void* listener = nullptr;
    MRC_CHECK(driver.listen(0, handle.data(), &listener) == Result::kSuccess);
    meeting.put("handle", std::as_bytes(std::span(handle)));
    while (result == Result::kSuccess && comm == nullptr) {
      result = driver.accept(listener, &comm);
      patience.wait();
    }
    MRC_CHECK(driver.close_listen(listener) == Result::kSuccess);
  } else {
    const std::vector<std::byte> bytes = meeting.get("handle");
    Handle handle{};
    std::memcpy(handle.data(), bytes.data(), handle.size());
    while (result == Result::kSuccess && comm == nullptr) {
      result = driver.connect(0, handle.data(), &comm);
      patience.wait();
    }
  }
  MRC_CHECK(result != Result::kSuccess && comm == nullptr);
  const char* const cause = std::getenv("CAUSE");
  MRC_CHECK(cause != nullptr && Driver::log_text().find(cause) != std::string::npos);
}

void after_fork(const Setting& setting) {
  Driver driver(setting.plugin, setting.version);
  driver.init();
  Handle handle{};
  void* listener = nullptr;
  MRC_CHECK(driver.listen(0, handle.data(), &listener) == Result::kSuccess);
  const pid_t child = fork();
  MRC_CHECK(child >= 0);
  if (child == 0) {
    void* comm = nullptr;
    MRC_CHECK(driver.accept(listener, &comm) == Result::kInvalidUsage);
    MRC_CHECK(driver.connect(0, handle.data(), &comm) == Result::kInvalidUsage);
    MRC_CHECK(driver.close_listen(listener) == Result::kSuccess);
    _exit(0);
  }
  int status = 0;
  MRC_CHECK(waitpid(child, &status, 0) == child && WIFEXITED(status) && WEXITSTATUS(status) == 0);
  // The parent goes on as if nothing had been.
  Link link;
  const Patience patience("a connection with itself");
  while (link.send == nullptr || link.receive == nullptr) {
    if (link.send == nullptr)
      MRC_CHECK(driver.connect(0, handle.data(), &link.send) == Result::kSuccess);
    if (link.receive == nullptr)
      MRC_CHECK(driver.accept(listener, &link.receive) == Result::kSuccess);
    patience.wait();
  }
  {
    Buffer in(driver, link.receive, 5'000);
    Buffer out(driver, link.send, 5'000);
    in.clear();
    out.fill(1, 5'000);
    void* const receive = post_receive(driver, link.receive, in, 5'000, 0);
    void* const send = post_send(driver, link.send, out, 5'000, 0);
    MRC_CHECK(finish(driver, receive) == 5'000 && finish(driver, send) == 5'000);
    in.check(1, 5'000);
  }
  MRC_CHECK(driver.close_listen(listener) == Result::kSuccess);
  close_link(driver, link);
}

void ports(const Setting& setting) {
  const Meeting meeting(setting.directory, 99);
  ibv_device** const list = ibv_get_device_list(nullptr);
  MRC_CHECK(list != nullptr && list[0] != nullptr);
  ibv_context* const verbs = ibv_open_device(list[0]);
  ibv_free_device_list(list);
  MRC_CHECK(verbs != nullptr);
  mrc_context* const context = mrc_create_context(verbs, nullptr);
  MRC_CHECK(context != nullptr);
  const auto set = [&](unsigned port, mrc_ctl_port_admin_state state) {
    mrc_ctl_port_attr attr{.port_admin_state = state};
    MRC_CHECK(mrc_ctl_modify_port(context, static_cast<std::uint8_t>(port), &attr,
                                  MRC_CTL_PORT_ADMIN_STATE) == 0);
  };
  meeting.get("round.0");
  for (unsigned turn = 0; !meeting.exists("finished.0"); ++turn) {
    const unsigned port = turn % 4 + 1;
    set(port, MRC_CTL_PORT_ADMIN_DISABLED);
    usleep(100'000);
    set(port, MRC_CTL_PORT_ADMIN_ENABLED);
    usleep(20'000);
  }
  MRC_CHECK(mrc_destroy_context(context) == 0 && ibv_close_device(verbs) == 0);
}

}  // namespace mrc::test
