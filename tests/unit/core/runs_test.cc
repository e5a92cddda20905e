// Runs are a cheaper way to say the same: two engines that take and give them behave to the last
// packet, completion and counter like two that see one packet at a time.
#include <gtest/gtest.h>

#include <array>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/prng.h"
#include "core/endpoint.h"

namespace mrc::core {
namespace {

constexpr std::uint32_t kMtu = 1024;
constexpr unsigned kQps = 8;
constexpr std::uint64_t kBase = 0x10000;
constexpr std::uint64_t kLength = 1 << 20;
constexpr Rkey kKey{0x77};

QpNumber qp_number(unsigned side, unsigned i) {
  return static_cast<QpNumber>(0x100 * (side + 1) + i);
}

// A packet under way. Those that leave together on one path arrive together, mostly.
struct Flying {
  wire::Packet packet;
  Arrival arrival;
  unsigned to = 0;
  unsigned at_step = 0;
};

// Two ends and the network between them. All that happens follows from the seed; whether packets
// move in runs is the only difference between two worlds.
class World {
 public:
  World(std::uint64_t seed, bool runs) : random_(seed), most_(seed + 1), runs_(runs) {
    lossy_ = random_.below(3) == 0;
    copies_ = random_.below(4) == 0 ? 100 : 3;
    sender_units_ = static_cast<std::uint8_t>(random_.below(4) == 0 ? 2 : 1);
    for (unsigned side = 0; side < 2; ++side)
      start(side);
  }

