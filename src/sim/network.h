// The network between the hosts: links with their queues, switches, faults.
//
// Every link has a control and a data queue at its sending end, served in strict priority, without
// pre-emption, store and forward. A link is brought up to date only when somebody looks at it: when
// a packet joins its queue or when its previous packet arrives at the far end. That is exact, since
// nothing else depends on the moment a queued packet leaves, and costs one event per packet and
// hop. Packets on a link arrive in the order in which they left, so only the first of them has its
// event in the queue. With PFC somebody does care, and each transmission gets an event of its own.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "fabric/link_condition.h"
#include "fabric/queue_policy.h"
#include "fabric/routing.h"
#include "sim/event_queue.h"
#include "sim/packet.h"
#include "sim/packet_tap.h"
#include "sim/packet_watch.h"

namespace mrc::sim {

struct PfcConfig {
  bool enabled = false;
  std::uint32_t pause_bytes = 0;   // held from one ingress link: the sender is told to stop
  std::uint32_t resume_bytes = 0;  // and to go on
};

struct NetworkConfig {
  fabric::ForwardingMode mode = fabric::ForwardingMode::kSrv6;
  fabric::QueueShares queue_shares;
  std::uint64_t plane_bdp_bytes = 0;
  bool trimming = true;
  fabric::TrimVictim trim_victim = fabric::TrimVictim::kArrival;
  Time host_delay_ps = 0;          // from the end of a host's link until it sees the packet
  bool mark_last_hop = false;      // ECN on ports that face hosts too
  double ecn_max_probability = 1;  // at the top of the ramp; above it every packet is marked
  PfcConfig pfc;
  double loss = 0;                  // per packet, end to end, at a random hop
  std::uint32_t trimmed_bytes = 0;  // size of a packet after trimming
  std::uint64_t seed = 1;
};

struct NetworkCounters {
  std::uint64_t packet_hops = 0;
  std::uint64_t trims = 0;
  std::uint64_t marks = 0;
  std::uint64_t dropped_full = 0;  // no room in a queue
  std::uint64_t dropped_down = 0;  // on a link that is down
  std::uint64_t dropped_loss = 0;  // random loss
  std::uint64_t dropped_no_route = 0;
  std::uint64_t corrupted = 0;
  std::uint64_t pauses = 0;
  std::uint64_t drops() const {
    return dropped_full + dropped_down + dropped_loss + dropped_no_route;
  }
};

// One direction of a cable.
struct LinkState {
  Time busy_until = 0;
  PacketId data_head = kNoPacket;
  PacketId data_tail = kNoPacket;
  PacketId control_head = kNoPacket;
  PacketId control_tail = kNoPacket;
  PacketId flying_head = kNoPacket;  // on the link
  PacketId flying_tail = kNoPacket;
  std::uint32_t data_bytes = 0;  // queued
  std::uint32_t control_bytes = 0;
  fabric::Node to;
  std::uint32_t packets = 0;  // that left
  std::uint32_t trims = 0;
  std::uint32_t drops = 0;
  std::uint8_t policy = 0;
  std::uint8_t tier = 0;
  // Faults have something to say about what it carries. Set with the first of them, taken back by
  // the first packet that arrives when all of them are over.
  bool faulty : 1 = false;
  bool paused : 1 = false;
  bool tapped : 1 = false;
};
static_assert(sizeof(LinkState) <= 64);

class Network {
 public:
  Network(const fabric::Routing& routing, const NetworkConfig& config, EventQueue& events,
          PacketPool& packets);

  // A host port starts to send; it must be idle. The network owns the packet from now on.
  void send(Time now, unsigned plane, PacketId packet);
  bool can_send(Time now, unsigned plane, unsigned host) const {
    const LinkState& l = links_[fabric::index(routing_->topology().host_up(plane, host))];
    return l.busy_until <= now;
  }
  Time free_at(unsigned plane, unsigned host) const {
    return links_[fabric::index(routing_->topology().host_up(plane, host))].busy_until;
  }

