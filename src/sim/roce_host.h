// A host with a RoCEv2 NIC as it is deployed: each queue pair keeps to one port and one path, sends
// by go-back-N at the rate DCQCN allows, and obeys PFC.
#pragma once

#include <cstdint>
#include <vector>

#include "sim/config.h"
#include "sim/host.h"
#include "sim/mrc_host.h"
#include "sim/roce_dcqcn.h"
#include "sim/roce_queue_pair.h"

namespace mrc::sim {

class RoceHost;

// The size on the wire of a packet in the middle of a message.
std::uint32_t roce_frame_bytes(const SimConfig& config);

// What all RoCEv2 hosts of a simulation share.
struct RoceWorld {
  const fabric::Routing* routing = nullptr;
  PacketPool* packets = nullptr;
  HostListener* listener = nullptr;
  std::vector<RoceHost*> hosts;
  RoceSegmentation segmentation;
  DcqcnParameters dcqcn;
  bool dcqcn_on = true;
  Time timeout_ps = 0;
  unsigned retries = 0;
  bool chosen_paths = false;  // by the sender, in turn; otherwise by hash
  std::uint64_t seed = 1;

  RoceWorld(const SimConfig& config, const fabric::Routing& fabric_routing, PacketPool& packet_pool,
            HostListener& host_listener);
};

class RoceHost final : public Host {
 public:
  // `planned` is sorted, one entry per peer and number.
  RoceHost(RoceWorld& world, std::uint32_t host, const std::vector<PlannedConnection>& planned);

  void post(Time now, const Message& message) override;
  void on_packet(Time now, PacketId packet, unsigned plane) override;
  void on_timer(Time now) override;
  bool next_packet(Time now, PortMask free_ports, Outgoing& out) override;
  bool wants_to_send() const override;
  Time next_deadline() const override { return timers_.empty() ? kEndOfTime : timers_[0].at; }
  void set_port_up(Time now, unsigned plane, bool up) override;
  void set_paused(Time now, unsigned plane, bool paused) override;
  HostTotals totals() const override { return totals_; }

 private:
  static constexpr std::uint32_t kNone = 0xFFFF'FFFF;

  // A first-in first-out list through the connections.
  struct List {
    std::uint32_t head = kNone;
    std::uint32_t tail = kNone;
    bool empty() const { return head == kNone; }
  };
  struct Connection {
    Connection(const PlannedConnection& planned, const DcqcnParameters& dcqcn)
        : plan(planned), rate(dcqcn) {}

    PlannedConnection plan;
    std::uint32_t at_peer = kNone;  // its number among the peer's connections
    std::uint32_t entropy = 0;      // source port, or the path that the sender chose
    fabric::Path path;
    std::uint8_t retries = 0;
    bool failed : 1 = false;
    bool in_ready : 1 = false;
    bool in_answers : 1 = false;
    bool ack_due : 1 = false;
    bool nak_due : 1 = false;
    bool cnp_due : 1 = false;
    std::uint32_t next_ready = kNone;
    std::uint32_t next_answer = kNone;
    Time send_at = 0;            // the rate limiter's next turn
    Time retry_at = kEndOfTime;  // no ACK until then: go back
    Time timer_at = kEndOfTime;  // of its earliest entry in timers_
    RoceRequester requester;
    RoceResponder responder;
    DcqcnRate rate;
  };
  struct Port {
    List ready;    // queue pairs with data that may go now, in turn
    List answers;  // queue pairs with an ACK, NAK or CNP to send
    bool up = true;
    bool paused = false;
  };
  struct Timer {
    Time at = 0;
    std::uint32_t connection = 0;
  };

  void choose_path(Connection& c);
  void hash_path(Connection& c);
  void append(List& list, std::uint32_t Connection::*next, std::uint32_t connection);
  std::uint32_t take_first(List& list, std::uint32_t Connection::*next);

  void on_data(Time now, Connection& c, const PacketHead& head, const PacketBody& body,
               unsigned plane);
  void on_answer(Time now, Connection& c, const RocePacket& packet);
  void on_timeout(Time now, Connection& c);
  void fail(Time now, Connection& c);
  void queue_answer(Connection& c);
  // Puts a queue pair with unsent data where its rate limiter wants it.
  void schedule(Time now, Connection& c);
  // Starts, restarts or stops the wait for an ACK.
  void restart_retry_timer(Time now, Connection& c);
  void start_timer(Connection& c);

  bool next_answer(Port& port, Outgoing& out);
  bool next_data(Time now, Port& port, Outgoing& out);
  void address(const Connection& c, PacketHead& head) const;
  PacketHead& new_packet(Connection& c, RocePacket packet, Outgoing& out,
                         std::uint64_t local_address = 0);
  std::uint32_t number_of(const Connection& c) const {
    return static_cast<std::uint32_t>(&c - connections_.data());
  }

  RoceWorld* world_;
  std::uint32_t host_;
  std::uint32_t next_way_ = 0;  // of those that choose_path() hands out
  std::vector<Connection> connections_;
  std::vector<Port> ports_;       // by plane
  std::vector<Timer> timers_;     // heap; entries whose time is not the connection's are stale
  std::vector<TaskId> finished_;  // scratch
  HostTotals totals_;
};

}  // namespace mrc::sim
