// The protocol engine: one MRC endpoint (a NIC with up to 16 ports) and all its queue pairs.
//
// It does no I/O, reads no clock, starts no thread and allocates nothing on the packet path. The
// caller drives it with a few verbs:
//
//   on_packet(now, arrival, packet)   a packet came in; the answer says where its payload goes
//   on_timer(now)                     time passed; call it no later than next_deadline()
//   post_send / post_receive          work from the program
//   next_packet(now, free_ports)      what to send next; repeat until it says there is nothing
//   next_run, on_run                  the same for packets in a row of one message and path, which
//                                     cost little more together than one of them alone
//   next_deadline()                   when to call on_timer, whatever else happens
//   next_completion / next_event      results
//
// After on_packet, on_timer, a post or a port change the caller asks next_packet again. Payload
// bytes never pass through here: the caller copies `Placement` at once (before it polls
// completions), and fetches the payload of a TxPacket from `local_address` when it sends it.
#pragma once

#include <cstdint>
#include <memory>

#include "base/result.h"
#include "base/types.h"
#include "core/config.h"
#include "core/counters.h"
#include "core/event.h"
#include "core/memory_table.h"
#include "core/tx_packet.h"
#include "core/work.h"
#include "wire/drop_reason.h"
#include "wire/packet.h"

namespace mrc::core {

// What the network part of a packet told: from where, on which port, along which path, in what
// shape.
enum class TrimState : std::uint8_t { kWhole, kTrimmed, kTrimmedLastHop };
enum class CallerRefusal : std::uint8_t {
  kNone,
  kNoPacketBuffer,
  kNoResource,
  kNoMemory,  // what the payload is for is registered or posted, but not there any more
};

struct Arrival {
  Address source;
  PortId port{1};
  std::uint32_t entropy = 0;
  bool congestion_experienced = false;
  TrimState trim = TrimState::kWhole;
  CallerRefusal refusal = CallerRefusal::kNone;  // the caller cannot take the payload now
  std::uint32_t payload_length = 0;              // without padding
};

// Where a packet's payload goes. Nothing is to be copied when length is 0.
struct Placement {
  std::uint64_t address = 0;  // of a send: offset in the receive
  std::uint32_t length = 0;
  bool into_receive = false;
  std::uint64_t receive_id = 0;  // with into_receive: of the ReceiveRequest
};

struct RxResult {
  DropReason drop = DropReason::kNone;
  Placement placement;
  unsigned taken = 1;  // packets of a run that this is about
};

// An EV probe sent for a controller, outside any queue pair. Its path is one entropy value, and as
// many may wait as EndpointConfig::endpoint_request_capacity says. The software NIC has a table of
// its own (nic/endpoint_requests.h), because its controllers ask along segment lists that no
// profile holds, tell port status, and may ask 65,536 questions at once; the packets are the same.
struct EndpointProbe {
  Address peer;
  PortId port{1};
  std::uint32_t entropy = 0;
  std::uint16_t request_id = 0;  // comes back in the event; at most one probe per id at a time
  DurationNs timeout_ns = kMillisecondNs;
};

struct QpStatus {
  QpState state = QpState::kReset;
  std::uint32_t sends_outstanding = 0;  // posted and not yet reported
  std::uint32_t receives_outstanding = 0;
  std::uint32_t packets_in_flight = 0;    // sent, neither acknowledged nor declared lost
  std::uint32_t packets_lost = 0;         // declared lost, waiting for retransmission
  std::int64_t bytes_in_flight = 0;       // of these, nominal size; 0 while it backs off
  std::int64_t window_bytes = 0;          // of the controller, which QPs to the peer may share
  std::int64_t peer_bytes_in_flight = 0;  // what the shared controller counts
  std::uint32_t window_psns = 0;          // MPR in force for sending
  Psn next_psn;                           // next new PSN to send
  Psn oldest_unacknowledged;
  Psn expected_psn;  // left edge of the receive side: cack + 1
  std::uint16_t good_evs = 0;
  std::uint16_t bad_evs = 0;
  DurationNs smoothed_rtt_ns = 0;
  QpCounters counters;
};

class Endpoint {
 public:
  static Result<std::unique_ptr<Endpoint>> create(const EndpointConfig& config);
  ~Endpoint();
  Endpoint(const Endpoint&) = delete;
  Endpoint& operator=(const Endpoint&) = delete;

