// Priority flow control of the simulated switches, with hosts that only send and obey.

#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <vector>

#include "sim/roce_network.h"

namespace mrc::sim {
namespace {

constexpr std::uint32_t kPacketBytes = 4'178;
constexpr Time kUs = 1'000'000;

SimConfig small_fabric() {
  SimConfig config;
  config.transport = Transport::kRoce;
  config.topology = {.planes = 1, .hosts = 16, .t0 = 2, .t1 = 2};
  config.roce.pause_bytes = 200'000;
  return config;
}

class Blaster {
 public:
  explicit Blaster(const SimConfig& config)
      : topology_(config.topology),
        routing_(topology_),
        events_(16, 10),
        paused_(topology_.hosts()),
        target_(topology_.hosts(), kIdle) {
    network_config_.plane_bdp_bytes = 400'000;
    set_up_for_roce(config, topology_, network_config_);
    network_ = std::make_unique<Network>(routing_, network_config_, events_, packets_);
  }

  const fabric::Topology& topology() const { return topology_; }
  const NetworkConfig& network_config() const { return network_config_; }
  Network& network() { return *network_; }
  std::uint64_t sent() const { return sent_; }
  std::uint64_t delivered() const { return delivered_; }
  bool anybody_paused() const { return std::count(paused_.begin(), paused_.end(), true) > 0; }
  // The most that ever stood in the data queue of the watched link.
  void watch(fabric::LinkId link) { watched_ = link; }
  std::uint32_t peak_bytes() const { return peak_bytes_; }

  void aim(std::uint32_t host, std::uint32_t target) {
    target_[host] = target;
    pump(now_, host);
  }
  void cease_fire() { std::fill(target_.begin(), target_.end(), kIdle); }

  void send(std::uint32_t host, std::uint32_t target, PacketClass priority) {
    const PacketId packet = packets_.take({.packet = RocePacket{}});
    PacketHead& head = packets_.head(packet);
    head.source = host;
    head.destination = target;
    head.bytes = kPacketBytes;
    head.priority = priority;
    network_->send(now_, 0, packet);
    ++sent_;
  }

  void run_until(Time end) {
    while (!events_.empty() && now_ <= end) {
      const Event event = events_.pop();
      now_ = event.time;
      handle(event);
      peak_bytes_ = std::max(peak_bytes_, network_->link(watched_).data_bytes);
    }
  }
  void run_dry() { run_until(kEndOfTime - 1); }

 private:
  static constexpr std::uint32_t kIdle = 0xFFFF'FFFF;

  void handle(const Event& event) {
    const fabric::LinkId link{event.subject()};
    switch (event.kind()) {
      case EventKind::kArrival:
        if (!network_->arrive(now_, PacketId{event.payload})) return;
        ++delivered_;
        packets_.give_back(PacketId{event.payload});
        return;
      case EventKind::kLinkFree:
        return network_->on_link_free(now_, link);
      case EventKind::kLinkPause:
      case EventKind::kLinkResume: {
        const bool paused = event.kind() == EventKind::kLinkPause;
        if (!network_->on_pause(now_, link, paused)) return;
        const std::uint32_t host = topology_.describe(link).from.index;
        paused_[host] = paused;
        return pump(now_, host);
      }
      default:
        return pump(now_, event.subject());
    }
  }

  void pump(Time now, std::uint32_t host) {
    if (target_[host] == kIdle || paused_[host] || !network_->can_send(now, 0, host)) return;
    send(host, target_[host], PacketClass::kDataNoTrim);
    events_.push(Event(network_->free_at(0, host), EventKind::kHostWake, host));
  }

