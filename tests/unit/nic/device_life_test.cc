// Life cycles: devices, queue pairs, children of fork, idleness, failure.
#include <poll.h>
#include <sys/resource.h>
#include <sys/wait.h>

#include <atomic>
#include <cerrno>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <new>
#include <set>

#include "device_fixture.h"

namespace mrc::nic::test {
namespace {

class DeviceLife : public LoopTest {};

std::size_t entries_of(const char* folder) {
  std::size_t count = 0;
  for ([[maybe_unused]] const auto& entry : std::filesystem::directory_iterator(folder))
    ++count;
  return count;
}

TEST_F(DeviceLife, ThreadsAndDescriptorsGoWithTheLastReference) {
  a = {};
  b = {};
  const std::size_t descriptors = entries_of("/proc/self/fd");
  const std::size_t threads = entries_of("/proc/self/task");
  for (int i = 0; i < 3; ++i) {
    open(a, 0);
    a.make_qp();
    EXPECT_EQ(entries_of("/proc/self/task"), threads + 1);
    // A queue pair keeps its device alive.
    a.device.reset();
    EXPECT_EQ(a.qp->to_init({}), 0);
    a.qp.reset();
    a = {};
    EXPECT_TRUE(eventually([&] { return entries_of("/proc/self/task") == threads; }));
    EXPECT_EQ(entries_of("/proc/self/fd"), descriptors);
  }
}

TEST_F(DeviceLife, QueuePairsGoThroughTheirStatesInOrderOnly) {
  a.make_qp();
  EXPECT_EQ(a.qp->state(), core::QpState::kReset);
  EXPECT_EQ(a.qp->to_rtr({.gid = b.device->gid(), .settings = {.remote_qp = QpNumber{77}}}),
            EINVAL);
  EXPECT_EQ(a.qp->to_rts({}), EINVAL);
  ASSERT_EQ(a.qp->to_init({}), 0);
  EXPECT_EQ(a.qp->to_init({}), EINVAL);
  EXPECT_EQ(a.qp->to_rtr({.gid = b.device->gid(), .settings = {.remote_qp = QpNumber{2}}}), EINVAL);
  EXPECT_EQ(a.qp->state(), core::QpState::kInit);
  ASSERT_EQ(a.qp->to_rtr({.gid = b.device->gid(), .settings = {.remote_qp = QpNumber{77}}}), 0);
  EXPECT_EQ(a.qp->to_rts({.timeout = 25}), EINVAL);
  ASSERT_EQ(a.qp->to_rts({}), 0);
  ASSERT_EQ(a.qp->to_error(), 0);
  EXPECT_EQ(a.qp->state(), core::QpState::kError);
  EXPECT_EQ(a.qp->to_init({}), EINVAL);
  ASSERT_EQ(a.qp->to_reset(), 0);
  EXPECT_EQ(a.qp->state(), core::QpState::kReset);
  EXPECT_EQ(a.qp->to_init({}), 0);
}

TEST_F(DeviceLife, AQueuePairWorksAgainAfterReset) {
  make_pair();
  Arena from(*a.device, a.domain, 64 << 10);
  Arena to(*b.device, b.domain, 64 << 10);
  for (unsigned round = 1; round <= 3; ++round) {
    from.fill(round);
    ASSERT_EQ(a.post(write(from, to, from.size(), round)), 0);
    EXPECT_EQ(a.next_completion().id, round);
    EXPECT_EQ(to.first_wrong(0, to.size(), round), to.size());
    // Completions nobody polled go with the reset, and their credits come back.
    for (unsigned i = 0; i < 100; ++i)
      ASSERT_EQ(a.post(write(from, to, 8)), 0);
    ASSERT_EQ(a.qp->to_reset(), 0);
    ASSERT_EQ(b.qp->to_reset(), 0);
    WorkCompletion none;
    EXPECT_EQ(a.cq->poll({&none, 1}), 0);
    // Packets of the former life may still be under way; other numbers tell them from new ones.
    const Psn first(round * 1'000'000);
    connect(a, b, {.first_psn = first}, {.first_psn = first});
  }
}

TEST_F(DeviceLife, GrantsWhatItCanAndRefusesTheRest) {
  const DeviceLimits& limits = a.device->limits();
  ASSERT_EQ(a.device->create_completion_queue(10, nullptr, nullptr, a.cq), 0);
  EXPECT_GE(a.cq->depth(), 10U);
  std::unique_ptr<CompletionQueue> none;
  EXPECT_EQ(a.device->create_completion_queue(0, nullptr, nullptr, none), EINVAL);
  EXPECT_EQ(a.device->create_completion_queue(limits.max_cq_depth + 1, nullptr, nullptr, none),
            EINVAL);
  ASSERT_EQ(b.device->create_completion_queue(10, nullptr, nullptr, b.cq), 0);
  const QpSetup good{.send_cq = a.cq.get(), .receive_cq = a.cq.get()};
  const auto refused = [&](auto change) {
    QpSetup setup = good;
    change(setup);
    const QpSetup before = setup;
    std::unique_ptr<QueuePair> qp;
    const int error = a.device->create_queue_pair(setup, qp);
    EXPECT_EQ(setup.max_sends, before.max_sends);
    return error;
  };
  EXPECT_EQ(refused([&](QpSetup& s) { s.send_cq = nullptr; }), EINVAL);
  EXPECT_EQ(refused([&](QpSetup& s) { s.receive_cq = b.cq.get(); }), EINVAL);
  EXPECT_EQ(refused([&](QpSetup& s) { s.max_sends = limits.max_sends + 1; }), EINVAL);
  EXPECT_EQ(refused([&](QpSetup& s) { s.max_send_buffers = limits.max_buffers + 1; }), EINVAL);
  EXPECT_EQ(refused([&](QpSetup& s) { s.max_inline = limits.max_inline + 1; }), EINVAL);
  QpSetup least = good;
  least.max_sends = least.max_send_buffers = least.max_receives = 0;
  ASSERT_EQ(a.device->create_queue_pair(least, a.qp), 0);
  EXPECT_EQ(least.max_sends, 1U);
  EXPECT_EQ(least.max_send_buffers, 1U);
  EXPECT_EQ(a.cq->users(), 2U);
  a.qp.reset();
  EXPECT_EQ(a.cq->users(), 0U);
}

TEST_F(DeviceLife, QueuePairNumbersAreDistinctAndNameTheProcess) {
  std::set<QpNumber> seen;
  std::vector<std::unique_ptr<QueuePair>> qps;
  ASSERT_EQ(a.device->create_completion_queue(16, nullptr, nullptr, a.cq), 0);
  for (int i = 0; i < 1000; ++i) {
    QpSetup setup{.send_cq = a.cq.get(), .receive_cq = a.cq.get(), .max_sends = 4};
    std::unique_ptr<QueuePair> qp;
    ASSERT_EQ(a.device->create_queue_pair(setup, qp), 0);
    EXPECT_GE(qp->number(), kFirstUsableQp);
    EXPECT_EQ(process_of(qp->number()), 0);
    EXPECT_TRUE(seen.insert(qp->number()).second);
    qps.push_back(std::move(qp));
  }
  EXPECT_EQ(a.device->report().queue_pairs, 1000U);
}

TEST_F(DeviceLife, AForkedChildGetsEioAndItsParentGoesOn) {
  make_pair();
  Arena from(*a.device, a.domain, 4096);
  Arena to(*b.device, b.domain, 4096);
  const pid_t child = fork();
  if (child == 0) {
    int wrong = 0;
    wrong |= a.post(write(from, to, 8)) == EIO ? 0 : 1;
    wrong |= a.post_receive(1) == EIO ? 0 : 2;
    WorkCompletion none;
    wrong |= a.cq->poll({&none, 1}) == -EIO ? 0 : 4;
    MemoryKeys keys;
    wrong |= a.device->register_memory(1, &none, 8, 0, true, true, keys) == EIO ? 0 : 8;
    wrong |= a.qp->to_error() == EIO ? 0 : 16;
    std::unique_ptr<CompletionQueue> cq;
    wrong |= a.device->create_completion_queue(8, nullptr, nullptr, cq) == EIO ? 0 : 32;
    QpTotals totals;
    wrong |= a.qp->totals(totals) == EIO ? 0 : 64;
    // Destructors leave alone what is not ours.
    a.qp.reset();
    a.cq.reset();
    a.device.reset();
    _exit(wrong);
  }
  int status = -1;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status));
  EXPECT_EQ(WEXITSTATUS(status), 0);
  from.fill(1);
  ASSERT_EQ(a.post(write(from, to, 4096)), 0);
  EXPECT_EQ(a.next_completion().status, core::CompletionStatus::kSuccess);
  EXPECT_EQ(to.first_wrong(0, 4096, 1), 4096U);
}

