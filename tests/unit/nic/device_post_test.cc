// Posting: what is refused, how queues fill and empty, flushing, several threads at once.
#include <cerrno>

#include "device_fixture.h"

namespace mrc::nic::test {
namespace {

class DevicePost : public LoopTest {};

TEST_F(DevicePost, NeedsTheRightState) {
  a.make_qp();
  Arena from(*a.device, a.domain, 64);
  EXPECT_EQ(a.post(write(from, from, 8)), EINVAL);
  EXPECT_EQ(a.post_receive(1), EINVAL);
  ASSERT_EQ(a.qp->to_init({}), 0);
  EXPECT_EQ(a.post_receive(1), 0);
  EXPECT_EQ(a.post(write(from, from, 8)), EINVAL);
}

TEST_F(DevicePost, RefusesWhatItCannotCarry) {
  make_pair({.max_send_buffers = 2, .max_inline = 16});
  Arena from(*a.device, a.domain, 4096);
  Arena to(*b.device, b.domain, 4096);
  Arena foreign(*a.device, a.device->new_domain(), 4096);
  const auto refused = [&](std::span<const Buffer> buffers, auto change) {
    SendWork work{
        .buffers = buffers, .remote_address = to.address(), .remote_key = to.keys().remote};
    change(work);
    return a.post(work);
  };
  const auto unchanged = [](SendWork&) {};
  const Buffer good = from.buffer(0, 8);
  Buffer bad = good;
  bad.key ^= 0x10'0000;
  EXPECT_EQ(refused({&bad, 1}, unchanged), EINVAL);
  bad = from.buffer(4090, 7);
  EXPECT_EQ(refused({&bad, 1}, unchanged), EINVAL);
  bad = from.buffer(0, 8);
  bad.address -= 1;
  EXPECT_EQ(refused({&bad, 1}, unchanged), EINVAL);
  bad = foreign.buffer(0, 8);
  EXPECT_EQ(refused({&bad, 1}, unchanged), EINVAL);
  const std::array<Buffer, 3> three = {good, good, good};
  EXPECT_EQ(refused(three, unchanged), EINVAL);
  // Who asks for some inline bytes has as many as there are.
  EXPECT_EQ(a.qp->setup().max_inline, a.device->limits().max_inline);
  const Buffer long_one = from.buffer(0, a.device->limits().max_inline + 1);
  EXPECT_EQ(refused({&long_one, 1}, [](SendWork& w) { w.inline_data = true; }), EINVAL);
  EXPECT_EQ(refused({&good, 1}, [](SendWork& w) { w.kind = SendKind::kSend; }), EINVAL);
  EXPECT_EQ(refused({&good, 1}, [](SendWork& w) { w.kind = static_cast<SendKind>(9); }), EINVAL);
  EXPECT_EQ(refused({&good, 1}, [](SendWork& w) { w.remote_address = ~std::uint64_t{0}; }), EINVAL);
  // None of this left a trace.
  EXPECT_EQ(refused({&good, 1}, unchanged), 0);
  EXPECT_EQ(a.next_completion().status, core::CompletionStatus::kSuccess);
}

TEST_F(DevicePost, TakesAListUpToTheFirstBadOne) {
  make_pair();
  Arena from(*a.device, a.domain, 64);
  Arena to(*b.device, b.domain, 64);
  const Buffer good = from.buffer(0, 8);
  const Buffer bad{good.address, 8, 12345};
  SendWork work{
      .buffers = {&good, 1}, .remote_address = to.address(), .remote_key = to.keys().remote};
  std::vector<SendWork> list(4, work);
  list[2].buffers = {&bad, 1};
  std::size_t posted = 99;
  EXPECT_EQ(a.qp->post_sends(list, posted), EINVAL);
  EXPECT_EQ(posted, 2U);
  EXPECT_EQ(a.next_completion().status, core::CompletionStatus::kSuccess);
  EXPECT_EQ(a.next_completion().status, core::CompletionStatus::kSuccess);
}

TEST_F(DevicePost, UnsignaledSendsAreSilentAndGiveTheirCreditsBackWithASignaledOne) {
  make_pair({.max_sends = 8});
  Arena from(*a.device, a.domain, 64);
  Arena to(*b.device, b.domain, 64);
  SendWork work = write(from, to, 8);
  for (int round = 0; round < 5; ++round) {
    work.signaled = false;
    for (int i = 0; i < 7; ++i)
      ASSERT_EQ(a.post(work), 0);
    work.signaled = true;
    work.id = 42;
    ASSERT_EQ(a.post(work), 0);
    // Whether they are done or not: the queue is full until the signaled one is polled.
    EXPECT_EQ(a.post(work), ENOMEM);
    EXPECT_TRUE(eventually([&] { return a.qp->report().status.sends_outstanding == 0; }));
    EXPECT_EQ(a.post(work), ENOMEM);
    EXPECT_EQ(a.next_completion().id, 42U);
    WorkCompletion none;
    EXPECT_EQ(a.cq->poll({&none, 1}), 0);
  }
}

TEST_F(DevicePost, SignalAllSignalsAll) {
  make_pair({.signal_all = true});
  Arena from(*a.device, a.domain, 64);
  Arena to(*b.device, b.domain, 64);
  SendWork work = write(from, to, 8, 5);
  work.signaled = false;
  ASSERT_EQ(a.post(work), 0);
  EXPECT_EQ(a.next_completion().id, 5U);
}

TEST_F(DevicePost, TheReceiveQueueFillsAndEmpties) {
  make_pair({.max_receives = 2});
  EXPECT_EQ(b.post_receive(1), 0);
  EXPECT_EQ(b.post_receive(2), 0);
  EXPECT_EQ(b.post_receive(3), ENOMEM);
  Arena from(*a.device, a.domain, 64);
  Arena to(*b.device, b.domain, 64);
  SendWork work = write(from, to, 8);
  work.kind = SendKind::kWriteImmediate;
  ASSERT_EQ(a.post(work), 0);
  EXPECT_EQ(b.next_completion().id, 1U);
  EXPECT_EQ(b.post_receive(3), 0);
}

TEST_F(DevicePost, WorkOfAFailedQueuePairIsFlushedInOrder) {
  make_pair();
  Arena from(*a.device, a.domain, 64);
  LoopNet::FilterScope filter(*net,
                              [](const wire::Packet&, PortId, std::uint32_t) { return true; });
  ASSERT_EQ(a.post_receive(100), 0);
  for (std::uint64_t i = 0; i < 4; ++i)
    ASSERT_EQ(a.post(write(from, from, 8, i)), 0);
  ASSERT_EQ(a.qp->to_error(), 0);
  for (std::uint64_t i = 4; i < 8; ++i)
    ASSERT_EQ(a.post(write(from, from, 8, i)), 0);
  ASSERT_EQ(a.post_receive(101), 0);
  std::uint64_t next_send = 0;
  std::uint64_t next_receive = 100;
  for (int i = 0; i < 10; ++i) {
    const WorkCompletion flushed = a.next_completion();
    EXPECT_EQ(flushed.status, core::CompletionStatus::kFlushed);
    EXPECT_EQ(flushed.id, flushed.receive ? next_receive++ : next_send++);
  }
  EXPECT_EQ(next_send, 8U);
  EXPECT_EQ(next_receive, 102U);
}

TEST_F(DevicePost, AWrongKeyIsRefusedByThePeerAndSaidSo) {
  make_pair();
  Arena from(*a.device, a.domain, 64);
  Arena to(*b.device, b.domain, 64);
  SendWork work = write(from, to, 8);
  work.remote_key += 1;
  ASSERT_EQ(a.post(work), 0);
  EXPECT_EQ(a.next_completion().status, core::CompletionStatus::kRemoteAccess);
  EXPECT_TRUE(to.untouched(0, to.size()));
  EXPECT_NE(a.qp->report().explanation.find("refused the memory key"), std::string::npos);
}

TEST_F(DevicePost, AnImmediateWithoutAReceiveFailsBothEnds) {
  make_pair();
  Arena from(*a.device, a.domain, 64);
  Arena to(*b.device, b.domain, 64);
  SendWork work = write(from, to, 8);
  work.kind = SendKind::kWriteImmediate;
  ASSERT_EQ(a.post(work), 0);
  EXPECT_EQ(a.next_completion().status, core::CompletionStatus::kReceiveMissing);
  EXPECT_TRUE(eventually([&] { return b.qp->state() == core::QpState::kError; }));
}

TEST_F(DevicePost, ThreadsMayPostAndPollAtTheSameTime) {
  constexpr unsigned kThreads = 4;
  constexpr unsigned kEach = 500;
  constexpr std::size_t kBytes = 200;
  make_pair({.max_sends = 64});
  Arena from(*a.device, a.domain, kThreads * kEach * kBytes);
  Arena to(*b.device, b.domain, kThreads * kEach * kBytes);
  from.fill(3);
  std::atomic<unsigned> finished{0};
  std::atomic<unsigned> failed{0};
  std::atomic<bool> stopped{false};
  const auto poll = [&] {
    std::array<WorkCompletion, 8> done;
    const int count = a.cq->poll(done);
    for (int i = 0; i < count; ++i)
      if (done[static_cast<std::size_t>(i)].status != core::CompletionStatus::kSuccess) ++failed;
    if (count > 0) finished += static_cast<unsigned>(count);
    return count;
  };
  std::vector<std::thread> posters;
  for (unsigned t = 0; t < kThreads; ++t) {
    posters.emplace_back([&, t] {
      for (unsigned i = 0; i < kEach && !stopped; ++i) {
        const std::size_t at = (t * kEach + i) * kBytes;
        const Buffer buffer = from.buffer(at, kBytes);
        const SendWork work{.id = at,
                            .buffers = {&buffer, 1},
                            .remote_address = to.address() + at,
                            .remote_key = to.keys().remote};
        while (a.post(work) == ENOMEM && !stopped)
          poll();
      }
    });
  }
  EXPECT_TRUE(eventually([&] {
    poll();
    return finished == kThreads * kEach;
  }));
  stopped = true;
  for (std::thread& poster : posters)
    poster.join();
  EXPECT_EQ(failed, 0U);
  EXPECT_EQ(to.first_wrong(0, to.size(), 3), to.size());
}

}  // namespace
}  // namespace mrc::nic::test
