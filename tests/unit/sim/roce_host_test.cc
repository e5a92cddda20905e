// RoCEv2 hosts wired back to back: the test is the network and decides what arrives.

#include "sim/roce_host.h"

#include <gtest/gtest.h>

#include <memory>
#include <vector>

namespace mrc::sim {
namespace {

using Kind = RocePacket::Kind;

constexpr Time kUs = 1'000'000;
constexpr std::uint32_t kA = 0;
constexpr std::uint32_t kB = 3;

class RoceHostTest : public ::testing::Test, public HostListener {
 protected:
  struct Sent {
    TaskId task;
    bool ok;
  };

  RoceHostTest() {
    config_.topology = {.planes = 2, .hosts = 4, .t0 = 2, .t1 = 2};
    config_.roce.ack_every = 4;
    build(2);
  }

  void build(unsigned connections) {
    topology_ = std::make_unique<fabric::Topology>(config_.topology);
    routing_ = std::make_unique<fabric::Routing>(*topology_);
    world_ = std::make_unique<RoceWorld>(config_, *routing_, packets_, *this);
    const auto make = [&](std::uint32_t host, std::uint32_t peer) {
      std::vector<PlannedConnection> plan;
      for (std::uint32_t c = 0; c < connections; ++c)
        plan.push_back({peer, c, 1, 0});
      auto made = std::make_unique<RoceHost>(*world_, host, plan);
      world_->hosts[host] = made.get();
      return made;
    };
    a_ = make(kA, kB);
    b_ = make(kB, kA);
  }

  void on_sent(Time, TaskId task, bool ok) override { sent_.push_back({task, ok}); }
  void on_received(Time, TaskId task) override { received_.push_back(task); }
  void on_placed(Time, const Placed& placed) override {
    EXPECT_EQ(placed.from, placed.to);
    placed_bytes_ += placed.bytes;
  }

  void post(TaskId task, std::uint64_t bytes, std::uint32_t connection = 0, bool notify = false) {
    a_->post(now_, {task, kB, connection, bytes, notify});
  }

  // Everything a host has to send now, as if its ports took no time; `most` guards against more.
  std::vector<Outgoing> drain(RoceHost& host, unsigned most = 100) {
    std::vector<Outgoing> all;
    Outgoing out;
    while (all.size() < most && host.next_packet(now_, PortMask::first(2), out))
      all.push_back(out);
    return all;
  }
  RocePacket packet(const Outgoing& out) {
    return std::get<RocePacket>(packets_.body(out.packet).packet);
  }
  PacketHead& head(const Outgoing& out) { return packets_.head(out.packet); }
  void deliver(RoceHost& to, const Outgoing& out) { to.on_packet(now_, out.packet, out.plane); }
  void deliver_all(RoceHost& to, const std::vector<Outgoing>& all) {
    for (const Outgoing& out : all)
      deliver(to, out);
  }
  // Lets time pass up to the next deadline.
  void wait(RoceHost& host) {
    now_ = host.next_deadline();
    host.on_timer(now_);
  }