  fabric::Topology topology_;
  fabric::Routing routing_;
  EventQueue events_;
  PacketPool packets_;
  NetworkConfig network_config_;
  std::unique_ptr<Network> network_;
  std::vector<bool> paused_;
  std::vector<std::uint32_t> target_;
  fabric::LinkId watched_{};
  std::uint32_t peak_bytes_ = 0;
  std::uint64_t sent_ = 0;
  std::uint64_t delivered_ = 0;
  Time now_ = 0;
};

TEST(Pfc, HoldsTheQueueWithinThresholdAndHeadroomOfEveryIngress) {
  const SimConfig config = small_fabric();
  Blaster blaster(config);
  const fabric::LinkId sink = blaster.topology().host_down(0, 0);
  blaster.watch(sink);
  // Four senders of the sink's rack and four behind its two T1s.
  for (std::uint32_t host = 4; host < 12; ++host)
    blaster.aim(host, 0);
  blaster.run_until(300 * kUs);
  EXPECT_TRUE(blaster.anybody_paused());
  const std::uint64_t per_ingress =
      config.roce.pause_bytes + pfc_headroom_bytes(config, blaster.topology());
  EXPECT_LE(blaster.peak_bytes(), 6 * per_ingress);
  EXPECT_GT(blaster.peak_bytes(), 6 * config.roce.pause_bytes) << "the headroom is in use";
  blaster.cease_fire();
  blaster.run_dry();
  EXPECT_EQ(blaster.network().counters().drops(), 0u);
  EXPECT_EQ(blaster.delivered(), blaster.sent());
  EXPECT_FALSE(blaster.anybody_paused());
}

TEST(Pfc, KeepsThePausedSinkBusy) {
  Blaster blaster(small_fabric());
  for (std::uint32_t host = 4; host < 12; ++host)
    blaster.aim(host, 0);
  blaster.run_until(1'000 * kUs);
  // 83.56 ns per packet, and 4 us before the first one arrives.
  EXPECT_GT(blaster.delivered(), 990 * kUs / 83'560);
}

TEST(Pfc, WithoutItTheSameTrafficIsDropped) {
  SimConfig config = small_fabric();
  config.roce.pfc = false;
  Blaster blaster(config);
  for (std::uint32_t host = 4; host < 12; ++host)
    blaster.aim(host, 0);
  blaster.run_until(300 * kUs);
  EXPECT_FALSE(blaster.anybody_paused());
  EXPECT_GT(blaster.network().counters().dropped_full, 0u);
}

TEST(Pfc, LetsControlPacketsPassAPausedPort) {
  Blaster blaster(small_fabric());
  const fabric::LinkId sink = blaster.topology().host_down(0, 0);
  EXPECT_FALSE(blaster.network().on_pause(0, sink, true));
  blaster.send(1, 0, PacketClass::kDataNoTrim);
  blaster.send(2, 0, PacketClass::kControl);
  blaster.run_until(100 * kUs);
  EXPECT_EQ(blaster.delivered(), 1u);
  EXPECT_EQ(blaster.network().link(sink).data_bytes, kPacketBytes);
  EXPECT_FALSE(blaster.network().on_pause(101 * kUs, sink, false));
  blaster.run_dry();
  EXPECT_EQ(blaster.delivered(), 2u);
}

TEST(Pfc, SpreadsToFlowsThatGoElsewhere) {
  Blaster blaster(small_fabric());
  // All of the other rack overloads host 0; the paused links also carry host 15's packets, which
  // could have half of an uplink each.
  for (std::uint32_t host = 8; host < 15; ++host)
    blaster.aim(host, 0);
  blaster.aim(15, 1);
  blaster.run_until(500 * kUs);
  const std::uint32_t sent = blaster.network().link(blaster.topology().host_up(0, 15)).packets;
  EXPECT_LT(sent, 500 * kUs / 83'560 / 3);
}

TEST(Pfc, PacketsLostWithADeadLinkNoLongerHoldAnybodyUp) {
  Blaster blaster(small_fabric());
  for (std::uint32_t host = 4; host < 12; ++host)
    blaster.aim(host, 0);
  blaster.run_until(100 * kUs);
  ASSERT_TRUE(blaster.anybody_paused());
  fabric::FaultAction action;
  action.kind = fabric::FaultKind::kDown;
  action.link = blaster.topology().host_down(0, 0);
  blaster.network().apply(100 * kUs, action);
  blaster.cease_fire();
  blaster.run_dry();
  EXPECT_GT(blaster.network().counters().dropped_down, 0u);
  EXPECT_FALSE(blaster.anybody_paused());
  const std::uint64_t before = blaster.delivered();
  for (std::uint32_t host = 4; host < 12; ++host)
    blaster.send(host, host - 3, PacketClass::kData);
  blaster.run_dry();
  EXPECT_EQ(blaster.delivered() - before, 8u);
}

TEST(RoceSwitch, MarksByARampThatEndsBelowCertainty) {
  fabric::QueuePolicy policy;
  policy.ecn_min_bytes = 100'000;
  policy.ecn_max_bytes = 200'000;
  policy.ecn_ramp_top_q32 = (std::uint64_t{1} << 32) / 5;
  const auto random = [](double p) { return static_cast<std::uint32_t>(p * 4294967295.0); };
  EXPECT_FALSE(fabric::marks_ecn(policy, 100'000, 0));
  EXPECT_TRUE(fabric::marks_ecn(policy, 150'000, random(0.099)));
  EXPECT_FALSE(fabric::marks_ecn(policy, 150'000, random(0.101)));
  EXPECT_TRUE(fabric::marks_ecn(policy, 199'999, random(0.199)));
  EXPECT_FALSE(fabric::marks_ecn(policy, 199'999, random(0.201)));
  EXPECT_TRUE(fabric::marks_ecn(policy, 200'000, random(1)));
}

TEST(RoceSwitch, MarksOnPortsThatFaceHosts) {
  Blaster blaster(small_fabric());
  for (std::uint32_t host = 4; host < 8; ++host)
    blaster.aim(host, 0);
  blaster.run_until(100 * kUs);
  EXPECT_GT(blaster.network().counters().marks, 0u);
}

TEST(RoceSwitch, ThresholdsFollowTheLinkRate) {
  SimConfig config = small_fabric();
  config.roce.pause_bytes = 0;
  const Blaster fast(config);
  EXPECT_EQ(fast.network_config().pfc.pause_bytes, 1'000'000u);
  config.topology.host_link.bits_per_second /= 4;
  const Blaster slow(config);
  EXPECT_EQ(slow.network_config().pfc.pause_bytes, 250'000u);
  EXPECT_DOUBLE_EQ(slow.network_config().queue_shares.ecn_min * 4,
                   fast.network_config().queue_shares.ecn_min);
}

}  // namespace
}  // namespace mrc::sim
