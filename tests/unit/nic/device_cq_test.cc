// Completion queues: overrun, resizing, notification and its acknowledgement; and the wake-up
// protocol of the engine, since a notification is how a lost wake-up would show.
#include <fcntl.h>
#include <poll.h>

#include <cerrno>

#include "device_fixture.h"

namespace mrc::nic::test {
namespace {

class DeviceCq : public LoopTest {
 protected:
  // Like make_pair, with a channel at a.
  void make_pair_with_channel(const QpSetup& setup = {}) {
    ASSERT_EQ(CompletionChannel::create(channel), 0);
    ASSERT_EQ(a.device->create_completion_queue(256, &cookie, channel, a.cq), 0);
    make_pair(setup);
  }
  bool event_waits(int timeout_ms) const {
    pollfd fd{.fd = channel->descriptor(), .events = POLLIN, .revents = 0};
    return poll(&fd, 1, timeout_ms) == 1;
  }

  std::shared_ptr<CompletionChannel> channel;
  int cookie = 0;
};

TEST_F(DeviceCq, OverrunBreaksTheQueueAndItsQueuePairs) {
  a.make_qp({.max_sends = 64}, 4);
  b.make_qp();
  connect(a, b);
  const std::unique_ptr<AsyncEvents> events = a.device->subscribe();
  Arena from(*a.device, a.domain, 64);
  Arena to(*b.device, b.domain, 64);
  const unsigned depth = a.cq->depth();
  for (unsigned i = 0; i <= depth; ++i)
    ASSERT_EQ(a.post(write(from, to, 8, i)), 0);
  AsyncEvent event;
  ASSERT_EQ(events->wait(event), 0);
  EXPECT_EQ(event.kind, AsyncKind::kCqError);
  EXPECT_EQ(event.cq, a.cq.get());
  events->acknowledge(event);
  for (unsigned i = 0; i < depth; ++i) {
    WorkCompletion done;
    ASSERT_EQ(a.cq->poll({&done, 1}), 1);
    EXPECT_EQ(done.id, i);
  }
  WorkCompletion none;
  EXPECT_EQ(a.cq->poll({&none, 1}), -EOVERFLOW);
  EXPECT_TRUE(eventually([&] { return a.qp->state() == core::QpState::kError; }));
}

TEST_F(DeviceCq, ResizingKeepsWhatIsThere) {
  a.make_qp({}, 4);
  b.make_qp();
  connect(a, b);
  Arena from(*a.device, a.domain, 64);
  Arena to(*b.device, b.domain, 64);
  for (unsigned i = 0; i < 3; ++i)
    ASSERT_EQ(a.post(write(from, to, 8, i)), 0);
  EXPECT_TRUE(eventually([&] { return a.qp->report().status.sends_outstanding == 0; }));
  EXPECT_EQ(a.cq->resize(2), EINVAL);
  EXPECT_EQ(a.cq->resize(0), EINVAL);
  ASSERT_EQ(a.cq->resize(100), 0);
  EXPECT_GE(a.cq->depth(), 100U);
  for (unsigned i = 0; i < 3; ++i)
    EXPECT_EQ(a.next_completion().id, i);
  EXPECT_EQ(a.cq->resize(2), 0);
}

TEST_F(DeviceCq, NotifiesOnceForEachRequest) {
  make_pair_with_channel();
  EXPECT_EQ(channel->users(), 1U);
  Arena from(*a.device, a.domain, 64);
  Arena to(*b.device, b.domain, 64);
  // Not asked for, not told.
  ASSERT_EQ(a.post(write(from, to, 8)), 0);
  EXPECT_EQ(a.next_completion().status, core::CompletionStatus::kSuccess);
  EXPECT_FALSE(event_waits(0));
  ASSERT_EQ(a.cq->request_notification(false), 0);
  EXPECT_FALSE(event_waits(0));
  ASSERT_EQ(a.post(write(from, to, 8)), 0);
  ASSERT_EQ(a.post(write(from, to, 8)), 0);
  void* who = nullptr;
  ASSERT_EQ(channel->wait(who), 0);
  EXPECT_EQ(who, &cookie);
  a.next_completion();
  a.next_completion();
  EXPECT_FALSE(event_waits(0));
  a.cq->acknowledge(1);
  a.cq->wait_acknowledged();
}

TEST_F(DeviceCq, SolicitedOnlyWaitsForWhatThePeerSolicits) {
  make_pair_with_channel();
  Arena at_a(*a.device, a.domain, 64);
  Arena at_b(*b.device, b.domain, 64);
  ASSERT_EQ(a.post_receive(6), 0);
  ASSERT_EQ(a.post_receive(7), 0);
  ASSERT_EQ(a.cq->request_notification(true), 0);
  ASSERT_EQ(a.post(write(at_a, at_b, 8)), 0);
  a.next_completion();
  EXPECT_FALSE(event_waits(0));
  SendWork work = write(at_b, at_a, 8);
  work.kind = SendKind::kWriteImmediate;
  ASSERT_EQ(b.post(work), 0);
  EXPECT_EQ(a.next_completion().id, 6U);
  EXPECT_FALSE(event_waits(0));
  work.solicited = true;
  ASSERT_EQ(b.post(work), 0);
  void* who = nullptr;
  ASSERT_EQ(channel->wait(who), 0);
  EXPECT_EQ(a.next_completion().id, 7U);
  a.cq->acknowledge(1);
}

TEST_F(DeviceCq, AChannelMadeNonBlockingSaysSo) {
  make_pair_with_channel();
  ASSERT_EQ(fcntl(channel->descriptor(), F_SETFL, O_NONBLOCK), 0);
  void* who = nullptr;
  EXPECT_EQ(channel->wait(who), EAGAIN);
}

TEST_F(DeviceCq, DestroyingWaitsUntilItsEventsAreAcknowledged) {
  make_pair_with_channel();
  Arena from(*a.device, a.domain, 64);
  Arena to(*b.device, b.domain, 64);
  ASSERT_EQ(a.cq->request_notification(false), 0);
  ASSERT_EQ(a.post(write(from, to, 8)), 0);
  void* who = nullptr;
  ASSERT_EQ(channel->wait(who), 0);
  a.qp.reset();
  CompletionQueue* cq = a.cq.get();
  std::atomic<bool> gone{false};
  std::thread destroyer([&] {
    a.cq.reset();
    gone = true;
  });
  std::this_thread::sleep_for(std::chrono::milliseconds(20));
  EXPECT_FALSE(gone);
  cq->acknowledge(1);
  destroyer.join();
  EXPECT_EQ(channel->users(), 0U);
}

TEST_F(DeviceCq, AChannelIsSilentAboutAQueueThatIsGone) {
  make_pair_with_channel();
  Arena from(*a.device, a.domain, 64);
  Arena to(*b.device, b.domain, 64);
  ASSERT_EQ(a.cq->request_notification(false), 0);
  ASSERT_EQ(a.post(write(from, to, 8)), 0);
  ASSERT_TRUE(event_waits(5000));
  a.qp.reset();
  a.cq.reset();
  EXPECT_FALSE(event_waits(0)) << "a program that then waits for the event would hang";
}

// A program that never polls in a loop: it posts, sleeps on the channel, polls once, and so on. Any
// lost wake-up would hang it, since nothing else happens on this device.
TEST_F(DeviceCq, NoWakeUpIsLost) {
  make_pair_with_channel();
  Arena from(*a.device, a.domain, 64 << 10);
  Arena to(*b.device, b.domain, 64 << 10);
  constexpr unsigned kRounds = 1500;
  std::atomic<unsigned> rounds{0};
  std::thread program([&] {
    std::array<WorkCompletion, 4> done;
    for (unsigned i = 0; i < kRounds; ++i) {
      if (a.cq->request_notification(false) != 0) return;
      if (a.post(write(from, to, i % 16 == 0 ? 64 << 10 : 8, i)) != 0) return;
      void* who = nullptr;
      if (channel->wait(who) != 0) return;
      a.cq->acknowledge(1);
      while (a.cq->poll(done) == 0)
        std::this_thread::yield();
      rounds = i + 1;
      if (i % 64 == 0) std::this_thread::sleep_for(std::chrono::microseconds(300));
    }
  });
  EXPECT_TRUE(eventually([&] { return rounds == kRounds; })) << "stuck after " << rounds;
  program.join();
}

// The same with several threads, some of which poll hard now and then.
TEST_F(DeviceCq, PostersPollersAndSleepersShareADevice) {
  constexpr unsigned kThreads = 3;
  constexpr unsigned kRounds = 300;
  std::array<Side, kThreads> mine;
  std::array<Side, kThreads> theirs;
  for (unsigned t = 0; t < kThreads; ++t) {
    mine[t].device = a.device;
    theirs[t].device = b.device;
    mine[t].make_qp();
    theirs[t].make_qp();
    connect(mine[t], theirs[t]);
  }
  std::atomic<unsigned> finished{0};
  std::vector<std::thread> threads;
  for (unsigned t = 0; t < kThreads; ++t) {
    threads.emplace_back([&, t] {
      Arena from(*a.device, mine[t].domain, 4096);
      Arena to(*b.device, theirs[t].domain, 4096);
      const Buffer buffer = from.buffer(0, 4096);
      for (unsigned i = 0; i < kRounds; ++i) {
        ASSERT_EQ(mine[t].post({.id = i,
                                .buffers = {&buffer, 1},
                                .remote_address = to.address(),
                                .remote_key = to.keys().remote}),
                  0);
        const bool hard = (i / 32 + t) % 2 == 0;
        WorkCompletion done;
        const auto end = std::chrono::steady_clock::now() + kPatience;
        while (mine[t].cq->poll({&done, 1}) == 0 && std::chrono::steady_clock::now() < end)
          if (!hard) std::this_thread::sleep_for(std::chrono::microseconds(100));
        ASSERT_EQ(done.id, i);
        ++finished;
      }
    });
  }
  for (std::thread& thread : threads)
    thread.join();
  EXPECT_EQ(finished, kThreads * kRounds);
}

}  // namespace
}  // namespace mrc::nic::test
