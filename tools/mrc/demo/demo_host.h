// One host of the virtual cluster: a protocol engine, its memory, and the program that uses both.
//
// This is all a caller of mrc::core::Endpoint has to do: turn packets into frames and back, copy
// payload, keep the clock, post work and take completions.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "base/prng.h"
#include "base/types.h"
#include "core/endpoint.h"
#include "demo/measurements.h"
#include "demo/topology.h"
#include "demo/transfer.h"
#include "demo/virtual_network.h"

namespace mrc::demo {

// What all hosts share; it outlives them.
struct World {
  const Topology& topology;
  const TransferPlan& transfer;
  const core::EvProfile& profile;
  VirtualNetwork& network;
  Measurements& measurements;
};

// What two hosts tell each other to connect.
struct Introduction {
  QpNumber qp{};
  Psn first_psn;
  Rkey key{};
};

struct HostCounters {
  std::uint64_t sends_completed = 0;
  std::uint64_t receives_completed = 0;
  std::uint64_t immediates_out_of_order = 0;
  std::uint64_t early_wrong_bytes = 0;  // not yet in place when the immediate was delivered
  std::uint64_t unreadable_frames = 0;
  std::uint64_t failures = 0;
  std::string first_failure;
};

class DemoHost {
 public:
  DemoHost(const World& world, unsigned number, std::uint64_t seed);

  Introduction introduce(unsigned peer) const { return connections_[peer].self; }
  void connect(unsigned peer, const Introduction& remote);
  // Needed to compare what arrives with what was sent.
  void watch_source(unsigned peer, const HostMemory& memory) { sources_[peer] = &memory; }
  const HostMemory& memory() const { return memory_; }

  void start(TimeNs now);
  void on_frame(TimeNs now, const Delivery& delivery);
  void on_wake(TimeNs now);
  void set_port_up(TimeNs now, PortId port, bool up);
  TimeNs wake_at() const { return wake_at_; }

  bool done() const;
  const HostCounters& counters() const { return counters_; }
  const core::Endpoint& endpoint() const { return *endpoint_; }
  QpNumber qp_towards(unsigned peer) const { return connections_[peer].self.qp; }

 private:
  class KeySource final : public core::RandomSource {
   public:
    explicit KeySource(std::uint64_t seed) : prng_(seed) {}
    std::uint32_t next32() override { return prng_.next32(); }

   private:
    Prng prng_;
  };
  struct Connection {
    Introduction self;
    Introduction remote;
    std::uint32_t posted = 0;  // messages
    std::uint32_t completed = 0;
    std::uint32_t received = 0;  // immediates, and so the number of the next one
  };

  void open_connection(unsigned peer, Prng& prng, KeySource& keys);
  void post_sends(TimeNs now, unsigned peer);
  void pump(TimeNs now);
  bool take_completions(TimeNs now);
  void take_receive(unsigned peer, const core::Completion& completion);
  void take_events();
  PortMask free_ports(TimeNs now) const;
  void transmit(TimeNs now, const core::TxPacket& packet);
  wire::FrameHeader frame_header(const core::TxPacket& packet) const;
  unsigned peer_of(QpNumber qp) const;
  void must(const Status& status);

  const World world_;
  const unsigned number_;
  HostMemory memory_;
  std::unique_ptr<core::Endpoint> endpoint_;
  std::vector<Connection> connections_;     // by peer; that of the host itself is unused
  std::vector<const HostMemory*> sources_;  // by peer
  std::array<TimeNs, kMaxPorts> busy_until_{};
  TimeNs wake_at_ = kNever;
  HostCounters counters_;
};

}  // namespace mrc::demo
