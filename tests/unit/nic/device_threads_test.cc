// A device with several engines: what is spread over them, and what stays one.
#include <cerrno>
#include <map>
#include <set>

#include "device_udp_fixture.h"

namespace mrc::nic::test {
namespace {

constexpr unsigned kThreads = 3;
constexpr unsigned kQps = 6;

// Two devices with several queue pairs between them; one completion queue at each end for all.
class DeviceThreads : public UdpDevicesTest {
 protected:
  DeviceThreads() : UdpDevicesTest(kThreads) {}
  // Leaves the queue pairs in `from_a` and `from_b`.
  void make_pairs(unsigned count, unsigned depth = 1024) {
    for (unsigned i = 0; i < count; ++i) {
      a.make_qp({}, depth);
      b.make_qp();
      connect(a, b);
      from_a.push_back(std::move(a.qp));
      from_b.push_back(std::move(b.qp));
    }
  }
  static int post(QueuePair& qp, const Buffer& from, Arena& to, std::size_t offset,
                  std::uint64_t id) {
    std::size_t posted = 0;
    const SendWork work{.id = id,
                        .buffers = {&from, 1},
                        .remote_address = to.address() + offset,
                        .remote_key = to.keys().remote};
    return qp.post_sends({&work, 1}, posted);
  }
  // Posts `rounds` messages on every queue pair in both directions and checks what arrives.
  void exchange(std::size_t message, unsigned rounds, unsigned salt) {
    Arena a_out(*a.device, a.domain, message);
    Arena b_out(*b.device, b.domain, message);
    Arena a_in(*a.device, a.domain, kQps * message);
    Arena b_in(*b.device, b.domain, kQps * message);
    a_out.fill(salt);
    b_out.fill(salt + 1);
    for (unsigned i = 0; i < rounds * kQps; ++i) {
      const std::size_t place = i % kQps * message;
      ASSERT_EQ(post(*from_a[i % kQps], a_out.buffer(0, message), b_in, place, i), 0);
      ASSERT_EQ(post(*from_b[i % kQps], b_out.buffer(0, message), a_in, place, i), 0);
    }
    for (Side* side : {&a, &b}) {
      std::map<QpNumber, std::uint64_t> last;
      for (unsigned i = 0; i < rounds * kQps; ++i) {
        const WorkCompletion done = side->next_completion();
        ASSERT_EQ(done.status, core::CompletionStatus::kSuccess);
        const auto [at, first] = last.try_emplace(done.qp, done.id);
        if (!first) {
          EXPECT_EQ(done.id, at->second + kQps);
        }
        at->second = done.id;
      }
    }
    for (unsigned i = 0; i < kQps; ++i) {
      EXPECT_EQ(b_in.first_wrong(i * message, (i + 1) * message, salt), (i + 1) * message);
      EXPECT_EQ(a_in.first_wrong(i * message, (i + 1) * message, salt + 1), (i + 1) * message);
    }
    EXPECT_TRUE(a_in.guards_intact());
    EXPECT_TRUE(b_in.guards_intact());
  }