  // A packet reaches the end of its link. True: it is at its host and the caller's again.
  bool arrive(Time now, PacketId packet);
  void on_link_free(Time now, fabric::LinkId link);
  // PFC took effect at the sending end. True when that is a host, which must obey by itself.
  bool on_pause(Time now, fabric::LinkId link, bool paused);

  // Down links lose what is queued and what is under way, see LinkFaults.
  void apply(Time now, const fabric::FaultAction& action);
  const fabric::LinkCondition& condition(fabric::LinkId link) const {
    return faults_.of(link).condition();
  }
  bool is_down(fabric::LinkId link) const {
    return links_[fabric::index(link)].faulty && faults_.is_down(link);
  }
  bool any_down() const { return faults_.any_down(); }
  // Whether a link of this path is down.
  bool path_is_dead(unsigned source, unsigned destination, const fabric::Path& path) const;

  const NetworkCounters& counters() const { return counters_; }
  const LinkState& link(fabric::LinkId id) const { return links_[fabric::index(id)]; }
  std::uint32_t link_count() const { return static_cast<std::uint32_t>(links_.size()); }
  const fabric::Topology& topology() const { return routing_->topology(); }
  // Everything that leaves on this link is shown to the tap from now on; one tap for all links.
  void tap(fabric::LinkId link, PacketTap& tap);
  // Follows all packets from now on; one watch at a time.
  void watch(PacketWatch& watch) { watch_ = &watch; }
  // What waits at the sending end now.
  std::uint32_t queued_bytes(Time now, fabric::LinkId link);
  // Fetches what arrive() will touch.
  void prefetch(const Event& arrival) const;
  void prefetch_next(const Event& arrival) const;  // once those are there: where it goes next

 private:
  fabric::LinkId route(const LinkState& in, PacketHead& head) const;
  fabric::LinkId next_by_usid(const fabric::Node& at, const PacketHead& head, unsigned hop) const;
  void enqueue(Time now, fabric::LinkId link, PacketId packet);
  bool admit(Time now, LinkState& l, PacketId packet);
  void choose_victim(Time now, LinkState& l, PacketId packet);
  void append(LinkState& l, PacketId packet);
  // Starts every transmission that begins at or before `now`.
  void advance(Time now, fabric::LinkId link);
  PacketId pop(fabric::LinkId link);
  void start(Time at, fabric::LinkId link, PacketId packet);
  void expect(PacketId packet);
  void land(LinkState& l, PacketId packet);
  Time transmission_time(const LinkState& l, fabric::LinkId link, std::uint32_t bytes) const;
  // False: the link lost the packet. Otherwise it may have damaged it.
  bool survives(const fabric::LinkCondition& condition, PacketHead& head);
  void drop(Time now, LinkState& l, PacketId packet, LossCause cause);
  std::uint64_t& counter_of(LossCause cause);
  void flush(Time now, fabric::LinkId link);
  void hold(Time now, const PacketHead& head, bool held);
  std::uint32_t draw(std::uint64_t a, std::uint64_t b) const;
  void doom(PacketHead& head, unsigned hops);

  const fabric::Routing* routing_;
  NetworkConfig config_;
  EventQueue* events_;
  PacketPool* packets_;
  std::vector<LinkState> links_;
  std::array<fabric::QueuePolicy, 4> policies_;
  // Per tier; the rate as picoseconds per byte times 256.
  std::array<std::uint64_t, fabric::kLinkTiers> ps_per_byte_q8_{};
  std::array<Time, fabric::kLinkTiers> delay_{};
  fabric::FabricFaults faults_;
  std::vector<std::uint32_t> held_;  // PFC: bytes in the switch behind each link
  std::vector<bool> pause_sent_;
  std::uint64_t sends_ = 0;
  NetworkCounters counters_;
  PacketTap* tap_ = nullptr;
  PacketWatch* watch_ = nullptr;
};

}  // namespace mrc::sim
