// The one driver of the engine in virtual time: seeded simulation, packet scripts, pairs of
// engines, fuzzers and benchmarks run core::Endpoint with it.
//
// The driver owns the engine and the order in which its verbs are called. The world around it owns
// everything else: time, ports, the network, memory, programs. One world type has one driver type;
// a world with two engines has two drivers, each with a small world of its own.
//
//   deliver    a packet came in; its payload is placed before anything else is asked
//   fire       time passed
//   take       one packet, for ports that are free
//   drain      completions, then events
//   pump       all that follows from one of the above, a post or a port that changed:
//              results, packets until there are none, results
//   step       to the next deadline: fire, pump
//
// Most worlds pump after everything. Where the order of calls is what is tested (fuzzers) or each
// call is timed alone (benchmarks), the world calls the first four itself.
//
// Whatever the world does, these rules hold, or its fail() is told:
//   1. a packet that came in is counted once, under the reason that on_packet gave;
//   2. a packet leaves on a port that is free and up;
//   3. what leaves survives encoding and decoding;
//   4. on_timer leaves no deadline that is due, and the engine comes to rest: neither packets nor
//      timers go on for ever at one instant.
//
// When to wake up is the world's: the seeded simulation keeps port and timer in its event queue,
// late and early as the seed has it; a pair looks at both deadlines and the network; only a world
// of one engine steps. The product's own drivers, src/sim and src/nic/engine, share nothing with
// this one: they have budgets, batches and real ports where this one has rules.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <utility>

#include "base/prng.h"
#include "core/endpoint.h"
#include "support/wire_form.h"

namespace mrc::test {

// What a world may leave as it is. A world derives from this and hides what it wants otherwise;
// nothing is virtual. Of its own it needs, to be pumped,
//
//   PortMask free_ports();
//   void send(const core::TxPacket& packet, PortMask free);    `free`: what the engine was offered
struct EngineWorld {
  // False: the rules are not watched, because the engine's instructions are counted.
  static constexpr bool kWatched = true;

  // Around each call on the packet path.
  template <typename Call>
  auto run(const char* /*verb*/, Call&& call) {
    return call();
  }
  bool polls_results() { return true; }  // false: its programs look later, at drain()
  void on_completion(const core::Completion&) {}
  void on_event(const core::Event&) {}
  void on_idle(PortMask /*free*/) {}  // nothing to send though these ports are free
  void after_pump() {}
  // A rule is broken; `packet` is the one that broke it, or null.
  [[noreturn]] void fail(const char* what, const core::TxPacket* /*packet*/) {
    std::fprintf(stderr, "engine: %s\n", what);
    std::abort();
  }
};

template <typename World>
class EngineDriver {
 public:
  explicit EngineDriver(World& world) : world_(world) {}
  EngineDriver(const EngineDriver&) = delete;
  EngineDriver& operator=(const EngineDriver&) = delete;

  // A new engine; the one before is forgotten with all it knew.
  Status start(const core::EndpointConfig& config) {
    auto created = core::Endpoint::create(config);
    if (!created.ok()) return created.status();
    engine_ = std::move(created).value();
    return {};
  }
  void stop() { engine_.reset(); }
  bool running() const { return engine_ != nullptr; }
  core::Endpoint& engine() { return *engine_; }
  const core::Endpoint& engine() const { return *engine_; }

  // `place` is given the RxResult and copies the payload to where it says.
  template <typename Place>
  void deliver(TimeNs now, const core::Arrival& arrival, const wire::Packet& packet,
               Place&& place) {
    timers_at_once_ = 0;  // a packet may well bring a deadline that is due
    const auto on_packet = [&] { return engine_->on_packet(now, arrival, packet); };
    if constexpr (World::kWatched) {
      const auto before = engine_->counters().drops;
      const core::RxResult result = world_.run("on_packet", on_packet);
      const auto reason = static_cast<std::size_t>(result.drop);
      require(reason < before.size(), "on_packet gave an unknown drop reason");
      require(engine_->counters().drops[reason] == before[reason] + 1,
              "the counter of a drop reason did not count a packet");
      place(result);
    } else {
      place(on_packet());
    }
  }
  void deliver_corrupt(TimeNs now, const core::Arrival& arrival, const wire::Packet& packet) {
    world_.run("on_corrupt_packet", [&] {
      engine_->on_corrupt_packet(now, arrival, packet);
      return true;
    });
  }

