// One plan, four worlds: what the simulator, its lower bound, the lab and the lab of kernel
// switches make of the same faults, from moment to moment and packet by packet.
#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include "fabric/link_condition.h"
#include "lab/cable_order.h"
#include "lab/fault_book.h"
#include "lab/network.h"
#include "lab_frames.h"
#include "sim/network.h"
#include "sim/rate_history.h"

namespace mrc::lab::test {
namespace {

using fabric::FaultAction;
using fabric::LinkCondition;
using Plan = std::vector<std::string>;

constexpr Picoseconds kUs = 1'000'000;
constexpr Picoseconds kCablePs = 10 * kUs;

// 10 Gb/s and cables of 2 km, long enough for several packets to be on one.
fabric::TopologySpec long_cables() {
  fabric::TopologySpec spec = small_fabric();
  for (fabric::LinkClass* link : {&spec.host_link, &spec.t0_t1_link, &spec.t1_t2_link})
    *link = {.bits_per_second = 10'000'000'000, .delay_ps = kCablePs};
  return spec;
}

// --- The worlds ---

class SimWorld {
 public:
  SimWorld(const fabric::Routing& routing, const std::vector<fabric::Fault>& plan)
      : actions_(fabric::timeline(plan, fabric::kForever / 4)), events_(16, 10) {
    sim::NetworkConfig config;
    config.mode = fabric::ForwardingMode::kEcmp;
    config.plane_bdp_bytes = 400'000;
    network_ = std::make_unique<sim::Network>(routing, config, events_, packets_);
  }
  void play(Picoseconds until) {
    for (; at_ < actions_.size() && actions_[at_].time_ps <= until; ++at_) {
      run(actions_[at_].time_ps);
      network_->apply(actions_[at_].time_ps, actions_[at_]);
    }
    run(until);
  }
  void send(Picoseconds now, unsigned from, unsigned to, std::size_t bytes) {
    const sim::PacketId packet = packets_.take({.packet = sim::RocePacket{}});
    sim::PacketHead& head = packets_.head(packet);
    head.source = from;
    head.destination = to;
    head.bytes = static_cast<std::uint16_t>(bytes);
    head.priority = sim::PacketClass::kData;
    network_->send(now, 0, packet);
  }
  const sim::Network& network() const { return *network_; }
  const std::vector<Picoseconds>& delivered() const { return delivered_; }

 private:
  void run(Picoseconds until) {
    while (!events_.empty()) {
      const sim::Event event = events_.pop();
      if (event.time > until) {
        events_.push(event);
        return;
      }
      ASSERT_EQ(event.kind(), sim::EventKind::kArrival);
      if (!network_->arrive(event.time, sim::PacketId{event.payload})) continue;
      delivered_.push_back(event.time);
      packets_.give_back(sim::PacketId{event.payload});
    }
  }

  std::vector<FaultAction> actions_;
  std::size_t at_ = 0;
  sim::EventQueue events_;
  sim::PacketPool packets_;
  std::unique_ptr<sim::Network> network_;
  std::vector<Picoseconds> delivered_;
};

class LabWorld final : public HostSide {
 public:
  LabWorld(const fabric::Routing& routing, const std::vector<fabric::Fault>& plan)
      : routing_(&routing), network_(routing, {}, pool_, *this) {
    for (const fabric::Fault& fault : plan)
      book_.add(fault, 0);
  }
  void play(Picoseconds until) {
    FaultAction action;
    while (book_.next(until, action)) {
      run(action.time_ps);
      network_.apply(action);
      kernel_.apply(action);
    }
    run(until);
  }
  void send(Picoseconds now, const FrameSpec& spec) {
    network_.send(now, now, 0, spec.source, put(pool_, make_frame(*routing_, spec)));
  }
  bool deliver(unsigned, unsigned, FrameId frame) override {
    delivered_.push_back(now_);
    pool_.give_back(frame);
    return true;
  }
  const Network& network() const { return network_; }
  // What switches of the kernel are asked to do, by the same book.
  CableOrder order(LinkId link) const {
    const LinkId back = routing_->topology().reverse(link);
    return order_for(kernel_.of(link).condition(), kernel_.of(back).condition());
  }
  const std::vector<Picoseconds>& delivered() const { return delivered_; }

 private:
  void run(Picoseconds until) {
    while (network_.next_event() <= until) {
      now_ = network_.next_event();
      network_.run(now_);
    }
  }

  const fabric::Routing* routing_;
  FaultBook book_;
  FramePool pool_{1'024};
  Network network_;
  fabric::FabricFaults kernel_;
  Picoseconds now_ = 0;
  std::vector<Picoseconds> delivered_;
};

double share_at(const sim::RateHistory& rates, LinkId link, Picoseconds now) {
  double share = 1;
  for (const sim::RateHistory::Change& change : rates.of(link))
    if (change.at <= now) share = change.share;
  return share;
}

class LinkWorlds : public ::testing::Test {
 protected:
  std::vector<fabric::Fault> parse_plan(const Plan& lines) const {
    std::vector<fabric::Fault> plan;
    for (const std::string& line : lines)
      plan.push_back(fabric::parse_fault(line, topology_));
    return plan;
  }

  // The condition from a time on, until the next one.
  struct Step {
    Picoseconds from_us = 0;
    LinkCondition condition;
  };
  void expect_conditions(LinkId link, const Plan& lines, const std::vector<Step>& steps) const {
    const std::vector<fabric::Fault> plan = parse_plan(lines);
    SimWorld in_sim(routing_, plan);
    LabWorld in_lab(routing_, plan);
    const sim::RateHistory rates(plan, fabric::kForever);
    for (Picoseconds us = 0; us <= 60; ++us) {
      LinkCondition expected;
      for (const Step& step : steps)
        if (step.from_us <= us) expected = step.condition;
      in_sim.play(us * kUs);
      in_lab.play(us * kUs);
      SCOPED_TRACE(std::to_string(us) + " us");
      EXPECT_EQ(in_sim.network().condition(link), expected);
      EXPECT_EQ(in_sim.network().is_down(link), expected.down);
      EXPECT_EQ(in_lab.network().condition(link), expected);
      EXPECT_EQ(share_at(rates, link, us * kUs), expected.down ? 0 : expected.rate_share);
      const DirectionOrder direction{.filtered = expected.loss, .rate_share = expected.rate_share};
      EXPECT_EQ(in_lab.order(link),
                (CableOrder{.down = expected.down, .home = direction, .back = direction}));
    }
  }

  // One packet every four microseconds from host 0 to host 1, over two cables of T0 0. Returns
  // which arrive and when, which is the same in both worlds.
  struct Trip {
    Picoseconds sent_us = 0;
    Picoseconds takes_ps = 0;
    friend bool operator==(const Trip&, const Trip&) = default;
  };
  std::vector<Trip> trips(const Plan& lines) const {
    const std::vector<fabric::Fault> plan = parse_plan(lines);
    SimWorld in_sim(routing_, plan);
    LabWorld in_lab(routing_, plan);
    for (Picoseconds us = kFirstUs; us <= kLastUs; us += kEveryUs) {
      in_sim.play(us * kUs);
      in_lab.play(us * kUs);
      in_sim.send(us * kUs, 0, 1, frame_bytes());
      in_lab.send(us * kUs, kSpec);
    }
    in_sim.play(1'000 * kUs);
    in_lab.play(1'000 * kUs);
    EXPECT_EQ(in_sim.delivered(), in_lab.delivered());
    std::vector<Trip> result;
    for (const Picoseconds at : in_sim.delivered()) {
      // No packet of this test takes four microseconds more than the shortest time.
      const Picoseconds latest = (at - healthy_ps()) / kUs;
      const Picoseconds sent_us = latest - (latest - kFirstUs) % kEveryUs;
      result.push_back({sent_us, at - sent_us * kUs});
    }
    return result;
  }
  std::vector<Picoseconds> sent_and_delivered(const Plan& lines) const {
    std::vector<Picoseconds> sent;
    for (const Trip& trip : trips(lines)) {
      EXPECT_EQ(trip.takes_ps, healthy_ps());
      sent.push_back(trip.sent_us);
    }
    return sent;
  }
  // All sending times but these.
  static std::vector<Picoseconds> all_but(const std::vector<Picoseconds>& lost) {
    std::vector<Picoseconds> rest;
    for (Picoseconds us = kFirstUs; us <= kLastUs; us += kEveryUs)
      if (std::find(lost.begin(), lost.end(), us) == lost.end()) rest.push_back(us);
    return rest;
  }
  std::size_t frame_bytes() const { return make_frame(routing_, kSpec).size(); }
  Picoseconds on_line_ps() const { return static_cast<Picoseconds>(frame_bytes()) * 800; }
  Picoseconds healthy_ps() const { return 2 * (on_line_ps() + kCablePs); }

  static constexpr Picoseconds kFirstUs = 1;
  static constexpr Picoseconds kEveryUs = 4;
  static constexpr Picoseconds kLastUs = 57;
  const FrameSpec kSpec{.source = 0, .destination = 1, .path = {}};
  fabric::Topology topology_{long_cables()};
  fabric::Routing routing_{topology_};
};

// --- Conditions ---

TEST_F(LinkWorlds, AgreeOnTwoRatesOfWhichOneEnds) {
  const LinkId link = topology_.t0_up(0, 0, 1);
  const std::string cable = "t0:0/t1:1/plane:0 ";
  expect_conditions(
      link, {cable + "rate 50% @10us for 30us", cable + "rate 10% @20us for 10us"},
      {{10, {.rate_share = 0.5}}, {20, {.rate_share = 0.1}}, {30, {.rate_share = 0.5}}, {40, {}}});
  expect_conditions(link, {cable + "rate 50% @10us for 20us", cable + "rate 10% @20us for 20us"},
                    {{10, {.rate_share = 0.5}}, {20, {.rate_share = 0.1}}, {40, {}}});
}

TEST_F(LinkWorlds, AgreeOnTwoLossesOfWhichOneEnds) {
  const std::string cable = "t0:0/t1:1/plane:0 ";
  expect_conditions(topology_.t0_up(0, 0, 1),
                    {cable + "loss 5% @10us", cable + "loss 1% @20us for 10us"},
                    {{10, {.loss = 0.05}}, {20, {.loss = 0.01}}, {30, {.loss = 0.05}}});
}

TEST_F(LinkWorlds, AgreeOnALinkThatIsSlowAndLossyAndDownInBetween) {
  const std::string cable = "t0:0/t1:1/plane:0 ";
  expect_conditions(topology_.t0_up(0, 0, 1),
                    {cable + "loss 5% @10us for 30us", cable + "rate 25% @15us for 35us",
                     cable + "down @20us for 10us"},
                    {{10, {.loss = 0.05}},
                     {15, {.rate_share = 0.25, .loss = 0.05}},
                     {20, {.rate_share = 0.25, .loss = 0.05, .down = true}},
                     {30, {.rate_share = 0.25, .loss = 0.05}},
                     {40, {.rate_share = 0.25}},
                     {50, {}}});
}

TEST_F(LinkWorlds, AgreeOnASwitchAndOneOfItsCables) {
  const std::string t1 = "t1:1/plane:0 ";
  const std::string cable = "t0:0/t1:1/plane:0 ";
  const LinkCondition down{.down = true};
  for (const Plan& plan : {Plan{t1 + "down @10us for 20us", cable + "down @20us for 30us"},
                           Plan{cable + "down @10us for 20us", t1 + "down @20us for 30us"},
                           Plan{t1 + "down @10us for 40us", cable + "down @20us for 10us"},
                           Plan{cable + "down @10us for 40us", t1 + "down @20us for 10us"}}) {
    SCOPED_TRACE(plan[0] + ", " + plan[1]);
    expect_conditions(topology_.t0_up(0, 0, 1), plan, {{10, down}, {50, {}}});
  }
  expect_conditions(topology_.t0_up(0, 1, 1),
                    {t1 + "down @10us for 20us", cable + "down @20us for 30us"},
                    {{10, down}, {30, {}}});
}

TEST_F(LinkWorlds, AgreeOnAFlapWithinATimeDown) {
  const std::string cable = "t0:0/t1:1/plane:0 ";
  expect_conditions(topology_.t0_up(0, 0, 1),
                    {cable + "flap 4us/4us @10us for 40us", cable + "down @20us for 13us"},
                    {{10, {.down = true}},
                     {14, {}},
                     {18, {.down = true}},
                     {33, {}},
                     {34, {.down = true}},
                     {38, {}},
                     {42, {.down = true}},
                     {46, {}}});
}

// --- Packets ---

TEST_F(LinkWorlds, DeliverEverythingWithoutFaults) {
  EXPECT_EQ(sent_and_delivered({}), all_but({}));
}

TEST_F(LinkWorlds, LoseWhatIsOnACableThatIsDownForAMoment) {
  // At 20 us the packets of 13 and 17 are on the cable; it is up again when they would arrive.
  EXPECT_EQ(sent_and_delivered({"host:0/plane:0 down @20us for 500ns"}), all_but({13, 17}));
}

TEST_F(LinkWorlds, LoseWhatIsSentIntoADeadCable) {
  // That of 21 us would arrive at 32 us, long after the cable is up again.
  EXPECT_EQ(sent_and_delivered({"host:0/plane:0 down @20us for 4us"}), all_but({13, 17, 21}));
}

TEST_F(LinkWorlds, LoseTheFlightAtEachTurnOfAFlap) {
  EXPECT_EQ(sent_and_delivered({"host:0/plane:0 flap 2us/6us @20us for 16us"}),
            all_but({13, 17, 21, 25, 29}));
}

TEST_F(LinkWorlds, LoseTheSameWhetherTheSwitchOrTheCableIsBackFirst) {
  // Those of 1, 5 and 9 us are on the second cable, which goes down with the switch.
  const std::vector<Picoseconds> rest = all_but({1, 5, 9, 13, 17, 21, 25});
  EXPECT_EQ(sent_and_delivered(
                {"t0:0/plane:0 down @20us for 4us", "host:0/t0:0/plane:0 down @22us for 6us"}),
            rest);
  EXPECT_EQ(sent_and_delivered(
                {"host:0/t0:0/plane:0 down @20us for 4us", "t0:0/plane:0 down @22us for 6us"}),
            rest);
}

TEST_F(LinkWorlds, AreAsSlowAsTheRateThatHolds) {
  const std::vector<Trip> all = trips({"host:0>t0:0/plane:0 rate 50% @10us for 30us",
                                       "host:0>t0:0/plane:0 rate 25% @20us for 10us"});
  ASSERT_EQ(all.size(), 15U);
  for (const Trip& trip : all) {
    SCOPED_TRACE(trip.sent_us);
    const bool slowest = trip.sent_us > 20 && trip.sent_us < 30;
    const bool slow = trip.sent_us > 10 && trip.sent_us < 40;
    EXPECT_EQ(trip.takes_ps, healthy_ps() + (slowest ? 3 : slow ? 1 : 0) * on_line_ps());
  }
}

}  // namespace
}  // namespace mrc::lab::test
