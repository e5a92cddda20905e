// One queue pair: its two halves and its paths.
#pragma once

#include <cstdint>
#include <memory>

#include "base/types.h"
#include "core/config.h"
#include "core/counters.h"
#include "core/event_log.h"
#include "core/path_set.h"
#include "core/requester.h"
#include "core/responder.h"
#include "core/slot.h"

namespace mrc::core {

struct CcGroup;

class Qp final : public PathObserver {
 public:
  Qp(const QpConfig& qp_config, std::uint32_t qp_slot, EventLog& events)
      : config(qp_config),
        slot(qp_slot),
        requester(qp_config.max_sends),
        responder(qp_config.max_receives, qp_config.allow_sends),
        events_(&events) {}

  // PathObserver
  void on_ev_state(EvIndex ev, EvState ev_state, std::uint32_t drops) override {
    events_->push({.kind = EventKind::kEvState,
                   .qp = config.number,
                   .ev = ev,
                   .port = init.ev_profile->port(ev),
                   .ev_state = ev_state,
                   .drop_count = drops});
  }
  void on_ev_floor(EvIndex ev) override {
    events_->push({.kind = EventKind::kEvFloorReached,
                   .qp = config.number,
                   .ev = ev,
                   .port = init.ev_profile->port(ev)});
  }
  void on_plane_usable(PortId port, bool usable) override {
    planes_changed = true;
    events_->push({.kind = usable ? EventKind::kPlaneBack : EventKind::kPlaneLost,
                   .qp = config.number,
                   .port = port});
  }

  std::size_t memory_bytes() const {
    return sizeof(Qp) + requester.memory_bytes() + responder.memory_bytes() +
           (paths ? paths->memory_bytes() : 0);
  }

  const QpConfig config;
  const std::uint32_t slot;
  QpState state = QpState::kReset;
  QpInit init;
  QpReadyToReceive rtr;
  QpCounters counters;
  std::unique_ptr<EvProfile> own_profile;  // when the caller gave none
  std::unique_ptr<PathSet> paths;
  Requester requester;
  Responder responder;

  // Links into the endpoint's tables; kNoSlot before RTR.
  std::uint32_t peer = kNoSlot;
  CcGroup* group = nullptr;  // of that peer
  // The queue pairs of one peer, in the order they came.
  struct Neighbours {
    std::uint32_t next = kNoSlot;
    std::uint32_t previous = kNoSlot;
  } of_peer;

  struct Answers {
    TimeNs acknowledged_at = 0;  // when the last transport ACK left
    TimeNs copies_again_at = 0;  // when one may go out in several copies again
    // The path of the last one, for those that leave with it; see EndpointConfig::group_answers.
    TimeNs at = 0;
    EvIndex ev = kNoEv;
    Answer last_word;  // to the packet that the queue pair failed for, if it was one
  } answers;
  std::uint16_t incarnation = 0;  // tells control entries of an earlier life apart
  bool ack_queued = false;        // a transport ACK waits in the control queue
  bool completion_queued = false;
  bool planes_changed = false;

 private:
  EventLog* events_;
};

}  // namespace mrc::core
