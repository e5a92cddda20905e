// Queues, rates, marks, trimming and faults of a lab's network, on a clock of the test's own.
#include "lab/network.h"

#include <gtest/gtest.h>

#include "lab_frames.h"

namespace mrc::lab::test {
namespace {

class LabNetwork : public ::testing::Test {
 protected:
  void SetUp() override { make({}); }
  void make(const NetworkOptions& options) {
    network = std::make_unique<Network>(routing, options, pool, arrivals);
  }
  void send(const FrameSpec& spec, Picoseconds now = 0, unsigned plane = 0) {
    network->send(now, now, plane, spec.source, put(pool, make_frame(routing, spec)));
  }
  void run_all() {
    while (network->next_event() != fabric::kForever)
      network->run(network->next_event());
  }
  LinkCounters total() const {
    LinkCounters sum;
    for (std::uint32_t i = 0; i < topology.link_count(); ++i)
      sum.add(network->counters(LinkId{i}));
    return sum;
  }
  std::uint64_t drops(DropCause cause) const { return total().drops[static_cast<unsigned>(cause)]; }
  void fault(const std::string& text) {
    const fabric::Fault parsed = fabric::parse_fault(text, topology);
    for (const fabric::FaultAction& action : fabric::timeline({parsed}, 0))
      network->apply(action);
  }