  SimConfig config_;
  PacketPool packets_;
  std::unique_ptr<fabric::Topology> topology_;
  std::unique_ptr<fabric::Routing> routing_;
  std::unique_ptr<RoceWorld> world_;
  std::unique_ptr<RoceHost> a_;
  std::unique_ptr<RoceHost> b_;
  std::vector<Sent> sent_;
  std::vector<TaskId> received_;
  std::uint64_t placed_bytes_ = 0;
  Time now_ = 1;
};

TEST_F(RoceHostTest, CountsTheHeadersOfEveryPacket) {
  post(0, 2 * 4096 + 5, 0, true);
  const std::vector<Outgoing> data = drain(*a_);
  ASSERT_EQ(data.size(), 3u);
  EXPECT_EQ(head(data[0]).bytes, 4096u + 82 + 16);
  EXPECT_EQ(head(data[1]).bytes, 4096u + 82);
  EXPECT_EQ(head(data[2]).bytes, 8u + 82 + 4) << "padded, with immediate data";
  for (const Outgoing& out : data)
    EXPECT_EQ(head(out).priority, PacketClass::kDataNoTrim);
  head(data[0]).congestion_experienced = true;
  deliver_all(*b_, data);
  const std::vector<Outgoing> answers = drain(*b_);
  ASSERT_EQ(answers.size(), 2u);
  EXPECT_EQ(packet(answers[0]).kind, Kind::kCnp);
  EXPECT_EQ(head(answers[0]).bytes, 98u);
  EXPECT_EQ(packet(answers[1]).kind, Kind::kAck);
  EXPECT_EQ(head(answers[1]).bytes, 86u);
  for (const Outgoing& out : answers)
    EXPECT_EQ(head(out).priority, PacketClass::kControl);
}

TEST_F(RoceHostTest, KeepsAQueuePairOnOnePath) {
  post(0, 40'960);
  const std::vector<Outgoing> data = drain(*a_);
  ASSERT_EQ(data.size(), 10u);
  for (const Outgoing& out : data) {
    EXPECT_EQ(out.plane, data[0].plane);
    EXPECT_EQ(out.path, data[0].path);
    EXPECT_EQ(head(out).entropy, head(data[0]).entropy);
    EXPECT_GE(head(out).entropy, 0xC000u);
  }
  deliver_all(*b_, data);
  for (const Outgoing& answer : drain(*b_))
    EXPECT_EQ(answer.plane, data[0].plane);
}

TEST_F(RoceHostTest, ReportsMessagesWhenTheyAreAcknowledged) {
  post(0, 10'000);
  post(1, 10'000, 0, true);
  const std::vector<Outgoing> data = drain(*a_);
  deliver_all(*b_, data);
  EXPECT_EQ(placed_bytes_, 20'000u);
  EXPECT_EQ(received_, (std::vector<TaskId>{1})) << "only where somebody waits";
  EXPECT_TRUE(sent_.empty());
  const std::vector<Outgoing> answers = drain(*b_);
  ASSERT_EQ(answers.size(), 1u) << "what has not left yet is one ACK";
  deliver_all(*a_, answers);
  ASSERT_EQ(sent_.size(), 2u);
  EXPECT_TRUE(sent_[0].ok && sent_[1].ok);
  EXPECT_FALSE(a_->wants_to_send());
  EXPECT_EQ(a_->totals().data_packets, 6u);
  EXPECT_EQ(b_->totals().control_packets, 1u);
}

TEST_F(RoceHostTest, GoesBackToTheGapAtANak) {
  post(0, 6 * 4096);
  const std::vector<Outgoing> data = drain(*a_);
  for (const int i : {0, 1, 3, 4, 5})
    deliver(*b_, data[i]);
  const std::vector<Outgoing> answers = drain(*b_);
  ASSERT_EQ(answers.size(), 1u);
  EXPECT_EQ(packet(answers[0]).kind, Kind::kNak);
  EXPECT_EQ(packet(answers[0]).psn, 2u);
  deliver_all(*a_, answers);
  const std::vector<Outgoing> again = drain(*a_);
  ASSERT_EQ(again.size(), 4u);
  EXPECT_EQ(packet(again[0]).psn, 2u);
  EXPECT_TRUE(head(again[0]).retransmission);
  deliver_all(*b_, again);
  deliver_all(*a_, drain(*b_));
  EXPECT_EQ(sent_.size(), 1u);
  EXPECT_EQ(a_->totals().retransmits, 4u);
  EXPECT_EQ(placed_bytes_, 6u * 4096);
}

TEST_F(RoceHostTest, AGapClosedBeforeItsNakLeavesIsAnAck) {
  post(0, 4 * 4096);
  const std::vector<Outgoing> data = drain(*a_);
  for (const int i : {0, 2, 1})
    deliver(*b_, data[i]);
  const std::vector<Outgoing> answers = drain(*b_);
  ASSERT_EQ(answers.size(), 1u);
  EXPECT_EQ(packet(answers[0]).kind, Kind::kAck);
  EXPECT_EQ(packet(answers[0]).psn, 1u);
}

TEST_F(RoceHostTest, TriesAgainAfterTheTimeoutAndGivesUpAfterSeven) {
  post(0, 4096);
  drain(*a_);
  for (unsigned retry = 0; retry < 7; ++retry) {
    const Time before = now_;
    wait(*a_);
    EXPECT_EQ(now_ - before, 4'096'000 * 256);
    EXPECT_EQ(drain(*a_).size(), 1u);
    EXPECT_TRUE(sent_.empty());
  }
  wait(*a_);
  ASSERT_EQ(sent_.size(), 1u);
  EXPECT_FALSE(sent_[0].ok);
  EXPECT_TRUE(drain(*a_).empty());
  EXPECT_EQ(a_->totals().timeouts, 8u);
  post(1, 4096);
  ASSERT_EQ(sent_.size(), 2u) << "the queue pair is gone for good";
  EXPECT_FALSE(sent_[1].ok);
}

TEST_F(RoceHostTest, CountsOnlyTimeoutsInARow) {
  for (TaskId task = 0; task < 4; ++task) {
    post(task, 4096);
    drain(*a_);
    std::vector<Outgoing> last;
    for (unsigned waits = 0; waits < 20 && a_->totals().timeouts < 5 * (task + 1); ++waits) {
      wait(*a_);
      last = drain(*a_);
    }
    deliver_all(*b_, last);
    deliver_all(*a_, drain(*b_));
    ASSERT_EQ(sent_.size(), task + 1u);
    ASSERT_TRUE(sent_[task].ok);
  }
}

TEST_F(RoceHostTest, ALostAckIsRepairedByTheNextTimeout) {
  post(0, 2 * 4096);
  deliver_all(*b_, drain(*a_));
  drain(*b_);
  wait(*a_);
  deliver_all(*b_, drain(*a_));
  EXPECT_EQ(b_->totals().spurious, 2u);
  deliver_all(*a_, drain(*b_));
  EXPECT_EQ(sent_.size(), 1u);
  EXPECT_EQ(placed_bytes_, 2u * 4096);
}

TEST_F(RoceHostTest, APauseStopsDataButNoAnswers) {
  post(0, 40'960);
  const std::vector<Outgoing> first = drain(*a_, 1);
  const unsigned plane = first[0].plane;
  // Something to answer in the other direction.
  b_->post(now_, {9, kA, 0, 4096, false});
  deliver_all(*a_, drain(*b_, 1));
  a_->set_paused(now_, plane, true);
  const std::vector<Outgoing> paused = drain(*a_);
  ASSERT_EQ(paused.size(), 1u);
  EXPECT_EQ(packet(paused[0]).kind, Kind::kAck);
  EXPECT_FALSE(a_->wants_to_send());
  a_->set_paused(now_, plane, false);
  EXPECT_TRUE(a_->wants_to_send());
  EXPECT_EQ(drain(*a_).size(), 9u);
}

TEST_F(RoceHostTest, QueuePairsTakeTurns) {
  config_.topology.planes = 1;
  build(3);
  for (std::uint32_t c = 0; c < 3; ++c)
    post(c, 4 * 4096, c);
  const std::vector<Outgoing> data = drain(*a_);
  ASSERT_EQ(data.size(), 12u);
  for (std::uint32_t i = 0; i < 12; ++i) {
    EXPECT_EQ(packet(data[i]).connection, i % 3);
    EXPECT_EQ(packet(data[i]).psn, i / 3);
  }
}

TEST_F(RoceHostTest, SendsAtHalfRateAfterACnp) {
  post(0, 100 * 4096);
  const std::vector<Outgoing> first = drain(*a_, 2);
  head(first[0]).congestion_experienced = true;
  head(first[1]).congestion_experienced = true;
  deliver_all(*b_, first);
  const std::vector<Outgoing> answers = drain(*b_);
  ASSERT_EQ(answers.size(), 1u) << "one CNP for both";
  deliver_all(*a_, answers);
  ASSERT_EQ(drain(*a_).size(), 1u);
  for (int i = 0; i < 10; ++i) {
    const Time before = now_;
    wait(*a_);
    EXPECT_EQ(now_ - before, Time{4178} * 8 * 1'000 / 200);
    ASSERT_EQ(drain(*a_).size(), 1u);
  }
}

TEST_F(RoceHostTest, WithoutDcqcnMarksMeanNothing) {
  config_.roce.dcqcn = false;
  build(1);
  post(0, 2 * 4096);
  const std::vector<Outgoing> data = drain(*a_);
  head(data[0]).congestion_experienced = true;
  deliver(*b_, data[0]);
  EXPECT_TRUE(drain(*b_).empty());
}

TEST_F(RoceHostTest, ADeadPortHoldsItsQueuePairsUntilItIsBack) {
  post(0, 3 * 4096);
  const unsigned plane = drain(*a_, 1)[0].plane;
  a_->set_port_up(now_, plane, false);
  EXPECT_TRUE(drain(*a_).empty());
  EXPECT_FALSE(a_->wants_to_send());
  wait(*a_);
  EXPECT_EQ(a_->totals().timeouts, 1u) << "though no packet has asked for an ACK";
  EXPECT_TRUE(drain(*a_).empty());
  a_->set_port_up(now_ + 5 * kUs, plane, true);
  now_ += 5 * kUs;
  EXPECT_EQ(drain(*a_).size(), 3u) << "from the first packet on";
}

TEST_F(RoceHostTest, AMessageForADeadPortFailsInTheEnd) {
  for (unsigned plane = 0; plane < 2; ++plane)
    a_->set_port_up(now_, plane, false);
  post(0, 4096);
  for (int i = 0; i < 8; ++i)
    wait(*a_);
  ASSERT_EQ(sent_.size(), 1u);
  EXPECT_FALSE(sent_[0].ok);
}

}  // namespace
}  // namespace mrc::sim