double cpu_seconds() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return static_cast<double>(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) +
         static_cast<double>(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) * 1e-6;
}

// Processor time, not wall time: a busy loop would take a whole second.
TEST_F(DeviceLife, AnIdleDeviceUsesNoProcessor) {
  make_pair();
  Arena from(*a.device, a.domain, 64);
  Arena to(*b.device, b.domain, 64);
  ASSERT_EQ(a.post(write(from, to, 8)), 0);
  ASSERT_EQ(a.next_completion().status, core::CompletionStatus::kSuccess);
  std::this_thread::sleep_for(std::chrono::milliseconds(50));
  const double before = cpu_seconds();
  std::this_thread::sleep_for(std::chrono::seconds(1));
  EXPECT_LT(cpu_seconds() - before, 0.2);
}

TEST_F(DeviceLife, ASilentPeerEndsInAnErrorWithItsReason) {
  a.make_qp();
  b.make_qp();
  const std::unique_ptr<AsyncEvents> events = a.device->subscribe();
  ASSERT_NE(events, nullptr);
  connect(a, b, {.timeout = 4, .linear_retries = 2, .exponential_retries = 2});
  Arena from(*a.device, a.domain, 1 << 16);
  Arena to(*b.device, b.domain, 1 << 16);
  LoopNet::FilterScope filter(*net,
                              [](const wire::Packet&, PortId, std::uint32_t) { return true; });
  ASSERT_EQ(a.post(write(from, to, 1 << 16, 1)), 0);
  ASSERT_EQ(a.post(write(from, to, 8, 2)), 0);
  const WorkCompletion first = a.next_completion();
  EXPECT_EQ(first.id, 1U);
  EXPECT_EQ(first.status, core::CompletionStatus::kRetryExceeded);
  const WorkCompletion second = a.next_completion();
  EXPECT_EQ(second.id, 2U);
  EXPECT_EQ(second.status, core::CompletionStatus::kFlushed);
  AsyncEvent event;
  ASSERT_EQ(events->wait(event), 0);
  EXPECT_EQ(event.kind, AsyncKind::kQpFatal);
  EXPECT_EQ(event.qp, a.qp.get());
  events->acknowledge(event);
  EXPECT_EQ(a.qp->state(), core::QpState::kError);
  const QpReport report = a.qp->report();
  EXPECT_EQ(report.failure, core::CompletionStatus::kRetryExceeded);
  EXPECT_EQ(report.paths.size(), 32U);
  for (const char* part : {"peer 10.0.0.2", "did not answer", "32 paths of 4 planes", "2+2 retries",
                           "it never answered", "UDP port 4791"}) {
    EXPECT_NE(report.explanation.find(part), std::string::npos) << report.explanation;
  }
}

