// The inside of Endpoint. Split over endpoint_*.cc by concern: life cycle, receive, transmit,
// endpoint operations (port status and probes).
#pragma once

#include <memory>
#include <vector>

#include "base/prng.h"
#include "base/ring.h"
#include "base/slot_index.h"
#include "base/timer_heap.h"
#include "core/control_queue.h"
#include "core/endpoint.h"
#include "core/event_log.h"
#include "core/peer.h"
#include "core/port_status.h"
#include "core/qp.h"
#include "core/scheduler.h"

namespace mrc::core {

struct QpNumberHash {
  std::uint64_t operator()(QpNumber number) const {
    return mix64(static_cast<std::uint32_t>(number));
  }
};
struct AddressHash {
  std::uint64_t operator()(const Address& a) const { return mix64(a.high ^ mix64(a.low)); }
};

struct PendingEndpointProbe {
  bool used = false;
  bool sent = false;
  EndpointProbe probe;
  TimeNs sent_at = 0;
  TimeNs expires_at = 0;
};

struct Endpoint::Impl {
  explicit Impl(const EndpointConfig& endpoint_config);

  // endpoint_qp.cc
  Qp* find(QpNumber number);
  const Qp* find(QpNumber number) const;
  Status attach_peer(Qp& qp);
  static CcGroup& group_for(const QpInit& init, Peer& peer);
  void attach_controller(Qp& qp, const QpInit& init, CcGroup& group);
  static DurationNs base_rtt_ns(const Qp& qp);
  void detach_peer(Qp& qp);
  void leave_live(Qp& qp);
  // `spares_sends`: no request of ours is to blame, all of them are flushed.
  void fail(Qp& qp, CompletionStatus status, bool spares_sends = false);
  void forget_work(Qp& qp);
  RequesterLinks links_of(Qp& qp) {
    return {.paths = qp.paths.get(),
            .cc = qp.group->controller.get(),
            .line_heard_at = &qp.group->heard_at,
            .counters = &qp.counters,
            .probes = qp.init.probes,
            .jitter_ns = config.jitter_ns};
  }

  // endpoint_rx.cc
  RxResult on_write(TimeNs now, const Arrival& arrival, const wire::Packet& packet, Qp& qp);
  unsigned take_more(TimeNs now, const Arrival& arrival, const wire::Packet& first, unsigned most);
  DropReason on_probe(TimeNs now, const Arrival& arrival, const wire::Packet& packet, Qp& qp);
  void refuse_failed(TimeNs now, const Arrival& arrival, const wire::Packet& packet, Qp& qp,
                     Psn psn);
  void check_reverse_path(TimeNs now, Qp& qp);
  DropReason on_feedback(TimeNs now, const wire::Packet& packet, Qp& qp);
  void settle_result(Qp& qp, const Requester::Outcome& result);
  DropReason dispatch(TimeNs now, const Arrival& arrival, const wire::Packet& packet,
                      RxResult& result);
  void queue_answer(TimeNs now, const Arrival& arrival, const wire::Packet& packet, Qp& qp,
                    const Answer& answer);
  void queue_ack(TimeNs now, Qp& qp, PortId port);
  bool queue_with_copies(const ControlEntry& entry, Qp& qp);
  bool queue_control(const ControlEntry& entry);
  void after_event(Qp& qp);
  void after_receive(Qp& qp);

  // endpoint_tx.cc
  bool next_control(TimeNs now, PortMask free_ports, TxPacket& out);
  bool still_valid(const ControlEntry& entry) const;
  bool build_control(TimeNs now, PortMask free_ports, const ControlEntry& entry, TxPacket& out);
  static void address(const Qp& qp, TxPacket& out);
  bool build_endpoint_response(TimeNs now, PortMask free_ports, const ControlEntry& entry,
                               TxPacket& out);
  void build_nack(TimeNs now, const ControlEntry& entry, Qp& qp, TxPacket& out) const;
  void build_ack(TimeNs now, const ControlEntry& entry, Qp& qp, TxPacket& out) const;
  EvIndex choose_answer_path(TimeNs now, PortMask free_ports, const ControlEntry& entry, Qp& qp);
  void build_sack(TimeNs now, const ControlEntry& entry, Qp& qp, TxPacket& out) const;
  std::uint16_t reflected_ticks(TimeNs now, const ControlEntry& entry) const;
  bool next_from_qps(TimeNs now, PortMask free_ports, TxPacket& out);
  void prefer_fitting_qp(PortMask free_ports);
  SendOutcome try_send(TimeNs now, PortMask free_ports, Qp& qp, TxPacket& out);
  unsigned continue_run(TimeNs now, PortMask free_ports, unsigned most, const TxPacket& first);
  void unpark(Qp& qp) {
    if (scheduler.is_parked(qp.slot)) scheduler.unpark(qp.slot, qp.group->waiting);
  }

  // endpoint_ops.cc
  void apply_ports(Qp& qp);
  void apply_ports_of(std::uint32_t peer_slot);
  void note_port_alive(TimeNs now, std::uint32_t peer_slot, PortId port,
                       const wire::Packet& packet);
  void doubt_ports(const Qp& qp);
  void report_ports_of(std::uint32_t peer_slot);
  void refresh_bandwidth(Qp& qp);
  DropReason on_endpoint_request(TimeNs now, const Arrival& arrival, const wire::Packet& packet);
  DropReason on_endpoint_response(TimeNs now, const Arrival& arrival, const wire::Packet& packet);
  bool next_endpoint_request(TimeNs now, PortMask free_ports, TxPacket& out);
  EvIndex choose_status_ev(PortMask free_ports, Peer& peer, bool any_path);
  bool next_port_status(TimeNs now, PortMask free_ports, TxPacket& out);
  bool next_port_question(TimeNs now, PortMask free_ports, TxPacket& out);
  bool next_pending_probe(TimeNs now, PortMask free_ports, TxPacket& out);
  void expire_endpoint_probes(TimeNs now);
  void refresh_endpoint_probe_deadline();

  void refresh_timer(Qp& qp);

  EndpointConfig config;
  EndpointCounters counters;
  EventLog events;
  MemoryTable memory;
  Prng prng;
  PortTurns port_turns;
  unsigned spray_quantum = 1;

  std::vector<std::unique_ptr<Qp>> qps;  // by slot
  SlotIndex<QpNumber, QpNumberHash> qp_index;
  std::vector<Peer> peers;  // by slot
  SlotIndex<Address, AddressHash> peer_index;

  PortStatus ports;
  ControlQueue control;
  Scheduler scheduler;
  Ring<std::uint32_t> completions;  // slots of queue pairs with something to report
  TimerHeap timers;                 // never later than the queue pair's own deadline

  std::vector<PendingEndpointProbe> endpoint_probes;
  unsigned endpoint_probes_unsent = 0;
  TimeNs endpoint_probe_deadline = kNever;
  std::uint16_t next_incarnation = 0;
};

}  // namespace mrc::core
