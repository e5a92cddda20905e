// NSCC in a closed loop: greedy senders, each on its own link, that meet in one queue. Virtual
// time; the queue marks on dequeue from 0.2 to 0.8 BDP and trims (or drops) beyond its capacity.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <memory>
#include <queue>
#include <string>
#include <vector>

#include "base/prng.h"
#include "core/cc/congestion.h"
#include "unit/core/nscc_fixture.h"

namespace mrc::core {
namespace {

struct LoopOptions {
  unsigned senders = 1;
  std::uint32_t announced_senders = 0;  // hint given to each sender
  std::int64_t link_bits_per_ns = 400;  // of each sender
  std::int64_t bottleneck_bits_per_ns = 400;
  std::int64_t capacity_percent_of_bdp = 150;  // what is recommended for a last hop
  bool trims = true;
};

class Loop {
 public:
  explicit Loop(const LoopOptions& options) : options_(options) {
    CcProfile profile = two_tier();
    profile.network_trims = options.trims;
    for (unsigned i = 0; i < options.senders; ++i) {
      CcEnvironment network = environment(static_cast<std::uint64_t>(options.link_bits_per_ns),
                                          options.announced_senders);
      network.seed = i;
      senders_.push_back({.cc = make_controller(profile, network)});
      push({.at = 0, .kind = Kind::kReady, .sender = i});
    }
  }

  void run_for(std::int64_t base_rtts) {
    trims_ = delivered_bytes_ = delay_sum_ns_ = 0;
    for (Sender& sender : senders_)
      sender.acked_bytes = 0;
    const TimeNs start = now_;
    const TimeNs end = start + base_rtts * kBaseRtt;
    while (!events_.empty() && events_.top().at <= end) {
      const Event event = events_.top();
      events_.pop();
      now_ = event.at;
      handle(event);
    }
    now_ = end;
    elapsed_ns_ = end - start;
  }

  std::int64_t trims() const { return trims_; }
  double utilisation() const {
    return static_cast<double>(delivered_bytes_) * 8 /
           static_cast<double>(elapsed_ns_ * options_.bottleneck_bits_per_ns);
  }
  std::int64_t delivered_packets() const { return delivered_bytes_ / kNsccMtu; }
  double mean_delay_ns() const {
    return static_cast<double>(delay_sum_ns_) * kNsccMtu / static_cast<double>(delivered_bytes_);
  }
  // Jain's index: 1 when all got the same, 1 / n when one got everything.
  double fairness() const {
    double sum = 0;
    double squares = 0;
    for (const Sender& sender : senders_) {
      const auto acked = static_cast<double>(sender.acked_bytes);
      sum += acked;
      squares += acked * acked;
    }
    return sum * sum / (static_cast<double>(senders_.size()) * squares);
  }
  CongestionController& controller(unsigned sender) { return *senders_[sender].cc; }
  // The bottleneck and the senders' idea of their bandwidth change together, as when a plane is
  // lost.
  void set_bottleneck(std::int64_t bits_per_ns) {
    options_.bottleneck_bits_per_ns = bits_per_ns;
    for (Sender& sender : senders_)
      sender.cc->set_bandwidth(static_cast<std::uint64_t>(bits_per_ns) * kGigabit);
  }

 private:
  enum class Kind { kReady, kArrive, kDepart, kAck, kTrimmed, kLost };
  struct Event {
    TimeNs at = 0;
    std::uint64_t order = 0;
    Kind kind = Kind::kReady;
    unsigned sender = 0;
    TimeNs sent_at = 0;
    bool marked = false;
  };
  struct Later {
    bool operator()(const Event& a, const Event& b) const {
      return a.at != b.at ? a.at > b.at : a.order > b.order;
    }
  };
  struct Sender {
    std::unique_ptr<CongestionController> cc;
    TimeNs link_free_at = 0;
    TimeNs wake_at = -1;
    std::int64_t acked_bytes = 0;
  };

  static DurationNs serialisation_ns(std::int64_t bits_per_ns) {
    return kNsccMtu * 8 / bits_per_ns;
  }
  // What is left of the base RTT for one way, after both serialisations of an idle network.
  DurationNs one_way_ns() const {
    return (kBaseRtt - serialisation_ns(options_.link_bits_per_ns) -
            serialisation_ns(options_.bottleneck_bits_per_ns)) /
           2;
  }
  std::int64_t bdp_bytes() const { return options_.bottleneck_bits_per_ns * kBaseRtt / 8; }
  std::int64_t queued_bytes() const {
    return std::max<TimeNs>(queue_free_at_ - now_, 0) * options_.bottleneck_bits_per_ns / 8;
  }

  void push(Event event) {
    event.order = order_++;
    events_.push(event);
  }

