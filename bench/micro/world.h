// Two engines in one thread, joined by structs that change hands: the load for the benchmarks.
//
// Side 0 writes to side 1 as fast as the windows admit. Time is virtual: one step is the time a
// full packet takes on all ports together. Each path (EV) is a FIFO with a delay of its own, so
// packets of different paths overtake each other. No payload moves and nothing is allocated once
// the constructor is done.
//
// Two ways to run it. run_steps() interleaves everything, as a real endpoint does, and costs what
// the engines cost plus the hand-over. send() / receive() / settle() run one kind of engine work at
// a time over a batch, so that a caller can time each of them alone.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "core/endpoint.h"
#include "support/engine_driver.h"

namespace mrc::bench {

struct WorldOptions {
  unsigned ports = 4;
  unsigned evs = 128;
  unsigned qps = 1;
  std::uint32_t mtu = 4096;
  std::uint32_t message_bytes = 1 << 20;
  std::uint32_t sack_threshold_bytes = 0;
  unsigned delay_steps = 32;  // of the shortest path, one way; the longest takes a quarter more
  bool sprayed = true;        // false: all paths are equally long and packets arrive in order
  unsigned lose_every = 0;    // every n-th data packet is lost; 0 = none
};

class World {
 public:
  explicit World(const WorldOptions& options);

  // Both ways in steps; returns data packets that arrived for the first time.
  std::uint64_t run_steps(unsigned count);

  // The same in batches, which must not be longer than delay_steps: a batch has left before its
  // first packet arrives. order_*() is the network's part and not to be timed.
  unsigned send(unsigned count);  // posts and up to `count` packets of side 0; returns data packets
  void order_data();
  unsigned receive();  // side 1 takes them all and answers; returns new data packets
  void order_answers();
  unsigned settle();  // side 0 takes the answers and polls completions; returns how many it took

  // Must hold after any run: data flows, and nothing but what was asked to be lost is missing.
  bool healthy() const;

 private:
  static constexpr unsigned kWheelSlots = 512;
  static constexpr unsigned kMaxFlights = 4096;
  static constexpr std::uint16_t kNil = 0xFFFF;

  // The world of one of the engines. Each verb is called alone, so nothing here pumps.
  struct End : test::EngineWorld {
    static constexpr bool kWatched = false;

    explicit End(World& owner) : world(owner) {}
    void on_completion(const core::Completion& completion) { world.note_done(completion); }

    World& world;
    test::EngineDriver<End> driver{*this};
  };
  struct Flight {
    core::TxPacket packet;
    TimeNs arrives_at = 0;
    std::uint16_t next = kNil;
  };
  // What is under way in one direction, by the step in which it arrives.
  struct Line {
    struct Slot {
      std::uint16_t head = kNil;
      std::uint16_t tail = kNil;
    };
    std::array<Slot, kWheelSlots> slots;
  };

  core::Endpoint& endpoint(int side) { return ends_[side].driver.engine(); }
  void connect(int side);
  void connect_qp(int side, unsigned index);
  void post(unsigned index);
  void post_next();
  unsigned path_delay(EvIndex ev) const { return path_delays_[static_cast<std::size_t>(ev)]; }
  bool lost_on_the_way(const core::TxPacket& packet);
  void pull(int side, unsigned limit, Line& line);
  void deliver(int side, Line& line);
  void run_timers();
  void hand_over(int side, const core::TxPacket& packet);
  void drain_completions();
  void note_done(const core::Completion& completion);
  void sort_batch(std::vector<Flight>& batch, unsigned count);

  WorldOptions options_;
  core::EvProfile profile_;
  std::vector<unsigned> path_delays_;  // in steps
  End ends_[2] = {End(*this), End(*this)};
  Rkey key_{};
  std::vector<unsigned> owed_;  // queue pairs with a message done and no new one posted
  unsigned posts_owed_ = 0;
  DurationNs step_ns_ = 0;
  TimeNs now_ = 0;
  std::uint64_t step_ = 0;
  std::uint64_t data_packets_ = 0;
  std::uint64_t received_ = 0;  // new data packets at side 1
  bool failed_ = false;

  // Stepwise.
  Line to_responder_;
  Line to_requester_;
  std::vector<Flight> flights_;
  std::uint16_t free_ = kNil;

  // Batches.
  std::vector<Flight> data_;
  std::vector<Flight> answers_;
  unsigned data_count_ = 0;
  unsigned answer_count_ = 0;
};

}  // namespace mrc::bench
