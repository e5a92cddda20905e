// A host: the world of one engine, with its memory, its clock, its ports, and what wakes it up.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <memory>
#include <set>
#include <vector>

#include "base/types.h"
#include "core/endpoint.h"
#include "core/ev_profile.h"
#include "dst/clock.h"
#include "dst/flight.h"
#include "dst/memory.h"
#include "dst/random.h"
#include "support/engine_driver.h"

namespace mrc::dst {

struct World;

class Host : private test::EngineWorld {
 public:
  Host(World& world, unsigned id);

  unsigned id() const { return id_; }
  Address address() const { return {0xFC00'0000'0000'0000, id_ + 1}; }
  bool alive() const { return driver_.running(); }
  core::Endpoint& engine() { return driver_.engine(); }
  const core::Endpoint& engine() const { return driver_.engine(); }
  HostMemory& memory() { return memory_; }
  test::SeededKeys& keys() { return keys_; }
  TimeNs clock() const;
  PortMask ports_up() const { return ports_up_; }
  // Whether a queue pair of this host has a path that is allowed and whose port is up.
  bool can_answer(const End& end) const;
  // For how long no port has gone down or come up.
  DurationNs ports_steady_ns() const;
  const std::vector<std::unique_ptr<core::EvProfile>>& profiles() const { return profiles_; }
  core::EvProfile& profile(std::size_t index) { return *profiles_[index]; }
  // Whether this host ever had these ports up, perhaps without some of `heard`.
  bool had_ports(PortMask ports, PortMask heard) const {
    return std::any_of(port_masks_.begin(), port_masks_.end(),
                       [&](std::uint32_t up) { return ports == (PortMask(up) | (ports & heard)); });
  }
  std::uint64_t events_lost() const { return engine().counters().events_dropped; }

  // Things that happen.
  void on_deliver(std::uint32_t slot);
  void on_timer_event(std::uint32_t generation);
  void on_port_free();
  void on_poll();

  // The packet path of the engine, watched for allocations.
  Status post_send(QpNumber qp, const core::SendRequest& request);
  Status post_receive(QpNumber qp, const core::ReceiveRequest& request);
  // Takes completions, sends what there is to send, sets the timer.
  void pump();

  // Faults.
  void pause_until(TimeNs until) { paused_until_ = std::max(paused_until_, until); }
  TimeNs paused_until() const { return paused_until_; }
  // What a port needs to send as many answers as may wait for it.
  DurationNs longest_answer_queue_ns() const;
  // When it last began to run and to have a port, after it had not.
  TimeNs resumed_at() const { return std::max(paused_until_, first_port_up_at_); }
  void set_port_up(PortId port, bool up);
  void jump_clock(DurationNs ahead_ns);
  void crash();
  void restart();

 private:
  void make_profiles();
  void add_decoys();
  void receive(Flight& flight);
  void refuse(const Flight& flight, DropReason reason);
  void place(const core::Placement& placement, const Flight& flight,
             std::span<const std::byte> payload);
  void arm_port_wake();
  void arm_timer();

  // What the driver asks and tells.
  friend class test::EngineDriver<Host>;
  template <typename Call>
  auto run(const char* verb, Call&& call);
  PortMask free_ports() const;
  void send(const core::TxPacket& packet, PortMask free);
  bool polls_results();
  void on_completion(const core::Completion& completion);
  void on_event(const core::Event& event);
  void on_idle(PortMask free);
  void after_pump();
  [[noreturn]] void fail(const char* what, const core::TxPacket* packet) const;

  World& world_;
  unsigned id_;
  Random random_;
  HostMemory memory_;
  test::SeededKeys keys_;
  HostClock clock_;
  std::vector<std::unique_ptr<core::EvProfile>> profiles_;  // outlive the engine
  test::EngineDriver<Host> driver_{*this};
  core::EndpointConfig config_;

  PortMask ports_up_;
  std::set<std::uint32_t> port_masks_;
  std::array<TimeNs, kMaxPorts> busy_until_{};
  TimeNs port_wake_ = kNever;           // when kPortFree is scheduled
  TimeNs timer_deadline_ = kNever;      // what kHostTimer is scheduled for, by the host's clock
  std::uint32_t timer_generation_ = 0;  // only the latest one counts
  TimeNs paused_until_ = 0;
  TimeNs first_port_up_at_ = 0;
  TimeNs ports_changed_at_ = 0;
  bool poll_scheduled_ = false;
};

}  // namespace mrc::dst
