// One engine in virtual time, with everything that came out of it and was not yet claimed by a
// script.
//
// The world plays the part of the caller of core::Endpoint: it runs timers when they are due, asks
// for packets after every call, and keeps the log that a failing script prints. Besides the rules
// of the driver it watches two that hold in every script; std::runtime_error says which is broken:
//   - every placement lies inside a region that is registered at that moment;
//   - while packets are in flight there is a deadline.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <string>
#include <vector>

#include "core/endpoint.h"
#include "script/packet_fields.h"
#include "support/engine_driver.h"

namespace mrc::script {

class World : public test::EngineWorld {
 public:
  explicit World(const core::EndpointConfig& config);

  core::Endpoint& engine() { return driver_.engine(); }
  TimeNs now() const { return now_; }

  // Moves time forward and fires every timer on the way.
  void run_until(TimeNs time);
  // Moves time to the next deadline, or to `limit` when that comes first. False at the limit.
  bool step(TimeNs limit) { return driver_.step(now_, limit); }

  core::RxResult inject(const ScriptPacket& packet);
  void inject_corrupt(const ScriptPacket& packet);

  Result<Rkey> register_memory(const core::MemoryRegion& region);
  Status invalidate_memory(Rkey key);
  void set_free_ports(PortMask ports) { free_ports_ = ports; }
  void watch(QpNumber qp) { watched_.push_back(qp); }

  // Collects what the engine has to say; to be called after every call into it.
  void pump() { driver_.pump(now_); }

  // For the driver.
  PortMask free_ports() const { return free_ports_; }
  void send(const core::TxPacket& tx, PortMask free);
  void on_completion(const core::Completion& completion);
  void on_event(const core::Event& event);
  void after_pump() const;
  [[noreturn]] void fail(const char* what, const core::TxPacket* packet);

  // What came out and was not claimed yet, oldest first.
  std::deque<ScriptPacket> packets;
  std::deque<core::Completion> completions;
  std::deque<core::Event> events;

  void note(const std::string& line);
  const std::string& log() const { return log_; }

  // The newest data packet sent with this PSN, and the newest probe with this id; null when none.
  const ScriptPacket* sent_write(QpNumber qp, Psn psn) const;
  // The last packet of the newest message with this number; null when there is none.
  const ScriptPacket* last_of_message(QpNumber qp, std::uint16_t msn) const;
  const ScriptPacket* sent_probe(QpNumber qp, std::uint16_t id) const;
  // Nominal size of the distinct packets that a SACK of this content says have arrived, all SACKs
  // of this queue pair taken together; what an honest peer would report.
  std::uint64_t acknowledged_bytes(QpNumber qp, const wire::Sack& sack);

 private:
  class CountingKeys : public core::RandomSource {
   public:
    std::uint32_t next32() override { return next_ += 0x0101'0107; }

   private:
    std::uint32_t next_ = 0x5EED'0000;
  };
  struct Sent {
    ScriptPacket packet;
    bool acknowledged = false;
  };

  void check_placement(const core::Placement& placement) const;

  test::EngineDriver<World> driver_{*this};
  TimeNs now_ = 0;
  PortMask free_ports_;
  CountingKeys keys_;
  std::map<Rkey, core::MemoryRegion> regions_;
  std::vector<QpNumber> watched_;
  std::map<QpNumber, std::map<std::uint32_t, Sent>> writes_;
  std::map<QpNumber, std::map<std::uint16_t, ScriptPacket>> probes_;
  std::string log_;
};

std::string describe(const core::Completion& completion);
std::string describe(const core::Event& event);
std::string show_time(TimeNs time);

}  // namespace mrc::script