  void handle(Event event) {
    Sender& sender = senders_[event.sender];
    switch (event.kind) {
      case Kind::kReady:
        break;
      case Kind::kArrive:
        return arrive(event);
      case Kind::kDepart:
        return depart(event);
      case Kind::kAck:
        sender.acked_bytes += kNsccMtu;
        sender.cc->on_left_network(kNsccMtu);
        sender.cc->on_ack({.now = now_,
                           .acked_bytes = kNsccMtu,
                           .marked = event.marked,
                           .rtt_ns = (now_ - event.sent_at) / 128 * 128});
        break;
      case Kind::kTrimmed:
        sender.cc->on_left_network(kNsccMtu);
        sender.cc->on_trim(now_, kNsccMtu, true);
        break;
      case Kind::kLost:
        sender.cc->on_left_network(kNsccMtu);
        sender.cc->on_loss(now_, kNsccMtu);
        break;
    }
    send_what_fits(event.sender);
  }

  void arrive(Event event) {
    if (queued_bytes() + kNsccMtu > bdp_bytes() * options_.capacity_percent_of_bdp / 100) {
      ++trims_;
      event.kind = options_.trims ? Kind::kTrimmed : Kind::kLost;
      event.at = now_ + one_way_ns() + (options_.trims ? 0 : kBaseRtt);
    } else {
      const TimeNs start = std::max(queue_free_at_, now_);
      delay_sum_ns_ += start - now_;
      queue_free_at_ = start + serialisation_ns(options_.bottleneck_bits_per_ns);
      event.kind = Kind::kDepart;
      event.at = queue_free_at_;
    }
    push(event);
  }

  void depart(Event event) {
    delivered_bytes_ += kNsccMtu;
    const std::int64_t low = bdp_bytes() / 5;
    const std::int64_t range = bdp_bytes() * 3 / 5;
    const std::int64_t above = queued_bytes() - low;
    event.marked = above > 0 && prng_.below(static_cast<std::uint32_t>(range)) < above;
    event.kind = Kind::kAck;
    event.at = now_ + one_way_ns();
    push(event);
  }

  void send_what_fits(unsigned index) {
    Sender& sender = senders_[index];
    TimeNs ready_at = std::max(sender.link_free_at, sender.cc->next_send());
    while (ready_at <= now_ && sender.cc->may_send(now_, kNsccMtu)) {
      sender.cc->on_sent(kNsccMtu);
      sender.cc->on_packet_sent(now_, kNsccMtu);
      sender.link_free_at = now_ + serialisation_ns(options_.link_bits_per_ns);
      ready_at = std::max(sender.link_free_at, sender.cc->next_send());
      push({.at = sender.link_free_at + one_way_ns(),
            .kind = Kind::kArrive,
            .sender = index,
            .sent_at = now_});
    }
    if (ready_at <= now_ || sender.wake_at == ready_at) return;
    sender.wake_at = ready_at;
    push({.at = ready_at, .kind = Kind::kReady, .sender = index});
  }