  fabric::Topology topology{small_fabric()};
  fabric::Routing routing{topology};
  FramePool pool{8'192};
  Arrivals arrivals{pool};
  std::unique_ptr<Network> network;
};

TEST_F(LabNetwork, AFrameTakesItsTimeOnEveryLink) {
  const FrameSpec spec{.source = 0, .destination = 5, .path = {.up = 1}};
  send(spec, 1'000);
  const std::size_t bytes = make_frame(routing, spec).size();
  const Picoseconds hop =
      static_cast<Picoseconds>(bytes) * 8 * 10'000 + kDelayPs;  // 100 Mb/s: 10 ns a bit
  for (unsigned i = 1; i <= 4; ++i) {
    EXPECT_EQ(network->next_event(), 1'000 + i * hop);
    EXPECT_TRUE(arrivals.frames.empty());
    network->run(network->next_event());
  }
  ASSERT_EQ(arrivals.frames.size(), 1U);
  EXPECT_EQ(arrivals.frames[0].host, 5U);
  EXPECT_EQ(arrivals.frames[0].plane, 0U);
  EXPECT_EQ(parse(arrivals.frames[0].bytes).reason, DropReason::kNone);
  EXPECT_EQ(carrier_text(arrivals.frames[0].bytes), "fc00:1:101::");
  EXPECT_EQ(pool.in_use(), 0U);
}

TEST_F(LabNetwork, ANetworkLookedAtLateHasKeptItsSchedule) {
  for (unsigned i = 0; i < 10; ++i)
    send({.source = 0, .destination = 5, .path = {.up = 1}});
  network->run(1'000'000'000'000);
  EXPECT_EQ(arrivals.frames.size(), 10U);
  EXPECT_EQ(network->next_event(), fabric::kForever);
}

TEST_F(LabNetwork, ControlFramesPassData) {
  for (std::uint32_t i = 0; i < 5; ++i)
    send({.source = 0, .destination = 1, .psn = i});
  send({.source = 0, .destination = 1, .dscp = kControlDscp, .psn = 100});
  run_all();
  ASSERT_EQ(arrivals.frames.size(), 6U);
  // Behind the one that was on the wire already.
  EXPECT_EQ(parse(arrivals.frames[1].bytes).packet.bth.psn, Psn(100));
}

TEST_F(LabNetwork, MarksWhereAQueueGrowsAndNotBefore) {
  // Two hosts on one uplink: its queue grows to half of what they send.
  for (std::uint32_t i = 0; i < 24; ++i)
    for (unsigned source = 0; source < 2; ++source)
      send({.source = source, .destination = 4 + source, .path = {.up = 1}, .psn = i});
  run_all();
  const LinkId uplink = topology.t0_up(0, 0, 1);
  EXPECT_GT(network->counters(uplink).marks, 0U);
  EXPECT_EQ(total().marks, network->counters(uplink).marks);
  unsigned marked = 0;
  for (const auto& frame : arrivals.frames)
    if (parse(frame.bytes).header.ecn == wire::Ecn::kCe) ++marked;
  EXPECT_EQ(marked, total().marks);
  EXPECT_NE(parse(arrivals.frames[0].bytes).header.ecn, wire::Ecn::kCe);
}

TEST_F(LabNetwork, TrimsWhereThereIsNoRoomAndSaysWhere) {
  for (std::uint32_t i = 0; i < 60; ++i)
    for (unsigned source = 0; source < 3; ++source)
      send({.source = source,
            .destination = 4 + source,
            .path = {.up = 1},
            .payload = 4'096,
            .psn = i});
  run_all();
  EXPECT_EQ(arrivals.frames.size(), 180U);
  EXPECT_GT(network->counters(topology.t0_up(0, 0, 1)).trims, 10U);
  unsigned trimmed = 0;
  for (const auto& frame : arrivals.frames) {
    const Parsed parsed = parse(frame.bytes);
    ASSERT_EQ(parsed.reason, DropReason::kNone);
    if (parsed.header.trim == wire::TrimMark::kTrimmed) ++trimmed;
  }
  EXPECT_EQ(trimmed, total().trims);
  EXPECT_EQ(total().all_drops(), 0U);
}

TEST_F(LabNetwork, TrimsAtTheLastHopWithAMarkOfItsOwn) {
  for (std::uint32_t i = 0; i < 60; ++i)
    for (unsigned source = 1; source < 4; ++source)
      send({.source = source, .destination = 0, .payload = 4'096, .psn = i});
  run_all();
  unsigned last_hop = 0;
  for (const auto& frame : arrivals.frames)
    if (parse(frame.bytes).header.trim == wire::TrimMark::kTrimmedLastHop) ++last_hop;
  EXPECT_GT(last_hop, 10U);
  EXPECT_EQ(last_hop, network->counters(topology.host_down(0, 0)).trims);
}

TEST_F(LabNetwork, DropsWhatMustNotBeTrimmed) {
  for (std::uint32_t i = 0; i < 60; ++i)
    for (unsigned source = 1; source < 4; ++source)
      send({.source = source, .destination = 0, .dscp = kNoTrimDscp, .payload = 4'096, .psn = i});
  run_all();
  EXPECT_GT(drops(DropCause::kFull), 10U);
  EXPECT_EQ(arrivals.frames.size() + drops(DropCause::kFull), 180U);
  EXPECT_EQ(total().trims, 0U);
  EXPECT_EQ(pool.in_use(), 0U);
}

TEST_F(LabNetwork, ACableThatGoesDownLosesWhatIsOnItAndNothingElse) {
  for (std::uint32_t i = 0; i < 4; ++i)
    for (const std::uint16_t t1 : {1, 2})
      send({.source = 0, .destination = 5, .path = {.up = t1}, .psn = i});
  network->run(500'000'000);  // some have passed T0, some wait
  fault("t0:0/t1:1/plane:0 down @0");
  EXPECT_TRUE(network->is_down(topology.t0_up(0, 0, 1)));
  EXPECT_TRUE(network->is_down(topology.t1_down(0, 1, 0, 0)));
  EXPECT_TRUE(network->carrier(0, 0));
  EXPECT_EQ(network->condition_in_words(topology.t0_up(0, 0, 1)), "down");
  run_all();
  EXPECT_GT(drops(DropCause::kDown), 0U);
  EXPECT_EQ(arrivals.frames.size() + drops(DropCause::kDown), 8U);
  EXPECT_GE(arrivals.frames.size(), 4U);
  EXPECT_EQ(pool.in_use(), 0U);
}

TEST_F(LabNetwork, AT0ThatIsDownTakesTheCarrierOfItsHosts) {
  fault("t0:1/plane:1 down @0");
  EXPECT_TRUE(network->carrier(0, 5));
  EXPECT_FALSE(network->carrier(1, 5));
  EXPECT_TRUE(network->carrier(1, 3));
}

TEST_F(LabNetwork, FaultsThatNobodyIsToldOf) {
  fault("t0:0/t1:0/plane:0 loss 100% @0");
  fault("t0:0/t1:1/plane:0 corrupt 100% @0");
  fault("t0:0/plane:0 blackhole t1:2 @0");
  fault("t0:0/t1:3/plane:0 rate 50% @0");
  for (std::uint16_t t1 = 0; t1 < 4; ++t1)
    send({.source = t1, .destination = 5, .path = {.up = t1}});
  run_all();
  EXPECT_EQ(drops(DropCause::kLoss), 1U);
  EXPECT_EQ(drops(DropCause::kBlackHole), 1U);
  ASSERT_EQ(arrivals.frames.size(), 2U);
  EXPECT_EQ(parse(arrivals.frames[0].bytes).reason, DropReason::kBadIcrc);
  EXPECT_EQ(parse(arrivals.frames[1].bytes).reason, DropReason::kNone);  // slower, so later
  EXPECT_EQ(network->condition_in_words(topology.t0_up(0, 0, 3)), "rate 50 %");
}

TEST_F(LabNetwork, KnowsHowLongDataWasSentTowardsABrokenLink) {
  const LinkId up = topology.host_up(0, 0);
  EXPECT_FALSE(network->offered_after(up).has_value());
  fault("host:0/plane:0 down @0");
  send({.source = 0, .destination = 5}, 7'000);
  auto probe = make_frame(routing, FrameSpec{.source = 0, .destination = 5});
  constexpr std::size_t kBthAt = 14 + 40 + 40 + 8;
  probe[kBthAt] = static_cast<std::byte>(wire::Opcode::kProbe);
  network->send(9'000, 9'000, 0, 0, put(pool, probe));
  EXPECT_EQ(network->offered_after(up), 7'000);
  EXPECT_FALSE(network->offered_after(topology.host_up(0, 1)).has_value());
}

TEST_F(LabNetwork, HostsWaitForTheirPort) {
  while (network->waiting_bytes(0, 0) < network->read_ahead_bytes())
    send({.source = 0, .destination = 5, .path = {.up = 1}, .payload = 4'096});
  EXPECT_EQ(drops(DropCause::kFull), 0U);
  network->run(network->next_event());
  EXPECT_LT(network->waiting_bytes(0, 0), network->read_ahead_bytes());
}

TEST_F(LabNetwork, WhatHadToWaitMayStartInThePast) {
  network->send(10'000'000, 4'000'000, 0, 0,
                put(pool, make_frame(routing, {.source = 0, .destination = 1})));
  const Picoseconds hop =
      static_cast<Picoseconds>(make_frame(routing, {}).size()) * 8 * 10'000 + kDelayPs;
  EXPECT_EQ(network->next_event(), 4'000'000 + hop);
}

}  // namespace
}  // namespace mrc::lab::test