  bool timer_due(TimeNs now) const { return engine_->next_deadline() <= now; }
  void fire(TimeNs now) {
    if constexpr (World::kWatched) {
      timers_at_once_ = now == last_timer_ ? timers_at_once_ + 1 : 1;
      last_timer_ = now;
      require(timers_at_once_ <= kMaxTimersAtOnce,
              "the engine asks for its timer at the same instant again and again");
    }
    world_.run("on_timer", [&] {
      engine_->on_timer(now);
      return true;
    });
    if constexpr (World::kWatched) {
      require(engine_->next_deadline() > now, "on_timer leaves a deadline that is due");
    }
  }

  bool take(TimeNs now, PortMask free, core::TxPacket& out) {
    if (!world_.run("next_packet", [&] { return engine_->next_packet(now, free, out); })) {
      return false;
    }
    if constexpr (World::kWatched) {
      require((free & engine_->ports_up()).contains(out.port),
              "a packet on a port that is not free or not up", &out);
      if (const char* fault = wire_fault(out); fault != nullptr) world_.fail(fault, &out);
    }
    return true;
  }

  // Inline always: a benchmark asks after each packet, and a call more is half a percent of one.
  [[gnu::always_inline]] void drain_completions() {
    core::Completion completion;
    while (world_.run("next_completion", [&] { return engine_->next_completion(completion); }))
      world_.on_completion(completion);
  }
  void drain_events() {
    core::Event event;
    while (world_.run("next_event", [&] { return engine_->next_event(event); }))
      world_.on_event(event);
  }
  void drain() {
    drain_completions();
    drain_events();
  }

  // Results come first, so that the world knows what is done when it judges the packets.
  void pump(TimeNs now) {
    if (world_.polls_results()) drain();
    transmit(now);
    if (world_.polls_results()) drain();
    world_.after_pump();
  }

  // Moves `now` to the next deadline, or to `limit` when that comes first. False at the limit.
  bool step(TimeNs& now, TimeNs limit) {
    const TimeNs deadline = engine_->next_deadline();
    if (deadline > limit) {
      now = limit;
      return false;
    }
    now = std::max(now, deadline);
    fire(now);
    pump(now);
    return true;
  }

 private:
  static constexpr unsigned kMaxPacketsAtOnce = 200'000;
  static constexpr unsigned kMaxTimersAtOnce = 1'000;

  void require(bool holds, const char* rule, const core::TxPacket* packet = nullptr) {
    if (!holds) [[unlikely]]
      world_.fail(rule, packet);
  }

  // The world is asked before each packet which ports are free now.
  void transmit(TimeNs now) {
    core::TxPacket packet;
    unsigned count = 0;
    for (PortMask free = world_.free_ports(); !free.empty(); free = world_.free_ports()) {
      if (!take(now, free, packet)) return world_.on_idle(free);
      require(++count <= kMaxPacketsAtOnce, "the engine never stops sending", &packet);
      world_.send(packet, free);
    }
  }

  World& world_;
  std::unique_ptr<core::Endpoint> engine_;
  TimeNs last_timer_ = -1;
  unsigned timers_at_once_ = 0;
};

// How a packet looks to the host it reaches unharmed.
inline core::Arrival arrival_of(const core::TxPacket& packet, Address source) {
  return {.source = source,
          .port = packet.port,
          .entropy = packet.entropy,
          .payload_length = packet.payload_length};
}

// Memory keys that are the same in every run.
class SeededKeys final : public core::RandomSource {
 public:
  explicit SeededKeys(std::uint64_t seed) : prng_(seed) {}
  std::uint32_t next32() override { return prng_.next32(); }

 private:
  Prng prng_;
};

}  // namespace mrc::test
