// What the tests' driver of the engine promises to the worlds around it.
#include "support/engine_driver.h"

#include <gtest/gtest.h>

#include <string>

namespace mrc::test {
namespace {

constexpr QpNumber kQp{100};
constexpr Address kSelf{1, 1};
constexpr Address kPeer{1, 2};
constexpr std::uint64_t kBase = 0x1'0000;

// One engine that writes down in letters what happens: (a)rrival, (p)acket, (c)ompletion, (i)dle, a
// full stop for the end of a pump.
class Scribe : public EngineWorld {
 public:
  Scribe() {
    EXPECT_TRUE(driver.start({.address = kSelf}).ok());
    core::Endpoint& engine = driver.engine();
    SeededKeys keys(1);
    key = engine.register_memory({.address = kBase, .length = 4096, .remote_write = true}, keys)
              .value();
    EXPECT_TRUE(engine.create_qp({.number = kQp}).ok());
    EXPECT_TRUE(engine.init_qp(kQp, {}).ok());
    EXPECT_TRUE(engine.ready_to_receive(kQp, {.remote = kPeer, .remote_qp = kQp}).ok());
    EXPECT_TRUE(engine.ready_to_send(0, kQp, {}).ok());
  }

  PortMask free_ports() const { return free; }
  void send(const core::TxPacket& packet, PortMask) {
    story += "p";
    last = packet;
    free = free.without(packet.port);
  }
  bool polls_results() const { return polls; }
  void on_completion(const core::Completion&) { story += "c"; }
  void on_idle(PortMask) { story += "i"; }
  void after_pump() { story += "."; }

  void post(std::uint32_t length) {
    EXPECT_TRUE(driver.engine().post_send(now, kQp, {.length = length}).ok());
  }

  EngineDriver<Scribe> driver{*this};
  Rkey key{};
  TimeNs now = 1'000;
  PortMask free = PortMask::first(1);
  bool polls = true;
  std::string story;
  core::TxPacket last;
};

TEST(EngineDriver, AsksForAPacketOnlyWhileAPortIsFree) {
  Scribe world;
  world.post(100'000);
  world.driver.pump(world.now);
  EXPECT_EQ(world.story, "p.");
  world.driver.pump(world.now);
  EXPECT_EQ(world.story, "p..");
}

TEST(EngineDriver, SaysWhenThereIsNothingToSendThoughAPortIsFree) {
  Scribe world;
  world.driver.pump(world.now);
  EXPECT_EQ(world.story, "i.");
}

TEST(EngineDriver, LeavesResultsToAProgramThatLooksLater) {
  Scribe world;
  world.post(100);
  ASSERT_TRUE(world.driver.engine().fail_qp(world.now, kQp).ok());
  world.polls = false;
  world.driver.pump(world.now);
  EXPECT_EQ(world.story, "i.");
  world.driver.drain();
  EXPECT_EQ(world.story, "i.c");
}

TEST(EngineDriver, PlacesThePayloadBeforeItAsksForCompletions) {
  Scribe world;
  ASSERT_TRUE(world.driver.engine().post_receive(kQp, {.id = 1}).ok());
  const wire::Packet packet{
      .bth = {.opcode = wire::Opcode::kWriteOnlyImm, .destination = kQp},
      .body = wire::Write{.address = kBase, .key = world.key, .message_length = 64}};
  const core::Arrival arrival{.source = kPeer, .payload_length = 64};
  world.driver.deliver(world.now, arrival, packet, [&](const core::RxResult& result) {
    EXPECT_EQ(result.placement.length, 64U);
    world.story += "a";
  });
  world.driver.pump(world.now);
  EXPECT_EQ(world.story.substr(0, 3), "acp");
}

TEST(EngineDriver, StepsFromDeadlineToDeadlineAndStopsAtTheLimit) {
  Scribe world;
  EXPECT_FALSE(world.driver.step(world.now, 5'000));
  EXPECT_EQ(world.now, 5'000);
  world.post(100);
  world.driver.pump(world.now);
  const TimeNs deadline = world.driver.engine().next_deadline();
  EXPECT_FALSE(world.driver.step(world.now, deadline - 1));
  EXPECT_EQ(world.now, deadline - 1);
  EXPECT_TRUE(world.driver.timer_due(deadline));
  EXPECT_TRUE(world.driver.step(world.now, deadline + 1));
  EXPECT_EQ(world.now, deadline);
}

TEST(EngineDriver, NoticesAPacketThatReadsDifferentlyOnTheOtherSide) {
  Scribe world;
  world.post(100);
  world.driver.pump(world.now);
  EXPECT_EQ(wire_fault(world.last), nullptr);
  core::TxPacket cut = world.last;
  cut.payload_length = 96;
  EXPECT_NE(wire_fault(cut), nullptr);
  core::TxPacket long_payload = world.last;
  long_payload.payload_length = core::kMaxPathMtu + 200;
  EXPECT_NE(wire_fault(long_payload), nullptr);
}

}  // namespace
}  // namespace mrc::test
