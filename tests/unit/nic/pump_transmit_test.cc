// What one round of an engine sends, and in which order. The engines stand still: a test holds
// their locks and runs them round by round.
#include <algorithm>
#include <cstddef>
#include <functional>
#include <memory>
#include <utility>
#include <vector>

#include "device_fixture.h"

namespace mrc::nic::test {
namespace {

constexpr unsigned kBurst = 6;  // 64 packets are ten bursts and a rest
constexpr unsigned kWholeBursts = 60;
constexpr std::size_t kPacket = 4096;

class PumpTransmitTest : public LoopTest {
 protected:
  void SetUp() override {
    open(a, 0, 1, kBurst);
    open(b, 1, 1, kBurst);
  }
  static Engine& engine(const Side& side) {
    return static_cast<DeviceImpl&>(*side.device).group().lead();
  }
  // One round of the engine, whose lock the test has; what it sent is in `sent`.
  void run(const Side& side) {
    sent.clear();
    paths.clear();
    engine(side).pump().round(EnginePump::Driver::kThread, Engine::clock());
  }
  std::size_t count(bool data) const {
    return static_cast<std::size_t>(std::ranges::count_if(
        sent, [=](const wire::Packet& packet) { return is_data(packet) == data; }));
  }
  static bool is_data(const wire::Packet& packet) {
    return std::holds_alternative<wire::Write>(packet.body);
  }
  // How often the next packet is for another queue pair.
  unsigned changes() const {
    unsigned count = 0;
    for (std::size_t i = 1; i < sent.size(); ++i)
      count += sent[i].bth.destination != sent[i - 1].bth.destination ? 1 : 0;
    return count;
  }

  // How many packets in a row took one path, then the next.
  std::vector<std::size_t> in_a_row() const {
    std::vector<std::size_t> lengths;
    for (std::size_t i = 0; i < paths.size(); ++i) {
      if (i == 0 || paths[i] != paths[i - 1]) lengths.push_back(0);
      ++lengths.back();
    }
    return lengths;
  }

  std::vector<wire::Packet> sent;
  std::vector<std::uint32_t> paths;  // that they took
  LoopNet::FilterScope watch{*net, [this](const wire::Packet& packet, PortId, std::uint32_t path) {
                               sent.push_back(packet);
                               paths.push_back(path);
                               return false;
                             }};
};

// With answers in the budget, or a budget of 64, the last burst would be cut in two.
TEST_F(PumpTransmitTest, ARoundSendsWholeBurstsHoweverMuchItAnswers) {
  make_pair();
  Arena a_memory(*a.device, a.domain, 1 << 20);
  Arena b_memory(*b.device, b.domain, 1 << 20);
  {
    const EngineGuard hold_a(engine(a));
    const EngineGuard hold_b(engine(b));
    for (unsigned i = 0; i < 4; ++i)
      ASSERT_EQ(b.post(write(b_memory, a_memory, kPacket)), 0);
    run(b);
    ASSERT_EQ(count(true), 4U);
    ASSERT_EQ(a.post(write(a_memory, b_memory, 1 << 20)), 0);
    run(a);
    EXPECT_EQ(count(true), kWholeBursts);
    EXPECT_GT(count(false), 0U);
    EXPECT_EQ(engine(a).pump().next_run(), 0U);
  }
  EXPECT_EQ(a.next_completion().status, core::CompletionStatus::kSuccess);
}

TEST_F(PumpTransmitTest, TheMoreIsUnderWayTheMoreTakesOnePath) {
  a.domain = a.device->new_domain();
  b.domain = b.device->new_domain();
  Arena a_memory(*a.device, a.domain, 1 << 20);
  Arena b_memory(*b.device, b.domain, 1 << 20);
  const auto lengths = [&](std::size_t packets) {
    make_pair();
    std::vector<std::size_t> result;
    {
      const EngineGuard hold_a(engine(a));
      const EngineGuard hold_b(engine(b));
      EXPECT_EQ(a.post(write(a_memory, b_memory, packets * kPacket)), 0);
      run(a);
      result = in_a_row();  // before the engines go on
    }
    EXPECT_EQ(a.next_completion().status, core::CompletionStatus::kSuccess);
    return result;
  };
  using Lengths = std::vector<std::size_t>;
  EXPECT_EQ(lengths(kBurst - 2), Lengths{kBurst - 2});
  EXPECT_EQ(lengths(kBurst + 2), (Lengths{kBurst, 2}));
  EXPECT_EQ(lengths(4 * kBurst), (Lengths{2 * kBurst, 2 * kBurst}));
}

// Whose packets came in turns is answered one after the other, the longer answers first: of the
// segments of one message only the last may be shorter.
TEST_F(PumpTransmitTest, AnswersOfAQueuePairLeaveBehindEachOther) {
  constexpr unsigned kEach = 3;
  make_pair();
  const std::unique_ptr<QueuePair> first_a = std::move(a.qp);
  const std::unique_ptr<QueuePair> first_b = std::move(b.qp);
  make_pair();
  Arena a_memory(*a.device, a.domain, kPacket);
  Arena b_memory(*b.device, b.domain, kPacket);
  const SendWork one = write(a_memory, b_memory, kPacket);
  {
    const EngineGuard hold_a(engine(a));
    const EngineGuard hold_b(engine(b));
    for (unsigned i = 0; i < kEach; ++i) {
      std::size_t posted = 0;
      ASSERT_EQ(first_a->post_sends({&one, 1}, posted), 0);
      run(a);
      ASSERT_EQ(a.post(one), 0);
      run(a);
    }
    run(b);
    EXPECT_GE(count(false), 2 * kEach);
    // On a slow machine there are more of them; order is made among eight.
    sent.resize(std::min<std::size_t>(sent.size(), 8));
    EXPECT_EQ(changes(), 1U);
    EXPECT_TRUE(std::ranges::is_sorted(sent, std::ranges::greater(), [this](const auto& packet) {
      return std::pair(packet.bth.destination == sent.front().bth.destination,
                       header_length(packet));
    }));
  }
  for (unsigned i = 0; i < 2 * kEach; ++i)
    EXPECT_EQ(a.next_completion().status, core::CompletionStatus::kSuccess);
}

}  // namespace
}  // namespace mrc::nic::test
