// worst_packet: what one packet of a hostile peer costs, beside an ordinary data packet.
//
// The peer knows all numbers of the queue pair, so every packet here passes the first checks. Each
// attack is a stream of packets; what is timed is the engine's work on them, with the answers it
// gives, in slices of kSlice packets. Between slices the victim sends what it may, untimed: work
// that its own packets brought about is not the attacker's.
//
// The mean of a stream is held against the mean of ordinary data packets in the same run. A single
// packet may settle a whole window at once (an honest cumulative acknowledgement does), so the
// column "dearest slice" may be larger; what it settles it settles once.
#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <functional>
#include <string>
#include <vector>

#include "core/endpoint.h"
#include "support/engine_driver.h"
#include "wire/packet.h"

namespace mrc::bench {
namespace {

constexpr unsigned kSlice = 32;
constexpr unsigned kSlices = 400;
constexpr QpNumber kVictimQp{0x100};
constexpr QpNumber kPeerQp{0x200};
constexpr Address kVictim{0, 1};
constexpr Address kPeer{0, 2};
constexpr std::uint64_t kBase = 0x10'0000;
constexpr std::uint32_t kMtu = 4096;
constexpr std::uint32_t kMessageBytes = 64 << 20;
constexpr std::uint64_t kPortBitsPerSecond = 100'000'000'000;
constexpr DurationNs kBetweenPacketsNs = 100;

struct Shape {
  unsigned evs = 128;
  std::uint8_t window_units = 8;  // of 128 packets
};

double thread_ns() {
  timespec now{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return 1e9 * static_cast<double>(now.tv_sec) + static_cast<double>(now.tv_nsec);
}

void must(const Status& status) {
  if (status.ok()) return;
  std::fprintf(stderr, "worst_packet: %s\n", status.what());
  std::exit(1);
}

// One engine under attack, sending all the time and ready to receive.
class Victim : public test::EngineWorld {
 public:
  static constexpr bool kWatched = false;  // it is timed

  explicit Victim(const Shape& shape) : shape_(shape) {
    std::vector<core::EvEntry> entries;
    for (unsigned i = 0; i < shape.evs; ++i)
      entries.push_back({0x4000 + i, static_cast<PortId>(i % kPorts + 1)});
    profile_ = core::EvProfile::create(entries).value();
    must(driver_.start({.address = kVictim,
                        .port_count = kPorts,
                        .port_bits_per_second = kPortBitsPerSecond,
                        .seed = 5,
                        .max_qps = 4}));
    test::SeededKeys keys(7);
    key_ = engine()
               .register_memory(
                   {.address = kBase, .length = std::uint64_t{1} << 32, .remote_write = true}, keys)
               .value();
    connect();
  }

  core::Endpoint& engine() { return driver_.engine(); }
  const core::Endpoint& engine() const { return driver_.engine(); }
  Rkey key() const { return key_; }
  unsigned window() const { return shape_.window_units * 128U; }
  const core::EvProfile& profile() const { return profile_; }
  // Those in flight, oldest first, as they left the last time.
  const std::vector<core::TxPacket>& sent() const { return sent_; }

  // Sends until the engine has nothing more to say.
  void send_all() {
    sent_.clear();
    core::TxPacket packet;
    while (driver_.take(now_, PortMask::first(kPorts), packet)) {
      if (packet.payload_length > 0) sent_.push_back(packet);
      now_ += kBetweenPacketsNs / 4;
      top_up();
    }
  }
  // Time passes until something is to be sent again.
  void wait() {
    now_ = std::max(now_, std::min(engine().next_deadline(), now_ + kMillisecondNs));
    driver_.fire(now_);
    send_all();
  }
  // The cost of a slice in ns per packet.
  double take(const std::vector<std::pair<core::Arrival, wire::Packet>>& slice) {
    const double from = thread_ns();
    for (const auto& [arrival, packet] : slice) {
      now_ += kBetweenPacketsNs;
      driver_.deliver(now_, arrival, packet, [](const core::RxResult&) {});
      core::TxPacket answer;
      // Answers leave at once; data waits for its turn.
      for (int n = 0; n < 4 && driver_.take(now_, PortMask::first(kPorts), answer); ++n) {
      }
    }
    const double cost = (thread_ns() - from) / static_cast<double>(slice.size());
    driver_.drain_events();
    top_up();
    return cost;
  }
  void on_completion(const core::Completion&) { --posted_; }
  bool alive() const {
    return engine().query_qp(kVictimQp).value().state == core::QpState::kReadyToSend;
  }

 private:
  static constexpr unsigned kPorts = 4;

  void connect() {
    must(engine().create_qp({.number = kVictimQp, .max_sends = 16}));
    core::QpInit init{.ev_profile = &profile_};
    init.cc.nscc.base_rtt_ns = 1'000'000;  // the whole window leaves at once
    must(engine().init_qp(kVictimQp, init));
    must(engine().ready_to_receive(kVictimQp, {.remote = kPeer,
                                               .remote_qp = kPeerQp,
                                               .path_mtu = kMtu,
                                               .mpr_dest = shape_.window_units}));
    must(engine().ready_to_send(now_, kVictimQp,
                                {.mpr = shape_.window_units,
                                 .timeout = 14,
                                 .exponential_retries = core::kMaxExponentialRetries}));
    top_up();
  }
  void top_up() {
    driver_.drain_completions();
    for (; posted_ < 4; ++posted_) {
      must(engine().post_send(
          now_, kVictimQp, {.length = kMessageBytes, .remote_address = kBase, .remote_key = key_}));
    }
  }

  Shape shape_;
  core::EvProfile profile_;
  test::EngineDriver<Victim> driver_{*this};
  Rkey key_{};
  TimeNs now_ = kSecondNs;
  unsigned posted_ = 0;
  std::vector<core::TxPacket> sent_;
};

using Slice = std::vector<std::pair<core::Arrival, wire::Packet>>;
// Makes the packets of the next slice.
using Attack = std::function<Slice(Victim&)>;

core::Arrival from_peer(const Victim& victim, unsigned n, std::uint32_t payload = 0) {
  const auto ev = static_cast<EvIndex>(n % victim.profile().size());
  return {.source = kPeer,
          .port = PortId{1},
          .entropy = victim.profile().entry(ev).entropy,
          .payload_length = payload};
}

wire::Packet write(const Victim& victim, Psn psn, std::uint16_t msn = 0) {
  wire::Packet packet;
  packet.bth = {.opcode = wire::Opcode::kWriteMiddle,
                .has_timestamp = true,
                .destination = kVictimQp,
                .psn = psn};
  packet.body = wire::Write{
      .msn = msn, .address = kBase, .key = victim.key(), .message_length = kMessageBytes};
  return packet;
}

wire::Packet sack(Psn cumulative, std::int16_t offset, std::uint64_t bitmap,
                  const core::TxPacket* answered) {
  wire::Packet packet;
  packet.bth = {.opcode = wire::Opcode::kSack, .destination = kVictimQp, .psn = cumulative};
  wire::Sack body{.source_context = static_cast<std::uint16_t>(kPeerQp),
                  .destination_context = static_cast<std::uint16_t>(kVictimQp),
                  .cumulative = cumulative,
                  .bitmap_offset = offset,
                  .bitmap = bitmap};
  if (answered != nullptr) {
    body.entropy = answered->entropy;
    body.offset_or_probe_id =
        static_cast<std::uint16_t>(answered->packet.bth.psn.distance_from(cumulative));
  }
  packet.body = body;
  return packet;
}

Psn cumulative_of(Victim& victim) {
  const Psn oldest = victim.engine().query_qp(kVictimQp).value().oldest_unacknowledged;
  return oldest + (Psn::kMask);  // one before
}

struct Result {
  double mean = 0;
  double dearest = 0;
};

Result measure(const Shape& shape, const Attack& attack) {
  Victim victim(shape);
  victim.send_all();
  Result result;
  for (unsigned i = 0; i < kSlices; ++i) {
    const double cost = victim.take(attack(victim));
    result.mean += cost / kSlices;
    if (i > 0) result.dearest = std::max(result.dearest, cost);
    if (victim.alive()) continue;
    std::fprintf(stderr, "worst_packet: the queue pair has failed\n");
    std::exit(1);
  }
  return result;
}

// --- What an ordinary peer sends

Slice data_in_order(Victim& victim) {
  Slice slice;
  for (unsigned i = 0; i < kSlice; ++i) {
    const Psn psn = victim.engine().expected_psn(kVictimQp).value() + i;
    slice.emplace_back(from_peer(victim, i, kMtu), write(victim, psn));
  }
  return slice;
}

// --- Attacks on the sender

// SACKs that name the newest packet first, so that all before it on a path seem overtaken.
Slice newest_first(Victim& victim) {
  if (victim.sent().size() < kSlice) victim.wait();
  const auto& sent = victim.sent();
  const Psn cumulative = cumulative_of(victim);
  Slice slice;
  for (std::size_t i = 0; i < std::min<std::size_t>(kSlice, sent.size()); ++i) {
    const core::TxPacket& newest = sent[sent.size() - 1 - i];
    const int offset = newest.packet.bth.psn.distance_from(cumulative);
    slice.emplace_back(from_peer(victim, 0),
                       sack(cumulative, static_cast<std::int16_t>(offset), 1, &newest));
  }
  victim.send_all();
  return slice.empty() ? data_in_order(victim) : slice;
}

// Every other packet of 64, all over the window.
Slice holes(Victim& victim) {
  if (victim.sent().size() < kSlice) victim.wait();
  const Psn cumulative = cumulative_of(victim);
  Slice slice;
  for (unsigned i = 0; i < kSlice; ++i) {
    const auto offset = static_cast<std::int16_t>(1 + i * 61 % victim.window());
    slice.emplace_back(from_peer(victim, i),
                       sack(cumulative, offset, 0x5555'5555'5555'5555, nullptr));
  }
  victim.send_all();
  return slice;
}

Slice sacks_without_news(Victim& victim) {
  const Psn cumulative = cumulative_of(victim);
  return Slice(kSlice, {from_peer(victim, 0), sack(cumulative, 1, 0, nullptr)});
}

Slice sacks_that_mark(Victim& victim) {
  Slice slice;
  const Psn cumulative = cumulative_of(victim);
  for (unsigned i = 0; i < kSlice; ++i) {
    const core::Arrival arrival = from_peer(victim, i);
    wire::Packet packet = sack(cumulative, 1, 0, nullptr);
    auto& body = *std::get_if<wire::Sack>(&packet.body);
    body.mark = i % 2 == 0 ? wire::PathMark::kAlwaysSkip : wire::PathMark::kSkipOnce;
    body.entropy = arrival.entropy;
    slice.emplace_back(arrival, packet);
  }
  return slice;
}

Slice nacks(Victim& victim) {
  if (victim.sent().size() < kSlice) victim.wait();
  Slice slice;
  for (std::size_t i = 0; i < std::min<std::size_t>(kSlice, victim.sent().size()); ++i) {
    const core::TxPacket& sent = victim.sent()[victim.sent().size() - 1 - i];
    wire::Packet packet;
    packet.bth = {.opcode = wire::Opcode::kNack, .destination = kVictimQp};
    packet.body = wire::Nack{.entropy = sent.entropy,
                             .source_context = static_cast<std::uint16_t>(kPeerQp),
                             .destination_context = static_cast<std::uint16_t>(kVictimQp),
                             .psn = sent.packet.bth.psn};
    slice.emplace_back(from_peer(victim, 0), packet);
  }
  victim.send_all();
  return slice.empty() ? data_in_order(victim) : slice;
}

Slice acks_without_news(Victim& victim) {
  wire::Packet packet;
  packet.bth = {
      .opcode = wire::Opcode::kAck, .destination = kVictimQp, .psn = cumulative_of(victim)};
  packet.body = wire::Ack{.syndrome = wire::kSyndromeAck, .msn = 0};
  return Slice(kSlice, {from_peer(victim, 0), packet});
}

// --- Attacks on the receiver

// One packet at each end of the window and back: gaps everywhere.
Slice gaps(Victim& victim) {
  Slice slice;
  const Psn expected = victim.engine().expected_psn(kVictimQp).value();
  static unsigned at = 0;
  for (unsigned i = 0; i < kSlice; ++i) {
    at = (at + 2) % (victim.window() - 2);
    slice.emplace_back(from_peer(victim, i, kMtu),
                       write(victim, expected + (victim.window() - 1 - at)));
  }
  return slice;
}

Slice duplicates(Victim& victim) {
  const Psn before = victim.engine().expected_psn(kVictimQp).value() + Psn::kMask;
  return Slice(kSlice, {from_peer(victim, 0, kMtu), write(victim, before)});
}

Slice beyond_the_window(Victim& victim) {
  const Psn far = victim.engine().expected_psn(kVictimQp).value() + 2 * victim.window();
  return Slice(kSlice, {from_peer(victim, 0, kMtu), write(victim, far)});
}

Slice wrong_key(Victim& victim) {
  Slice slice;
  const Psn expected = victim.engine().expected_psn(kVictimQp).value();
  for (unsigned i = 0; i < kSlice; ++i) {
    wire::Packet packet = write(victim, expected + i);
    std::get_if<wire::Write>(&packet.body)->key =
        Rkey{static_cast<std::uint32_t>(victim.key()) + 1 + i};
    slice.emplace_back(from_peer(victim, i, kMtu), packet);
  }
  return slice;
}

Slice trimmed(Victim& victim) {
  Slice slice;
  const Psn expected = victim.engine().expected_psn(kVictimQp).value();
  for (unsigned i = 0; i < kSlice; ++i) {
    core::Arrival arrival = from_peer(victim, i);
    arrival.trim = core::TrimState::kTrimmed;
    slice.emplace_back(arrival, write(victim, expected + 1 + i));
  }
  return slice;
}

Slice probes(Victim& victim) {
  Slice slice;
  for (unsigned i = 0; i < kSlice; ++i) {
    wire::Packet packet;
    packet.bth = {.opcode = wire::Opcode::kProbe, .destination = kVictimQp};
    packet.body = wire::Probe{.probe_id = static_cast<std::uint16_t>(i),
                              .source_context = static_cast<std::uint16_t>(kPeerQp),
                              .destination_context = static_cast<std::uint16_t>(kVictimQp)};
    slice.emplace_back(from_peer(victim, i), packet);
  }
  return slice;
}

// Ports go down and up, each time as news.
Slice port_news(Victim& victim) {
  static std::uint16_t id = 0;
  Slice slice;
  for (unsigned i = 0; i < kSlice; ++i) {
    wire::Packet packet;
    packet.bth = {
        .opcode = wire::Opcode::kEndpointRequest, .destination = kEndpointQp, .psn = Psn(++id)};
    packet.body = wire::EndpointRequest{.port_status = i % 2 == 0 ? 0x1U : 0xFU};
    slice.emplace_back(from_peer(victim, i), packet);
  }
  return slice;
}

struct Row {
  const char* name;
  Attack attack;
};

int run() {
  const Row rows[] = {{"SACKs, newest first", newest_first},
                      {"SACKs, every other packet", holes},
                      {"SACKs without news", sacks_without_news},
                      {"SACKs that mark paths", sacks_that_mark},
                      {"NACKs, newest first", nacks},
                      {"ACKs without news", acks_without_news},
                      {"writes, gaps everywhere", gaps},
                      {"writes, duplicates", duplicates},
                      {"writes, beyond the window", beyond_the_window},
                      {"writes, wrong key", wrong_key},
                      {"writes, trimmed", trimmed},
                      {"probes", probes},
                      {"port status, always news", port_news}};
  const Shape shapes[] = {{.evs = 128, .window_units = 8},
                          {.evs = 1, .window_units = 8},
                          {.evs = 1, .window_units = 255},
                          {.evs = 1024, .window_units = 255}};
  double worst = 0;
  for (const Shape& shape : shapes) {
    const Result data = measure(shape, data_in_order);
    std::printf("\n%u paths, window of %u packets; an ordinary data packet: %.0f ns\n", shape.evs,
                shape.window_units * 128U, data.mean);
    std::printf("%-28s %9s %16s %7s\n", "packets of", "mean ns", "dearest slice ns", "ratio");
    for (const Row& row : rows) {
      const Result result = measure(shape, row.attack);
      std::printf("%-28s %9.0f %16.0f %6.1fx\n", row.name, result.mean, result.dearest,
                  result.mean / data.mean);
      worst = std::max(worst, result.mean / data.mean);
    }
  }
  std::printf("\nworst ratio %.1f\n", worst);
  return 0;
}

}  // namespace
}  // namespace mrc::bench

int main() { return mrc::bench::run(); }
