// After set-up the engine allocates nothing, whatever the network does to it.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <memory>
#include <vector>

#include "alloc/counting_new.h"
#include "base/prng.h"
#include "core/endpoint.h"
#include "support/engine_driver.h"

namespace mrc::test {
namespace {

constexpr unsigned kPorts = 4;
constexpr unsigned kEvs = 32;
constexpr std::uint32_t kMtu = 1024;
constexpr std::uint64_t kBase = 0x1'0000;
constexpr std::uint64_t kLength = 1 << 20;
constexpr QpNumber kQp{0x111};
constexpr QpNumber kDoomedQp{0x222};

Address address_of(int side) { return {0, static_cast<std::uint64_t>(side) + 1}; }

// Two engines and a rough network. Every call into an engine after set-up goes through watch(),
// which counts the allocations it makes; the network itself may allocate.
class RoughWorld {
 public:
  // The world of one of the engines.
  struct End : EngineWorld {
    End(RoughWorld& owner, int number) : world(owner), index(number) {}

    template <typename Call>
    auto run(const char*, Call&& call) {
      return world.watch(call);
    }
    PortMask free_ports() const { return free; }
    void send(const core::TxPacket& packet, PortMask) { world.carry(index, packet); }
    void on_completion(const core::Completion& completion) {
      world.sends_reported_ += completion.kind == core::CompletionKind::kSend ? 1 : 0;
    }
    void on_event(const core::Event&) { ++world.events_; }

    RoughWorld& world;
    int index;
    PortMask free;
    EngineDriver<End> driver{*this};
  };

  RoughWorld() {
    std::vector<core::EvEntry> entries;
    for (unsigned i = 0; i < kEvs; ++i)
      entries.push_back({0x1000 + i, static_cast<PortId>(i % kPorts + 1)});
    profile_ = core::EvProfile::create(entries).value();
    for (int side : {0, 1})
      connect(side);
  }

  template <typename Call>
  auto watch(Call call) {
    const std::uint64_t before = allocation_count();
    auto result = call();
    allocations_ += allocation_count() - before;
    return result;
  }

  core::Endpoint& endpoint(int side) { return ends_[side].driver.engine(); }
  core::QpStatus status(int side, QpNumber qp = kQp) { return endpoint(side).query_qp(qp).value(); }
  std::uint64_t allocations() const { return allocations_; }
  std::uint64_t sends_reported() const { return sends_reported_; }
  std::uint64_t events_seen() const { return events_; }
  TimeNs now() const { return now_; }
  bool blackout = false;

  bool post(QpNumber qp, std::uint32_t length, bool immediate, Rkey key) {
    const Status posted = watch([&] {
      return endpoint(0).post_send(now_, qp,
                                   {.length = length,
                                    .remote_address = kBase,
                                    .remote_key = key,
                                    .with_immediate = immediate});
    });
    return posted.ok();
  }
  void post_receive() {
    const Status posted = watch([&] { return endpoint(1).post_receive(kQp, {}); });
    static_cast<void>(posted.ok());  // a full queue is fine
  }
  void set_port(int side, PortId port, bool up) {
    EXPECT_TRUE(watch([&] { return endpoint(side).set_port_up(now_, port, up); }).ok());
  }
  void deny(EvIndex ev, bool denied) {
    EXPECT_TRUE(watch([&] { return endpoint(0).set_ev_denied(now_, kQp, ev, denied); }).ok());
  }
  Rkey key() const { return key_; }

  // Until the next packet or timer, and that.
  void step() {
    TimeNs next = network_.empty() ? kNever : network_.begin()->first;
    for (int side : {0, 1})
      next = std::min(next, endpoint(side).next_deadline());
    if (next == kNever) next = now_ + kMicrosecondNs;
    now_ = std::max(now_, next);
    for (End& end : ends_)
      if (end.driver.timer_due(now_)) end.driver.fire(now_);
    while (!network_.empty() && network_.begin()->first <= now_) {
      const Flight flight = network_.begin()->second;
      network_.erase(network_.begin());
      land(flight);
    }
    for (End& end : ends_) {
      end.free = PortMask(dice_.below(4) == 0 ? dice_.below(16) : 15U);
      end.driver.pump(now_);
    }
  }

 private:
  struct Flight {
    int to = 0;
    core::TxPacket packet;
  };

