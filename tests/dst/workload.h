// The programs on the hosts: they connect queue pairs, post writes of all sizes with and without
// immediates, take completions, and keep to the rules that the protocol puts on programs.
#pragma once

#include <array>
#include <cstdint>
#include <deque>
#include <optional>
#include <vector>

#include "core/endpoint.h"
#include "dst/connection.h"
#include "dst/random.h"
#include "dst/target_ring.h"

namespace mrc::dst {

struct World;

// What a program posts, before it is made into a request.
struct Intent {
  std::uint32_t length = 0;
  bool with_immediate = false;
  bool signaled = true;
};

// The numbers a new connection is to have.
struct Numbers {
  QpNumber qp[2];
  Psn first_psn[2];
  unsigned generation = 0;  // how often these queue pair numbers were used before
};

class Workload {
 public:
  explicit Workload(World& world);

  void start();
  // No new work from now on.
  void stop() { stopped_ = true; }
  void on_post(EndRef ref);
  void on_completion(EndRef ref, const core::Completion& completion);

  // Everything posted on this end has been reported, or never will be because the end is gone.
  bool finished(EndRef ref) const;
  bool all_finished() const;

  // Set-up and take-down.
  void connect_random_pair();
  // Connects this host with another one, if another one is alive.
  void connect_to(unsigned host);
  std::uint32_t connect(unsigned host_a, unsigned host_b, const Numbers& numbers);
  // Ends a connection that has come to rest, in both directions, and connects the same numbers
  // anew.
  bool reconnect(std::uint32_t connection);
  void destroy(EndRef ref);
  Numbers draw_numbers();

  // For faults: the connection gets no further work; the program ignores a rule of the protocol.
  void retire(std::uint32_t connection);
  void stop_receives(EndRef ref);
  // `holds_range`: its target came from the ring of the program.
  Status post(EndRef ref, const core::SendRequest& request, bool holds_range = false);
  core::SendRequest make_request(EndRef ref, const Intent& intent);
  void post_receive(EndRef ref);
  void schedule_post(EndRef ref, DurationNs delay_ns);
  // Bytes at the end of each region that no well-behaved message goes to.
  std::uint64_t reserve_begin(EndRef target) const;

 private:
  // One sending program.
  struct Program {
    std::uint64_t packets_left = 0;
    TargetRing ring{0};
    std::size_t ranges_held_from = 0;  // first message whose range is not given back
    std::deque<bool> held;             // per message from there: does it hold a range
    std::uint32_t immediate_percent = 0;
    std::uint32_t signal_percent = 100;
    std::uint32_t most_outstanding = 0;
    std::uint32_t largest = 0;  // bytes
    DurationNs think_ns = 0;
    std::uint32_t unsignaled_streak = 0;
    bool post_scheduled = false;
    bool reposts_receives = true;
    bool retired = false;
  };

  void bring_up(EndRef ref);
  void add_region(End& end, std::uint32_t bytes);
  void draw_end(Connection& connection, std::uint8_t side, Numbers numbers);
  void agree(End& from, End& to);
  std::uint32_t draw_path_mtu();
  std::uint32_t draw_length(const Program& program, std::uint32_t path_mtu);
  std::uint8_t draw_timeout();
  core::CcProfile cc_profile(unsigned host_a, unsigned host_b);
  Program draw_program(EndRef sender, std::uint64_t packets);
  bool post_one(EndRef ref);
  bool may_post(EndRef ref, const Intent& intent) const;
  bool signaled_outstanding(EndRef ref) const;
  void release_ranges(EndRef ref);
  Program& program(EndRef ref) { return programs_[ref.connection][ref.side]; }
  const Program& program(EndRef ref) const { return programs_[ref.connection][ref.side]; }

  World& world_;
  Random random_;
  std::deque<std::array<Program, 2>> programs_;  // by connection
  std::uint64_t next_receive_id_ = 1;
  bool stopped_ = false;
};

}  // namespace mrc::dst