TEST_F(DeviceLife, DestroyingWaitsForAcknowledgementOfItsEvents) {
  make_pair();
  const std::unique_ptr<AsyncEvents> events = a.device->subscribe();
  const std::unique_ptr<AsyncEvents> unread = a.device->subscribe();
  Arena from(*a.device, a.domain, 64);
  Arena to(*b.device, b.domain, 64);
  SendWork work = write(from, to, 8);
  ++work.remote_key;
  ASSERT_EQ(a.post(work), 0);
  AsyncEvent event;
  ASSERT_EQ(events->wait(event), 0);
  std::atomic<bool> destroyed{false};
  std::thread destroyer([&] {
    a.qp.reset();
    destroyed = true;
  });
  std::this_thread::sleep_for(std::chrono::milliseconds(20));
  EXPECT_FALSE(destroyed);
  events->acknowledge(event);
  destroyer.join();
  EXPECT_TRUE(destroyed);
  pollfd readable{.fd = unread->descriptor(), .events = POLLIN, .revents = 0};
  EXPECT_EQ(poll(&readable, 1, 0), 0) << "who did not read it finds nothing any more";
}

// Wherever it strikes, in a program's thread or in the engine's, it must not keep the lock.
TEST_F(DeviceLife, WithoutMemoryInTheMiddleOfARoundPacketsAreLostAndNothingElse) {
  make_pair();
  Arena from(*a.device, a.domain, 64 << 10);
  Arena to(*b.device, b.domain, 64 << 10);
  from.fill(3);
  std::atomic<unsigned> failures = 0;
  LoopNet::FilterScope filter(*net, [&](const wire::Packet&, PortId, std::uint32_t) {
    if (failures.load() < 20 && failures.fetch_add(1) % 2 == 0) throw std::bad_alloc();
    return false;
  });
  ASSERT_EQ(a.post(write(from, to, from.size())), 0);
  EXPECT_EQ(a.next_completion().status, core::CompletionStatus::kSuccess);
  EXPECT_EQ(to.first_wrong(0, to.size(), 3), to.size());
  EXPECT_GE(failures, 20U);
  EXPECT_EQ(a.device->report().threads, 1U);
}

std::uint64_t blocked_by_the_engine() {
  std::uint64_t blocked = 0;
  for (const auto& task : std::filesystem::directory_iterator("/proc/self/task")) {
    std::string name;
    std::ifstream(task.path() / "comm") >> name;
    if (name != "mrc-loop0") continue;
    std::ifstream status(task.path() / "status");
    for (std::string word; status >> word;) {
      if (word == "SigBlk:") status >> std::hex >> blocked;
    }
  }
  return blocked;
}

// A thread's own faults reach the handlers of the program, whose signals are not the thread's.
// While it starts, libc has all of them blocked.
TEST_F(DeviceLife, TheEngineThreadBlocksSignalsOfOthersAlone) {
  const std::uint64_t fault = std::uint64_t{1} << (SIGSEGV - 1);
  std::uint64_t blocked = blocked_by_the_engine();
  for (int tries = 0; (blocked & fault) != 0 && tries < 1000; ++tries) {
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
    blocked = blocked_by_the_engine();
  }
  const auto blocks = [&](int signal) { return (blocked >> (signal - 1) & 1) != 0; };
  for (const int signal : {SIGINT, SIGTERM, SIGHUP, SIGALRM, SIGUSR1, SIGCHLD, SIGPIPE})
    EXPECT_TRUE(blocks(signal)) << signal;
  for (const int signal : {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT})
    EXPECT_FALSE(blocks(signal)) << signal;
}

}  // namespace
}  // namespace mrc::nic::test