  std::vector<std::unique_ptr<QueuePair>> from_a;
  std::vector<std::unique_ptr<QueuePair>> from_b;
};

TEST_F(DeviceThreads, QueuePairsAreSpreadEvenly) {
  EXPECT_EQ(a.device->report().threads, kThreads);
  make_pairs(kQps);
  std::map<unsigned, unsigned> of_process;
  for (const auto& qp : from_a)
    ++of_process[process_of(qp->number())];
  EXPECT_EQ(of_process.size(), kThreads);
  for (const auto& [process, count] : of_process)
    EXPECT_EQ(count, kQps / kThreads) << "process " << process;
  EXPECT_EQ(a.device->report().queue_pairs, kQps);
  // A place that became free is taken first.
  const unsigned freed = process_of(from_a[1]->number());
  from_a.erase(from_a.begin() + 1);
  a.make_qp();
  EXPECT_EQ(process_of(a.qp->number()), freed);
}

TEST_F(DeviceThreads, OneCompletionQueueServesThemAll) {
  make_pairs(kQps);
  EXPECT_EQ(a.cq->users(), 2 * kQps);
  exchange(1 << 20, 8, 21);
  // Pauses send the threads back to sleep; small messages find them there.
  for (unsigned round = 0; round < 20; ++round) {
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
    exchange(64, 1, 30 + round);
  }
  const DeviceReport report = a.device->report();
  std::uint64_t received = 0;
  for (const PortReport& port : report.ports)
    received += port.counters.packets_received;
  EXPECT_GE(received, kQps * 8 * ((1 << 20) / report.path_mtu));
  from_a.clear();
  from_b.clear();
  EXPECT_EQ(a.cq->users(), 0U);
}

TEST_F(DeviceThreads, NotificationsComeFromAllOfThem) {
  std::shared_ptr<CompletionChannel> channel;
  ASSERT_EQ(CompletionChannel::create(channel), 0);
  int cookie = 0;
  ASSERT_EQ(a.device->create_completion_queue(64, &cookie, channel, a.cq), 0);
  make_pairs(kQps);
  Arena out(*a.device, a.domain, 64);
  Arena in(*b.device, b.domain, 64);
  for (unsigned i = 0; i < kQps; ++i) {
    ASSERT_EQ(a.cq->request_notification(false), 0);
    ASSERT_EQ(post(*from_a[i], out.buffer(0, 64), in, 0, i), 0);
    void* told = nullptr;
    ASSERT_EQ(channel->wait(told), 0);
    EXPECT_EQ(told, &cookie);
    a.cq->acknowledge(1);
    EXPECT_EQ(a.next_completion().id, i);
  }
}

TEST_F(DeviceThreads, AKeyIsGoodForAllEnginesUntilItIsGone) {
  make_pairs(kQps);
  Arena out(*a.device, a.domain, 64);
  Arena in(*b.device, b.domain, kQps * 64);
  out.fill(5);
  for (unsigned i = 0; i < kQps; ++i)
    ASSERT_EQ(post(*from_a[i], out.buffer(0, 64), in, i * 64, i), 0);
  for (unsigned i = 0; i < kQps; ++i)
    EXPECT_EQ(a.next_completion().status, core::CompletionStatus::kSuccess);
  const std::uint32_t stale = in.keys().remote;
  in.deregister();
  in.clear();
  for (unsigned i = 0; i < kQps; ++i) {
    const Buffer buffer = out.buffer(0, 64);
    const SendWork work{
        .id = i, .buffers = {&buffer, 1}, .remote_address = in.address(), .remote_key = stale};
    std::size_t posted = 0;
    ASSERT_EQ(from_a[i]->post_sends({&work, 1}, posted), 0);
    EXPECT_EQ(a.next_completion().status, core::CompletionStatus::kRemoteAccess);
  }
  EXPECT_TRUE(in.untouched(0, in.size()));
}

TEST_F(DeviceThreads, AnOverrunReachesQueuePairsOfOtherEngines) {
  make_pairs(kThreads, 4);
  const std::unique_ptr<AsyncEvents> events = a.device->subscribe();
  Arena out(*a.device, a.domain, 64);
  Arena in(*b.device, b.domain, 64);
  for (unsigned i = 0; i <= a.cq->depth(); ++i)
    ASSERT_EQ(post(*from_a[0], out.buffer(0, 8), in, 0, i), 0);
  AsyncEvent event;
  ASSERT_EQ(events->wait(event), 0);
  EXPECT_EQ(event.kind, AsyncKind::kCqError);
  EXPECT_EQ(event.cq, a.cq.get());
  events->acknowledge(event);
  for (const auto& qp : from_a)
    EXPECT_TRUE(eventually([&] { return qp->state() == core::QpState::kError; }));
}

TEST_F(DeviceThreads, PortsAreTheDevicesAndToldOnce) {
  make_pairs(kQps);
  const std::unique_ptr<AsyncEvents> events = a.device->subscribe();
  const auto enable = [&](bool on) {
    return a.device->node().update([&](node::NodeSnapshot& s) {
      s.ports_enabled = on ? s.ports_enabled.with(PortId{2}) : s.ports_enabled.without(PortId{2});
      return 0;
    });
  };
  for (const bool on : {false, true, false}) {
    ASSERT_EQ(enable(on), 0);
    EXPECT_TRUE(eventually([&] { return a.device->port_active(PortId{2}) == on; }));
    AsyncEvent event;
    ASSERT_EQ(events->wait(event), 0);
    EXPECT_EQ(event.kind, on ? AsyncKind::kPortActive : AsyncKind::kPortError);
    EXPECT_EQ(event.port, PortId{2});
    events->acknowledge(event);
  }
  exchange(256 << 10, 2, 40);
}

TEST_F(DeviceThreads, NothingIsLeftWhenADeviceEnds) {
  make_pairs(kThreads);
  std::set<unsigned> before;
  for (const auto& qp : from_a)
    before.insert(process_of(qp->number()));
  from_a.clear();
  a.cq.reset();
  a.device.reset();
  a.domain = 0;
  open(a, 1);
  make_pairs(kThreads);
  std::set<unsigned> after;
  for (const auto& qp : from_a)
    after.insert(process_of(qp->number()));
  EXPECT_EQ(after, before);
}

}  // namespace
}  // namespace mrc::nic::test