  void connect(int side) {
    EXPECT_TRUE(ends_[side]
                    .driver
                    .start({.address = address_of(side),
                            .port_count = kPorts,
                            .seed = static_cast<std::uint64_t>(side) + 7})
                    .ok());
    SeededKeys keys(3);
    key_ = endpoint(side)
               .register_memory({.address = kBase, .length = kLength, .remote_write = true}, keys)
               .value();
    for (const QpNumber qp : {kQp, kDoomedQp}) {
      EXPECT_TRUE(endpoint(side).create_qp({.number = qp, .max_sends = 16}).ok());
      EXPECT_TRUE(endpoint(side).init_qp(qp, {.ev_profile = &profile_}).ok());
      EXPECT_TRUE(endpoint(side)
                      .ready_to_receive(
                          qp, {.remote = address_of(1 - side), .remote_qp = qp, .path_mtu = kMtu})
                      .ok());
      EXPECT_TRUE(endpoint(side)
                      .ready_to_send(0, qp, {.exponential_retries = core::kMaxExponentialRetries})
                      .ok());
    }
  }

  void land(const Flight& flight) {
    core::Arrival arrival = arrival_of(flight.packet, address_of(1 - flight.to));
    arrival.congestion_experienced = dice_.below(20) == 0;
    const std::uint32_t fate = dice_.below(100);
    const bool write = wire::is_write(flight.packet.packet.bth.opcode);
    if (write && fate < 5) arrival.trim = core::TrimState::kTrimmed;
    if (write && fate == 6) arrival.refusal = core::CallerRefusal::kNoPacketBuffer;
    EngineDriver<End>& driver = ends_[flight.to].driver;
    if (fate == 7) return driver.deliver_corrupt(now_, arrival, flight.packet.packet);
    driver.deliver(now_, arrival, flight.packet.packet, [](const core::RxResult&) {});
  }

  void carry(int from, const core::TxPacket& packet) {
    const std::uint32_t fate = dice_.below(100);
    if (blackout || fate < 5) return;
    const DurationNs delay = 5'000 + (packet.entropy * 7) % 32 * 100;
    for (unsigned copies = fate < 7 ? 2 : 1; copies > 0; --copies)
      network_.emplace(now_ + delay * copies, Flight{1 - from, packet});
  }

  core::EvProfile profile_;
  End ends_[2] = {{*this, 0}, {*this, 1}};
  Rkey key_{};
  std::multimap<TimeNs, Flight> network_;
  Prng dice_{11};
  TimeNs now_ = 0;
  std::uint64_t allocations_ = 0;
  std::uint64_t sends_reported_ = 0;
  std::uint64_t events_ = 0;
};

TEST(Allocation, TheCounterCounts) {
  const std::uint64_t before = allocation_count();
  const std::size_t bytes = live_bytes();
  auto block = std::make_unique<std::vector<int>>(100);
  EXPECT_EQ(allocation_count() - before, 2U);
  EXPECT_EQ(live_bytes() - bytes, sizeof(std::vector<int>) + 100 * sizeof(int));
  block.reset();
  EXPECT_EQ(live_bytes(), bytes);
}

TEST(Allocation, ThePacketPathAllocatesNothing) {
  RoughWorld world;
  constexpr std::uint64_t kMessages = 400;
  std::uint64_t posted = 0;
  for (unsigned step = 0; world.sends_reported() < kMessages && step < 1'000'000; ++step) {
    world.post_receive();
    if (posted < kMessages && world.post(kQp, 10'000, posted % 3 == 0, world.key())) ++posted;
    // Longer than several retry intervals.
    world.blackout = world.now() > 200 * kMicrosecondNs && world.now() < 3 * kMillisecondNs;
    if (step % 500 == 100) world.set_port(static_cast<int>(step / 500 % 2), PortId{2}, false);
    if (step % 500 == 300) world.set_port(static_cast<int>(step / 500 % 2), PortId{2}, true);
    if (step % 300 == 50) world.deny(EvIndex{5}, step % 600 < 300);
    world.step();
  }
  EXPECT_EQ(world.sends_reported(), kMessages);
  EXPECT_EQ(world.allocations(), 0U);
  // The story was as rough as meant.
  const core::QpCounters sent = world.status(0).counters;
  const core::QpCounters received = world.status(1).counters;
  EXPECT_GT(sent.retransmitted, 100U);
  EXPECT_GT(sent.trimmed, 50U);
  EXPECT_GT(sent.refused, 5U);
  EXPECT_GT(sent.timeouts, 0U);
  EXPECT_GT(sent.probes_sent, 0U);
  EXPECT_GT(sent.marked, 50U);
  EXPECT_GT(received.duplicates, 20U);
  EXPECT_GT(received.immediates, 100U);
  EXPECT_GT(world.events_seen(), 20U);
}

TEST(Allocation, AQueuePairThatFailsAllocatesNothing) {
  RoughWorld world;
  ASSERT_TRUE(world.post(kDoomedQp, 10'000, false, Rkey{0xBAD}));
  for (unsigned step = 0; world.sends_reported() == 0 && step < 100'000; ++step)
    world.step();
  EXPECT_EQ(world.status(0, kDoomedQp).state, core::QpState::kError);
  EXPECT_EQ(world.allocations(), 0U);
}

}  // namespace
}  // namespace mrc::test