  // Memory. Keys come from the caller's generator. After invalidate_memory returns, no later packet
  // is given a placement in the region.
  Result<Rkey> register_memory(const MemoryRegion& region, RandomSource& random);
  Result<Rkey> register_memory(const MemoryRegion& region, Rkey key);  // that the caller has chosen
  Status invalidate_memory(Rkey key);

  // Queue pair life cycle. A refused call changes nothing.
  Status create_qp(const QpConfig& config);
  Status init_qp(QpNumber qp, const QpInit& init);
  Status ready_to_receive(QpNumber qp, const QpReadyToReceive& rtr);
  Status ready_to_send(TimeNs now, QpNumber qp, const QpReadyToSend& rts);
  // From INIT to RTS: the profiles that it was set up with have other values now. There are as many
  // EVs as before; those that stayed the same keep what is known of them, but for denials, of which
  // the new profile is to be told again. The profile given before must live until this returns.
  Status follow_profiles(TimeNs now, QpNumber qp, const EvProfile& paths, const CcProfile& cc);
  Status fail_qp(TimeNs now, QpNumber qp);  // -> ERROR; everything outstanding is flushed
  Status reset_qp(QpNumber qp);             // -> RESET; outstanding work is forgotten
  Status destroy_qp(QpNumber qp);
  Result<QpStatus> query_qp(QpNumber qp) const;
  // The first PSN that has not arrived: everything before it is placed.
  Result<Psn> expected_psn(QpNumber qp) const;

  Status post_send(TimeNs now, QpNumber qp, const SendRequest& request);
  Status post_receive(QpNumber qp, const ReceiveRequest& request);
  // The caller cannot read the payload of a packet it was given. The message fails with
  // kLocalProtection, and its queue pair with it, when all before it is complete.
  Status refuse_send(TimeNs now, QpNumber qp, Psn psn);
  // The id of the receive that a packet of a send would land in; not found where there is none.
  Result<std::uint64_t> receive_of(QpNumber qp, const wire::Packet& packet) const;

  // For callers whose buffers fill up. The range we are willing to track from now on: what RTR set,
  // or less where both ends agreed to dynamic MPR, such as 4 units of 255 while memory is short.
  // And what all answers tell the sender besides.
  Status set_receive_window(QpNumber qp, std::uint8_t units, const ReceiverPenalty& penalty = {});

  // Paths and ports.
  Status set_ev_denied(TimeNs now, QpNumber qp, EvIndex ev, bool denied);
  Result<EvState> query_ev(QpNumber qp, EvIndex ev) const;
  Result<EvCounters> query_ev_counters(QpNumber qp, EvIndex ev) const;
  Status set_port_up(TimeNs now, PortId port, bool up);
  PortMask ports_up() const;
  Status send_endpoint_probe(TimeNs now, const EndpointProbe& probe);

  // The packet path.
  RxResult on_packet(TimeNs now, const Arrival& arrival, const wire::Packet& packet);
  // The first packets of a run of `count` that came together: what on_packet would say of each, had
  // they come one by one at this time. Takes as many in one step as nothing needs to be said of;
  // their payload is placed in one piece. The caller comes again with those that are left.
  RxResult on_run(TimeNs now, const Arrival& arrival, const wire::Packet& packet, unsigned count);
  // A packet that failed its ICRC on arrival: nothing in it is trusted, but a path that keeps
  // corrupting packets of a live queue pair is reported to its sender.
  void on_corrupt_packet(TimeNs now, const Arrival& arrival, const wire::Packet& packet);
  // A packet the caller dropped before it got here (parse failure); counted only.
  void count_drop(DropReason reason);
  void on_timer(TimeNs now);
  bool next_packet(TimeNs now, PortMask free_ports, TxPacket& out);
  // Up to `most` packets, where these are a run: exactly those that as many calls of next_packet
  // with the same time and ports would give.
  bool next_run(TimeNs now, PortMask free_ports, unsigned most, TxPacket& out);
  // How many new packets of a queue pair leave in a row on one path, and how many such packets its
  // turn lasts. 1 sprays packet by packet; more is for callers to whom packets on one path come
  // cheaper together. Takes effect with the next packet; at most kMaxSprayQuantum.
  static constexpr unsigned kMaxSprayQuantum = 64;
  void set_spray_quantum(unsigned packets);
  // Whether next_packet may have something for a port that is busy now. False: not before the next
  // call of another verb.
  bool wants_to_send() const;
  TimeNs next_deadline() const;
  bool next_completion(Completion& out);
  bool next_event(Event& out);

  const EndpointCounters& counters() const;
  const EndpointConfig& config() const;

 private:
  struct Impl;
  explicit Endpoint(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace mrc::core