  LoopOptions options_;
  std::vector<Sender> senders_;
  std::priority_queue<Event, std::vector<Event>, Later> events_;
  std::uint64_t order_ = 0;
  TimeNs now_ = 0;
  TimeNs queue_free_at_ = 0;
  Prng prng_{7};
  DurationNs elapsed_ns_ = 0;
  std::int64_t trims_ = 0;
  std::int64_t delivered_bytes_ = 0;
  DurationNs delay_sum_ns_ = 0;
};

constexpr double kTarget = kBaseRtt * 0.75;

TEST(NsccLoop, ALoneSenderFillsItsLinkWithoutAQueue) {
  Loop loop({});
  loop.run_for(100);
  EXPECT_EQ(loop.trims(), 0);
  loop.run_for(100);
  EXPECT_GT(loop.utilisation(), 0.99);
  EXPECT_LT(loop.mean_delay_ns(), kBaseRtt / 20.0);
}

TEST(NsccLoop, ASlowerBottleneckIsFilledWithTheDelayNearTarget) {
  Loop loop({.link_bits_per_ns = 400, .bottleneck_bits_per_ns = 200});
  loop.run_for(100);
  loop.run_for(300);
  EXPECT_EQ(loop.trims(), 0);
  EXPECT_GT(loop.utilisation(), 0.99);
  // The sender's target; marks begin earlier, at 0.2 BDP of the slower link.
  EXPECT_GT(loop.mean_delay_ns(), kTarget / 2);
  EXPECT_LT(loop.mean_delay_ns(), kTarget * 1.15);
}

TEST(NsccLoop, TwoSendersShareEquallyBelowTheTarget) {
  Loop loop({.senders = 2});
  loop.run_for(100);
  loop.run_for(300);
  EXPECT_EQ(loop.trims(), 0);
  EXPECT_GT(loop.utilisation(), 0.99);
  EXPECT_GT(loop.fairness(), 0.98);
  // Where what delay adds and what marks take are equal.
  EXPECT_GT(loop.mean_delay_ns(), kTarget / 2);
  EXPECT_LT(loop.mean_delay_ns(), kTarget);
}

TEST(NsccLoop, AnUnequalStartEvensOut) {
  Loop loop({.senders = 2});
  loop.controller(0).on_loss(0, loop.controller(0).window_bytes());
  loop.run_for(5);
  EXPECT_LT(loop.fairness(), 0.9);
  loop.run_for(200);
  loop.run_for(300);
  EXPECT_GT(loop.fairness(), 0.98);
}

class NsccIncast : public ::testing::TestWithParam<unsigned> {};

TEST_P(NsccIncast, SettlesWithoutFurtherTrims) {
  Loop loop({.senders = GetParam()});
  loop.run_for(20);
  EXPECT_GT(loop.trims(), 0);
  loop.run_for(300);
  EXPECT_EQ(loop.trims(), 0);
  EXPECT_GT(loop.utilisation(), 0.99);
  EXPECT_GT(loop.fairness(), 0.95);
  EXPECT_LT(loop.mean_delay_ns(), kBaseRtt);
}

TEST_P(NsccIncast, IsHardlyTrimmedWhenAnnounced) {
  Loop loop({.senders = GetParam(), .announced_senders = GetParam()});
  loop.run_for(20);
  EXPECT_EQ(loop.trims(), 0);
  EXPECT_GT(loop.utilisation(), 0.85);
  loop.run_for(300);
  EXPECT_LT(loop.trims(), loop.delivered_packets() / 1'000);
  EXPECT_GT(loop.utilisation(), 0.99);
  EXPECT_GT(loop.fairness(), 0.95);
  EXPECT_NEAR(loop.mean_delay_ns(), kTarget, kTarget / 10);
  // What is equal stays equal.
  loop.run_for(1'000);
  loop.run_for(300);
  EXPECT_EQ(loop.trims(), 0);
  EXPECT_GT(loop.fairness(), 0.95);
}

INSTANTIATE_TEST_SUITE_P(Degrees, NsccIncast, ::testing::Values(8U, 32U),
                         [](const auto& degree) { return std::to_string(degree.param); });

TEST(NsccLoop, AWrongIncastHintCostsNothingOnAnIdleNetwork) {
  Loop loop({.senders = 1, .announced_senders = 32});
  loop.run_for(50);
  loop.run_for(50);
  EXPECT_GT(loop.utilisation(), 0.99);
}

// Says nothing about the slowest sender: at the largest pace scale it may wait longer than this
// runs.
TEST(NsccLoop, ADeepIncastFillsTheLinkWithFewTrims) {
  Loop loop({.senders = 512});
  loop.run_for(200);
  loop.run_for(600);
  EXPECT_GT(loop.utilisation(), 0.99);
  EXPECT_GT(loop.fairness(), 0.6);
  // About one trim for ten packets delivered; without pacing it would be eight.
  const std::int64_t capacity_packets = 600 * kBaseRtt * 400 / 8 / kNsccMtu;
  EXPECT_LT(loop.trims(), capacity_packets / 4);
}

TEST(NsccLoop, WithoutTrimmingLossesEndToo) {
  Loop loop({.senders = 32, .capacity_percent_of_bdp = 500, .trims = false});
  loop.run_for(50);
  loop.run_for(300);
  EXPECT_EQ(loop.trims(), 0);
  EXPECT_GT(loop.utilisation(), 0.99);
  EXPECT_LT(loop.mean_delay_ns(), kBaseRtt * 1.25);
}

TEST(NsccLoop, ALostPlaneNeitherTrimsNorIdles) {
  Loop loop({.senders = 2});
  loop.run_for(200);
  loop.set_bottleneck(200);
  loop.run_for(50);
  EXPECT_EQ(loop.trims(), 0);
  EXPECT_GT(loop.utilisation(), 0.99);
  loop.set_bottleneck(400);
  loop.run_for(20);
  EXPECT_EQ(loop.trims(), 0);
  EXPECT_GT(loop.utilisation(), 0.97);
}

// Prints the rows of the table in docs/congestion.md.
TEST(NsccLoop, DISABLED_TableOfTheDocumentation) {
  for (const unsigned senders : {2U, 8U, 32U, 128U, 512U}) {
    for (const bool hint : {false, true}) {
      Loop loop({.senders = senders, .announced_senders = hint ? senders : 0});
      loop.run_for(10);
      const std::int64_t first_trims = loop.trims();
      loop.run_for(senders < 128 ? 40 : 190);
      const std::int64_t middle_trims = loop.trims();
      loop.run_for(senders < 128 ? 300 : 1'800);
      std::printf("| %u | %s | %.2f | %.2f | %lld, %lld | %.4f | %.2f |\n", senders,
                  hint ? "yes" : "no", loop.utilisation(), loop.mean_delay_ns() / kBaseRtt,
                  static_cast<long long>(first_trims), static_cast<long long>(middle_trims),
                  static_cast<double>(loop.trims()) / static_cast<double>(loop.delivered_packets()),
                  loop.fairness());
    }
  }
}

}  // namespace
}  // namespace mrc::core
