#include "nic/engine/pump_results.h"

#include <algorithm>
#include <new>
#include <utility>

#include "nic/explanation.h"
#include "nic/queue_pair.h"

namespace mrc::nic {
namespace {

// How long a receive waits for the sends before it. Their acknowledgement left beside the message
// that filled it; one that is later than this was lost.
constexpr DurationNs kReceiveWaitNs = 2 * kMillisecondNs;

}  // namespace

void tell(node::NodeState& node, const node::NodeEvEvent& news) {
  node.publish_ev_state(news.profile_id, news.ev, news.state);
  node.send_event(news);
}

// --- Completions ---

void PumpResults::drain_completions() {
  core::Completion completion;
  while (state_.endpoint->next_completion(completion)) {
    QueuePairImpl* qp = state_.qps.find(completion.qp);
    if (qp == nullptr) continue;
    if (completion.kind == core::CompletionKind::kSend) {
      complete_send(*qp, static_cast<std::uint32_t>(completion.id), completion.status);
    } else {
      complete_receive(*qp, completion);
    }
  }
}

void PumpResults::complete_send(QueuePairImpl& qp, std::uint32_t slot,
                                core::CompletionStatus status) {
  const SendSlot& send = qp.send(slot);
  ++qp.e.silent_credits;
  ++qp.e.sends_done;
  state_.packets_under_way -= qp.packets_of(send);
  state_.telemetry.note_completion(state_.now - send.taken_at,
                                   status == core::CompletionStatus::kSuccess);
  if (status != core::CompletionStatus::kSuccess || send.signaled) {
    CompletionEntry entry{.owner = &qp, .send_credits = std::exchange(qp.e.silent_credits, 0)};
    entry.work = {.id = send.id,
                  .status = status,
                  .kind = send.kind,
                  .length = send.length,
                  .qp = qp.number()};
    deliver(qp.send_cq(), entry);
  }
  if (!qp.e.waiting.empty()) report_waiting(qp);
}

// Programs written for network cards expect a send to be done before its answer is there: a card
// acknowledges what it receives before its program can answer. Our acknowledgement takes another
// path than the answer and may come behind it, so the answer waits.
void PumpResults::complete_receive(QueuePairImpl& qp, const core::Completion& completion) {
  auto& waiting = qp.e.waiting;
  const bool answers = completion.into_receive && qp.e.sends_done != qp.e.sends_taken;
  const bool good = completion.status == core::CompletionStatus::kSuccess;
  if (good && (answers || !waiting.empty()) && waiting.size() < waiting.capacity()) {
    const TimeNs until = state_.now + kReceiveWaitNs;
    waiting.push_back({completion, answers ? qp.e.sends_taken : 0, until});
    waiting_until_ = std::min(waiting_until_, until);
    return;
  }
  for (const WaitingReceive& first : waiting)
    report_receive(qp, first.completion);
  waiting.clear();
  report_receive(qp, completion);
}

void PumpResults::report_waiting(QueuePairImpl& qp) {
  auto& waiting = qp.e.waiting;
  const auto due = [&](const WaitingReceive& receive) {
    return receive.after_sends <= qp.e.sends_done || receive.until <= state_.now;
  };
  const auto end = std::find_if_not(waiting.begin(), waiting.end(), due);
  for (auto receive = waiting.begin(); receive != end; ++receive)
    report_receive(qp, receive->completion);
  waiting.erase(waiting.begin(), end);
}

void PumpResults::report_waiting() {
  if (state_.now < waiting_until_) return;
  waiting_until_ = kNever;
  state_.qps.for_each([&](QueuePairImpl& qp) {
    report_waiting(qp);
    if (!qp.e.waiting.empty())
      waiting_until_ = std::min(waiting_until_, qp.e.waiting.front().until);
  });
}

void PumpResults::report_receive(QueuePairImpl& qp, const core::Completion& completion) {
  const ReceiveSlot& receive = qp.receive(static_cast<std::uint32_t>(completion.id));
  CompletionEntry entry{.owner = &qp, .receive_credits = 1, .solicited = completion.solicited};
  const SendKind kind = !completion.into_receive   ? SendKind::kWriteImmediate
                        : completion.has_immediate ? SendKind::kSendImmediate
                                                   : SendKind::kSend;
  entry.work = {.id = receive.id,
                .status = completion.status,
                .kind = kind,
                .receive = true,
                .has_immediate = completion.has_immediate,
                .immediate = completion.immediate,
                .length = completion.length,
                .qp = qp.number()};
  deliver(qp.receive_cq(), entry);
}

void PumpResults::flush_send(QueuePairImpl& qp, std::uint32_t slot) {
  complete_send(qp, slot, core::CompletionStatus::kFlushed);
}

void PumpResults::flush_receive(QueuePairImpl& qp, std::uint32_t slot) {
  complete_receive(qp, {.status = core::CompletionStatus::kFlushed, .id = slot});
}

void PumpResults::deliver(CompletionQueueImpl& cq, const CompletionEntry& entry) {
  state_.program_sees_it = true;
  if (!cq.push(entry)) on_overrun(cq);
}

// As in verbs: the queue is broken, and so are the queue pairs that report to it.
void PumpResults::on_overrun(CompletionQueueImpl& cq) {
  state_.group.async->publish({.kind = AsyncKind::kCqError, .cq = &cq});
  state_.group.report_overrun(state_.index);
  fail_overrun_qps();
}

void PumpResults::fail_overrun_qps() {
  state_.qps.for_each([&](QueuePairImpl& qp) {
    if (!qp.send_cq().overrun() && !qp.receive_cq().overrun()) return;
    [[maybe_unused]] const Status failed = state_.endpoint->fail_qp(state_.now, qp.number());
  });
  state_.more_work = true;
}

// --- Events ---

void PumpResults::drain_events() {
  core::Event event;
  while (state_.endpoint->next_event(event)) {
    switch (event.kind) {
      case core::EventKind::kQpError:
        on_qp_error(event);
        break;
      case core::EventKind::kEvState:
        on_ev_state(event);
        break;
      case core::EventKind::kLocalPort:
        state_.telemetry.note_port_change(event.port);
        if (state_.index != 0) break;
        state_.group.async->publish(
            {.kind = event.ok ? AsyncKind::kPortActive : AsyncKind::kPortError,
             .port = event.port});
        break;
      case core::EventKind::kPlaneLost:
      case core::EventKind::kPlaneBack:
        on_plane(event);
        break;
      // Reports show the state of paths and of the peer's ports to whoever asks. Answers to a
      // controller's requests end in EndpointRequests, refused writes in the drop counters.
      case core::EventKind::kEvFloorReached:
      case core::EventKind::kRemotePorts:
      case core::EventKind::kEndpointAnswer:
      case core::EventKind::kAccessRefused:
        break;
    }
  }
}

void PumpResults::on_qp_error(const core::Event& event) {
  QueuePairImpl* qp = state_.qps.find(event.qp);
  if (qp == nullptr) return;
  qp->set_state(core::QpState::kError);
  if (qp->e.failing_on_request) return;
  qp->e.failure = event.status;
  try {
    qp->e.explanation = explain_failure(*qp, state_, event);
  } catch (const std::bad_alloc&) {
    qp->e.explanation.clear();
  }
  state_.group.async->publish({.kind = AsyncKind::kQpFatal, .qp = qp});
}

void PumpResults::on_plane(const core::Event& event) {
  QueuePairImpl* const qp = state_.qps.find(event.qp);
  if (qp == nullptr || !qp->e.connected) return;
  PortMask& gone = qp->e.gone_planes;
  const bool lost = event.kind == core::EventKind::kPlaneLost;
  gone = lost ? gone.with(event.port) : gone.without(event.port);
  judge_silence(*qp, event.port);
}

// A plane whose paths have all been taken out of use is gone by an order, whatever its peer does.
void PumpResults::judge_silence(QueuePairImpl& qp, PortId port) {
  PortMask& silent = qp.e.silent_planes;
  const bool gone = qp.e.gone_planes.contains(port);
  const bool is_silent = gone && !is_denied(qp, port);
  if (is_silent == silent.contains(port)) return;
  silent = is_silent ? silent.with(port) : silent.without(port);
  PlaneWatch& planes = state_.group.planes;
  if (is_silent) {
    planes.lost(qp.e.remote.gid, port, state_.now);
  } else if (gone) {
    planes.forget(qp.e.remote.gid, port);
  } else {
    planes.back(qp.e.remote.gid, port);
  }
}

bool PumpResults::is_denied(const QueuePairImpl& qp, PortId port) const {
  if (!qp.e.paths) return false;
  const core::EvProfile& profile = qp.e.paths->profile;
  bool any = false;
  for (unsigned i = 0; i < profile.size(); ++i) {
    const auto ev = static_cast<EvIndex>(i);
    if (profile.entry(ev).port != port) continue;
    const Result<core::EvState> state = state_.endpoint->query_ev(qp.number(), ev);
    if (!state.ok() || state.value() != core::EvState::kDenied) return false;
    any = true;
  }
  return any;
}

// SKIP is not reported: load balancing passes over a path for one turn and takes it in the next.
// Which of the others make an event, the profile's mask says as it is now: it may change while the
// profile is in use.
void PumpResults::on_ev_state(const core::Event& event) {
  QueuePairImpl* const qp = state_.qps.find(event.qp);
  if (qp != nullptr && qp->e.gone_planes.contains(event.port)) judge_silence(*qp, event.port);
  if (qp == nullptr || !qp->e.paths || !qp->e.paths->from_node) return;
  const PathProfile& paths = *qp->e.paths;
  const auto index = static_cast<std::size_t>(event.ev);
  if (index >= paths.evs.size() || event.ev_state == core::EvState::kSkip) return;
  // Where nobody has told the last ones, they go before this one.
  node::NodeEvEvent news;
  while (news_.full() && take_news(news))
    tell(*state_.group.node, news);
  news_.push_back({.profile_id = paths.node_id, .ev = paths.evs[index], .state = event.ev_state});
}

bool PumpResults::take_news(node::NodeEvEvent& out) {
  if (news_.empty()) return false;
  out = news_.front();
  news_.pop_front();
  return true;
}

}  // namespace mrc::nic