  void step() {
    now_ += 1 + random_.below(30'000);
    ++step_;
    slow_port_ = static_cast<PortId>(random_.below(8));  // mostly none that exists
    for (unsigned side = 0; side < 2; ++side) {
      change_something(side);
      deliver(side);
      Endpoint& end = *ends_[side];
      if (end.next_deadline() <= now_) end.on_timer(now_);
      send(side);
      report(side);
    }
  }
  void compare_counters(const World& other) const {
    for (unsigned side = 0; side < 2; ++side) {
      const EndpointCounters& a = ends_[side]->counters();
      const EndpointCounters& b = other.ends_[side]->counters();
      EXPECT_EQ(a.drops, b.drops);
      for (unsigned port = 0; port < 2; ++port) {
        EXPECT_EQ(a.ports[port].bytes_sent, b.ports[port].bytes_sent);
        EXPECT_EQ(a.ports[port].packets_sent, b.ports[port].packets_sent);
        EXPECT_EQ(a.ports[port].packets_received, b.ports[port].packets_received);
        EXPECT_EQ(a.ports[port].bytes_received, b.ports[port].bytes_received);
      }
      for (unsigned i = 0; i < kQps; ++i)
        compare_qp(other, side, qp_number(side, i));
    }
  }

  const std::string& story() const { return story_; }
  unsigned joined() const { return joined_; }  // packets that were not the first of their run
  unsigned joined_at_receiver() const { return joined_at_receiver_; }

 private:
  void start(unsigned side) {
    const unsigned planes = 1 + random_.below(2);
    ends_[side] = Endpoint::create({.address = {0xFD00, side + 1},
                                    .port_count = 2,
                                    .seed = side + 1,
                                    .group_answers = random_.below(2) == 0})
                      .value();
    std::vector<EvEntry> entries;
    for (std::uint32_t i = 0; i < 8; ++i)
      entries.push_back({.entropy = 0x1000 + i, .port = static_cast<PortId>(i % planes + 1)});
    profiles_[side] = EvProfile::create(entries).value();
    Endpoint& end = *ends_[side];
    // The second half of what writes are aimed at is nobody's.
    EXPECT_TRUE(
        end.register_memory({.address = kBase, .length = kLength, .remote_write = true}, kKey)
            .ok());
    const bool nscc = random_.below(2) == 0;
    own_paths_[side] = random_.below(4) == 0;
    const auto threshold = random_.below(3) * 6 * kMtu;
    for (unsigned i = 0; i < kQps; ++i) {
      const QpNumber number = qp_number(side, i);
      QpInit init{.ev_profile = own_paths_[side] ? nullptr : &profiles_[side]};
      init.cc.algorithm = nscc ? CcAlgorithm::kNscc : CcAlgorithm::kNone;
      EXPECT_TRUE(end.create_qp({.number = number}).ok());
      EXPECT_TRUE(end.init_qp(number, init).ok());
      EXPECT_TRUE(end.ready_to_receive(number, {.remote = {0xFD00, 2 - side},
                                                .remote_qp = qp_number(1 - side, i),
                                                .first_psn = Psn(Psn::kMask - 200),
                                                .path_mtu = kMtu,
                                                .mpr_dest = 1,
                                                .sack_threshold_bytes = threshold})
                      .ok());
      EXPECT_TRUE(
          end.ready_to_send(0, number,
                            {.first_psn = Psn(Psn::kMask - 200),
                             .mpr = sender_units_,
                             .max_outstanding = i == 0 ? std::uint16_t{40} : std::uint16_t{0}})
              .ok());
    }
  }

  void change_something(unsigned side) {
    Endpoint& end = *ends_[side];
    if (random_.below(3) == 0) end.set_spray_quantum(1 + random_.below(20));
    if (random_.below(200) == 0) {
      [[maybe_unused]] const Status done =
          end.set_port_up(now_, static_cast<PortId>(1 + random_.below(2)), random_.below(3) != 0);
    }
    for (unsigned i = 0; i < kQps; ++i) {
      if (random_.below(4) != 0) continue;
      const std::uint32_t length = random_.below(60) * kMtu + random_.below(kMtu);
      const bool beyond = random_.below(400) == 0;
      [[maybe_unused]] const Status posted = end.post_send(
          now_, qp_number(side, i),
          {.id = step_,
           .length = length,
           .remote_address = kBase + (beyond ? kLength - length / 2 : random_.below(1 << 16)),
           .remote_key = kKey,
           .with_immediate = random_.below(4) == 0});
      [[maybe_unused]] const Status room = end.post_receive(qp_number(side, i), {.id = step_});
    }
  }

  void send(unsigned side) {
    const PortMask free = random_.below(4) == 0 ? PortMask::first(1) : PortMask::first(2);
    unsigned left = random_.below(60);
    TxPacket out;
    while (left > 0) {
      const unsigned most = runs_ ? 1 + most_.below(left) : 1;
      if (!ends_[side]->next_run(now_, free, most, out)) break;
      ASSERT_LE(out.run, most);
      left -= out.run;
      joined_ += out.run - 1;
      for (unsigned i = 0; i < out.run; ++i) {
        launch(side, out);
        if (out.run > 1) wire::move_on(out.packet, 1, out.payload_length);
        out.local_address += out.payload_length;
      }
    }
  }

  // What becomes of a packet is drawn when it leaves.
  void launch(unsigned side, const TxPacket& out) {
    tell("send", {static_cast<std::uint64_t>(out.packet.bth.opcode), out.packet.bth.psn.value(),
                  out.packet.bth.ack_request, out.packet.bth.retransmission, out.local_address,
                  out.payload_length, out.entropy, static_cast<std::uint64_t>(out.port)});
    Flying flying{.packet = out.packet,
                  .arrival = {.source = {0xFD00, side + 1},
                              .port = out.port,
                              .entropy = out.entropy,
                              .payload_length = out.payload_length},
                  .to = 1 - side,
                  .at_step = step_ + (out.port == slow_port_ ? 3 : 1)};
    const unsigned fate = random_.below(400);
    const bool is_write = wire::is_write(out.packet.bth.opcode);
    if (lossy_ && fate < 12) return;
    if (lossy_ && fate < 16) flying.at_step += 1 + random_.below(3);
    if (fate == 20) flying.arrival.congestion_experienced = true;
    if (fate == 21 && is_write) {
      flying.arrival.trim = TrimState::kTrimmed;
      flying.arrival.payload_length = 0;
    }
    air_.push_back(flying);
    if (fate >= 22 && fate < 22 + copies_) air_.push_back(flying);
  }

  void deliver(unsigned side) {
    std::vector<Flying> arrived;
    std::erase_if(air_, [&](const Flying& flying) {
      if (flying.to != side || flying.at_step > step_) return false;
      arrived.push_back(flying);
      return true;
    });
    for (std::size_t i = 0; i < arrived.size();) {
      const unsigned length = runs_ ? run_from(arrived, i) : 1;
      const RxResult result =
          ends_[side]->on_run(now_, arrived[i].arrival, arrived[i].packet, length);
      ASSERT_LE(result.taken, length);
      ASSERT_GE(result.taken, 1U);
      joined_at_receiver_ += result.taken - 1;
      const std::uint32_t each = result.placement.length / result.taken;
      for (unsigned n = 0; n < result.taken; ++n)
        tell("take", {static_cast<std::uint64_t>(result.drop), each,
                      each == 0 ? 0 : result.placement.address + n * each});
      i += result.taken;
    }
  }

  // How many packets from the i-th on are one run.
  static unsigned run_from(const std::vector<Flying>& arrived, std::size_t i) {
    const Flying& first = arrived[i];
    if (first.packet.bth.opcode != wire::Opcode::kWriteMiddle) return 1;
    if (first.arrival.trim != TrimState::kWhole) return 1;
    wire::Packet expected = first.packet;
    unsigned count = 1;
    for (++i; i < arrived.size(); ++i, ++count) {
      wire::move_on(expected, 1, first.arrival.payload_length);
      const Arrival& next = arrived[i].arrival;
      const bool same_way = next.port == first.arrival.port &&
                            next.entropy == first.arrival.entropy &&
                            next.trim == first.arrival.trim &&
                            next.congestion_experienced == first.arrival.congestion_experienced;
      if (!same_way || arrived[i].packet != expected) break;
    }
    return count;
  }

  void report(unsigned side) {
    Completion done;
    while (ends_[side]->next_completion(done))
      tell("done", {static_cast<std::uint64_t>(done.qp), static_cast<std::uint64_t>(done.status),
                    done.id, done.length});
    Event event;
    while (ends_[side]->next_event(event))
      tell("event", {static_cast<std::uint64_t>(event.kind), static_cast<std::uint64_t>(event.qp),
                     static_cast<std::uint64_t>(event.ev), static_cast<std::uint64_t>(event.time)});
    tell("until",
         {static_cast<std::uint64_t>(ends_[side]->next_deadline()), ends_[side]->wants_to_send()});
  }

  void compare_qp(const World& other, unsigned side, QpNumber number) const {
    const QpStatus a = ends_[side]->query_qp(number).value();
    const QpStatus b = other.ends_[side]->query_qp(number).value();
    EXPECT_EQ(a.state, b.state);
    EXPECT_EQ(a.bytes_in_flight, b.bytes_in_flight);
    EXPECT_EQ(a.peer_bytes_in_flight, b.peer_bytes_in_flight);
    EXPECT_EQ(a.window_bytes, b.window_bytes);
    EXPECT_EQ(a.counters.data_sent, b.counters.data_sent);
    EXPECT_EQ(a.counters.bytes_sent, b.counters.bytes_sent);
    EXPECT_EQ(a.counters.data_received, b.counters.data_received);
    EXPECT_EQ(a.counters.bytes_received, b.counters.bytes_received);
    EXPECT_EQ(a.counters.duplicates, b.counters.duplicates);
    for (unsigned ev = 0; ev < 8 && !own_paths_[side]; ++ev) {
      EXPECT_EQ(
          ends_[side]->query_ev_counters(number, static_cast<EvIndex>(ev)).value().sent,
          other.ends_[side]->query_ev_counters(number, static_cast<EvIndex>(ev)).value().sent);
    }
  }

  void tell(const char* what, std::initializer_list<std::uint64_t> values) {
    story_ += std::to_string(step_) + ' ' + what;
    for (const std::uint64_t value : values)
      story_ += ' ' + std::to_string(value);
    story_ += '\n';
  }

  Prng random_;
  Prng most_;
  bool runs_;
  bool lossy_ = false;
  unsigned copies_ = 0;            // of 400 packets
  std::uint8_t sender_units_ = 1;  // with 2 it sends beyond what the receiver tracks
  PortId slow_port_ = kNoPort;     // what leaves by it in this step is overtaken
  TimeNs now_ = 0;
  unsigned step_ = 0;
  unsigned joined_ = 0;
  unsigned joined_at_receiver_ = 0;
  std::array<EvProfile, 2> profiles_;
  std::array<bool, 2> own_paths_{};  // chosen by the endpoint, without a profile
  std::array<std::unique_ptr<Endpoint>, 2> ends_;
  std::vector<Flying> air_;
  std::string story_;
};

// The first line in which two stories differ, for a person.
std::string difference(const std::string& a, const std::string& b) {
  std::size_t line = 0;
  for (std::size_t i = 0; i < std::min(a.size(), b.size()); ++i) {
    if (a[i] != b[i]) break;
    if (a[i] == '\n') line = i + 1;
  }
  return "one by one: " + a.substr(line, a.find('\n', line) - line) +
         "\nin runs:    " + b.substr(line, b.find('\n', line) - line);
}

TEST(Runs, SayWhatPacketsOneByOneWouldSay) {
  unsigned joined = 0;
  unsigned joined_at_receiver = 0;
  for (std::uint64_t seed = 1; seed <= 60; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    World singles(seed, false);
    World runs(seed, true);
    for (unsigned i = 0; i < 400; ++i) {
      singles.step();
      runs.step();
    }
    ASSERT_EQ(singles.story() == runs.story(), true) << difference(singles.story(), runs.story());
    singles.compare_counters(runs);
    EXPECT_EQ(singles.joined(), 0U);
    joined += runs.joined();
    joined_at_receiver += runs.joined_at_receiver();
  }
  // Otherwise nothing was compared.
  EXPECT_GT(joined, 50'000U);
  EXPECT_GT(joined_at_receiver, 50'000U);
}

}  // namespace
}  // namespace mrc::core
