// Two engines joined by a virtual network with real memory: the smallest world in which stories
// about the protocol can be told. Delays differ per path, so packets of different paths overtake
// each other.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <vector>

#include "core/endpoint.h"
#include "support/engine_driver.h"

namespace mrc::test {

struct PairOptions {
  unsigned ports = 4;
  unsigned evs = 32;
  std::uint32_t mtu = 1024;
  std::uint8_t window_units = 8;
  Psn first_psn{0xFFFFF0};
  DurationNs one_way_ns = 5'000;
  DurationNs spread_ns = 2'000;  // the slowest path takes this much longer
  std::uint32_t max_sends = 64;
  std::uint8_t timeout = 8;
  std::uint8_t exponential_retries = core::kMaxExponentialRetries;
  core::CcAlgorithm cc = core::CcAlgorithm::kNscc;
  bool allow_sends = false;
  unsigned spray_quantum = 1;
  std::uint16_t max_outstanding = 0;
  DurationNs jitter_ns = 0;
  bool group_answers = false;
};

class Pair {
 public:
  static constexpr std::size_t kMemoryBytes = 1 << 22;
  static constexpr QpNumber kQp{0x111};

  // The world of one of the two engines: what is its own, and what came out of it.
  struct Side : EngineWorld {
    Side(Pair& owner, int number) : pair(owner), index(number) {}

    PortMask free_ports() const { return PortMask::first(pair.options_.ports); }
    void send(const core::TxPacket& packet, PortMask) { pair.carry(index, packet); }
    void on_completion(const core::Completion& completion) { completions.push_back(completion); }
    void on_event(const core::Event& event) { events.push_back(event); }

    Pair& pair;
    int index;
    EngineDriver<Side> driver{*this};
    std::vector<std::byte> memory = std::vector<std::byte>(kMemoryBytes);
    Rkey key{};
    std::vector<core::Completion> completions;
    std::map<std::uint64_t, std::vector<std::byte>> receives;  // by id, as long as asked for
    std::vector<core::Event> events;
    std::uint64_t packets_sent = 0;
  };

  explicit Pair(const PairOptions& options = {});

  // Decides the fate of a packet on its way: false = it is lost. Called with the sending side (0 or
  // 1).
  std::function<bool(int from, const core::TxPacket&)> deliver = [](int, const core::TxPacket&) {
    return true;
  };

  Side& side(int i) { return sides_[i]; }
  core::Endpoint& endpoint(int i) { return sides_[i].driver.engine(); }
  TimeNs now() const { return now_; }

  // Posts a write of `length` bytes from offset 0 of side 0's memory to `offset` of side 1's.
  void write(std::uint64_t id, std::uint32_t length, std::uint64_t offset = 0,
             bool immediate = false);
  // Posts a receive at side 1, and a send of `length` bytes from offset 0 of side 0's memory.
  void post_receive(std::uint64_t id, std::uint32_t capacity);
  void send(std::uint64_t id, std::uint32_t length, bool immediate = false);
  // Side `i` takes no packet before so much time has passed.
  void stop(int i, DurationNs pause_ns);
  // Runs until nothing is in the network and no timer is due before `until`, or until `done` holds.
  void run_until(TimeNs until);
  bool run_until_completions(std::size_t count, TimeNs until);
  core::QpStatus status(int i) const { return sides_[i].driver.engine().query_qp(kQp).value(); }

 private:
  struct Flight {
    int to = 0;
    core::TxPacket packet;
    std::vector<std::byte> payload;
  };
  void connect(int i);
  void pump(int i) { sides_[i].driver.pump(now_); }
  void carry(int from, const core::TxPacket& packet);
  void land(const Flight& flight);
  bool step(TimeNs until);

  PairOptions options_;
  core::EvProfile profile_;
  Side sides_[2] = {{*this, 0}, {*this, 1}};
  std::multimap<TimeNs, Flight> network_;
  TimeNs stopped_until_[2] = {};
  TimeNs now_ = 0;
};

}  // namespace mrc::test
