// A host that runs the protocol engine of src/core.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "core/endpoint.h"
#include "sim/config.h"
#include "sim/host.h"

namespace mrc::sim {

class MrcHost;

// What all MRC hosts of a simulation share.
struct MrcWorld {
  const SimConfig* config = nullptr;
  const fabric::Routing* routing = nullptr;
  PacketPool* packets = nullptr;
  HostListener* listener = nullptr;
  std::vector<core::EvProfile> profiles;  // for senders, by sample
  std::vector<core::EvProfile> way_back;  // for queue pairs that only answer
  std::vector<MrcHost*> hosts;
  std::vector<std::uint32_t> incast_degree;  // senders per host, for hints
  std::uint8_t window_units = core::kDefaultWindowUnits;
  std::uint16_t max_outstanding = 0;
  std::uint32_t extra_bytes = 0;  // on the wire beside transport headers, payload and padding

  MrcWorld(const SimConfig& sim_config, const fabric::Routing& fabric_routing,
           PacketPool& packet_pool, HostListener& host_listener);
  DurationNs base_rtt_ns(unsigned source, unsigned destination) const;
};

// Bytes of a full-size data packet on the wire.
std::uint32_t full_packet_bytes(const SimConfig& config);
// Idle round trip of a full-size packet and its answer over the longest path.
Time longest_base_rtt(const SimConfig& config, const fabric::Topology& topology);
// The same of any packet between two hosts.
struct PacketBetween {
  unsigned source = 0;
  unsigned destination = 0;
  std::uint32_t payload_bytes = 0;
};
Time idle_rtt(const SimConfig& config, const fabric::Topology& topology,
              const PacketBetween& packet);
// What one plane holds in the longest of these and in the slack of queues.
std::uint64_t plane_bdp_bytes(const SimConfig& config, const fabric::Topology& topology);
// Size of a packet that a switch has trimmed.
std::uint32_t trimmed_packet_bytes(const SimConfig& config);

class MrcHost final : public Host {
 public:
  // `planned` is sorted, one entry per peer and number.
  MrcHost(MrcWorld& world, std::uint32_t host, const std::vector<PlannedConnection>& planned);

  void post(Time now, const Message& message) override;
  void on_packet(Time now, PacketId packet, unsigned plane) override;
  void on_timer(Time now) override;
  bool next_packet(Time now, PortMask free_ports, Outgoing& out) override;
  bool wants_to_send() const override { return endpoint_->wants_to_send(); }
  Time next_deadline() const override;
  void set_port_up(Time now, unsigned plane, bool up) override;
  void set_paused(Time, unsigned, bool) override {}  // MRC runs without PFC
  HostTotals totals() const override;
  HostGauges gauges() const override;
  std::vector<SenderStatus> senders(std::size_t most) const override;
  bool window_closed(std::uint32_t peer, std::uint32_t number) const override;

  const core::Endpoint& endpoint() const { return *endpoint_; }

 private:
  // Queue pairs are made when the first message goes over them.
  struct Connection {
    PlannedConnection plan;
    QpNumber qp{};
    bool open = false;
  };
  struct Waiting {
    std::uint32_t connection = 0;
    Message message;
    std::uint64_t offset = 0;
  };

  static core::EndpointConfig endpoint_config(const MrcWorld& world, std::uint32_t host,
                                              unsigned qps);
  void open(Time now, std::uint32_t connection);
  void create_qp(Connection& connection);
  const core::EvProfile& profile_of(const Connection& connection) const;
  SenderStatus status_of(const Connection& connection) const;
  void connect(Time now, Connection& mine, const Connection& theirs);
  bool post_part(Time now, Waiting& waiting);
  void post_waiting(Time now);
  void drain_completions(Time now);
  void fill(const core::TxPacket& tx, Outgoing& out);

  MrcWorld* world_;
  std::uint32_t host_;
  std::unique_ptr<core::Endpoint> endpoint_;
  std::vector<Connection> connections_;
  std::vector<Waiting> waiting_;  // messages that found the send queue full, from next_waiting_ on
  std::size_t next_waiting_ = 0;
  std::uint64_t probes_ = 0;
  std::uint64_t control_packets_ = 0;
};

}  // namespace mrc::sim
