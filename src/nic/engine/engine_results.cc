// Results out: completions to their queues, events to streams and controllers, and what a
// controller's wishes do to running queue pairs.
#include <algorithm>
#include <new>

#include "nic/engine/engine.h"
#include "nic/explanation.h"
#include "nic/queue_pair.h"

namespace mrc::nic {
namespace {

// How long a receive waits for the sends before it. Their acknowledgement left beside the message
// that filled it; one that is later than this was lost.
constexpr DurationNs kReceiveWaitNs = 2 * kMillisecondNs;

}  // namespace

// --- Completions ---

void Engine::drain_completions() {
  core::Completion completion;
  while (endpoint_->next_completion(completion)) {
    QueuePairImpl* qp = find(completion.qp);
    if (qp == nullptr) continue;
    if (completion.kind == core::CompletionKind::kSend) {
      complete_send(*qp, static_cast<std::uint32_t>(completion.id), completion.status);
    } else {
      complete_receive(*qp, completion);
    }
  }
}

void Engine::complete_send(QueuePairImpl& qp, std::uint32_t slot, core::CompletionStatus status) {
  const SendSlot& send = qp.send(slot);
  ++qp.e.silent_credits;
  ++qp.e.sends_done;
  packets_under_way_ -= qp.packets_of(send);
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
void Engine::complete_receive(QueuePairImpl& qp, const core::Completion& completion) {
  auto& waiting = qp.e.waiting;
  const bool answers = completion.into_receive && qp.e.sends_done != qp.e.sends_taken;
  const bool good = completion.status == core::CompletionStatus::kSuccess;
  if (good && (answers || !waiting.empty()) && waiting.size() < waiting.capacity()) {
    const TimeNs until = now_ + kReceiveWaitNs;
    waiting.push_back({completion, answers ? qp.e.sends_taken : 0, until});
    waiting_until_ = std::min(waiting_until_, until);
    return;
  }
  for (const WaitingReceive& first : waiting)
    report_receive(qp, first.completion);
  waiting.clear();
  report_receive(qp, completion);
}

void Engine::report_waiting(QueuePairImpl& qp) {
  auto& waiting = qp.e.waiting;
  const auto due = [&](const WaitingReceive& receive) {
    return receive.after_sends <= qp.e.sends_done || receive.until <= now_;
  };
  const auto end = std::find_if_not(waiting.begin(), waiting.end(), due);
  for (auto receive = waiting.begin(); receive != end; ++receive)
    report_receive(qp, receive->completion);
  waiting.erase(waiting.begin(), end);
}

void Engine::report_waiting() {
  if (now_ < waiting_until_) return;
  waiting_until_ = kNever;
  for_each_qp([&](QueuePairImpl& qp) {
    report_waiting(qp);
    if (!qp.e.waiting.empty())
      waiting_until_ = std::min(waiting_until_, qp.e.waiting.front().until);
  });
}

void Engine::report_receive(QueuePairImpl& qp, const core::Completion& completion) {
  const ReceiveSlot& receive = qp.receive(static_cast<std::uint32_t>(completion.id));
  CompletionEntry entry{.owner = &qp, .receive_credits = 1, .solicited = true};
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

void Engine::flush_receive(QueuePairImpl& qp, std::uint32_t slot) {
  complete_receive(qp, {.status = core::CompletionStatus::kFlushed, .id = slot});
}

void Engine::deliver(CompletionQueueImpl& cq, const CompletionEntry& entry) {
  something_home_ = true;
  if (!cq.push(entry)) on_overrun(cq);
}

// As in verbs: the queue is broken, and so are the queue pairs that report to it.
void Engine::on_overrun(CompletionQueueImpl& cq) {
  group_.async->publish({.kind = AsyncKind::kCqError, .cq = &cq});
  for (const auto& engine : group_.engines)
    if (engine.get() != this) engine->look_for_overruns();
  fail_overrun_qps();
}

void Engine::look_for_overruns() {
  overruns_.store(true);
  call_thread();
}

void Engine::fail_overrun_qps() {
  overruns_.store(false);
  for_each_qp([&](QueuePairImpl& qp) {
    if (!qp.send_cq().overrun() && !qp.receive_cq().overrun()) return;
    [[maybe_unused]] const Status failed = endpoint_->fail_qp(now_, qp.number());
  });
  more_work_ = true;
}

// --- Events ---

void Engine::drain_events() {
  core::Event event;
  while (endpoint_->next_event(event)) {
    switch (event.kind) {
      case core::EventKind::kQpError:
        on_qp_error(event);
        break;
      case core::EventKind::kEvState:
        on_ev_state(event);
        break;
      case core::EventKind::kLocalPort:
        if (!is_lead()) break;
        group_.async->publish({.kind = event.ok ? AsyncKind::kPortActive : AsyncKind::kPortError,
                               .port = event.port});
        break;
      default:
        break;
    }
  }
}

void Engine::on_qp_error(const core::Event& event) {
  QueuePairImpl* qp = find(event.qp);
  if (qp == nullptr) return;
  qp->set_state(core::QpState::kError);
  if (qp->e.failing_on_request) return;
  qp->e.failure = event.status;
  try {
    qp->e.explanation = explain_failure(*qp, *this, event);
  } catch (const std::bad_alloc&) {
    qp->e.explanation.clear();
  }
  group_.async->publish({.kind = AsyncKind::kQpFatal, .qp = qp});
}

// SKIP is a passing thought of load balancing and nobody else's business. Which of the others make
// an event, the profile's mask says as it is now: it may change while the profile is in use.
void Engine::on_ev_state(const core::Event& event) {
  const QueuePairImpl* qp = find(event.qp);
  if (qp == nullptr || !qp->e.paths || !qp->e.paths->from_node) return;
  const PathProfile& paths = *qp->e.paths;
  const auto index = static_cast<std::size_t>(event.ev);
  if (index >= paths.evs.size() || event.ev_state == core::EvState::kSkip) return;
  group_.node->publish_ev_state(paths.node_id, paths.evs[index], event.ev_state);
  group_.node->send_event({.profile_id = paths.node_id,
                           .ev = paths.evs[index],
                           .drop_count = event.drop_count,
                           .state = event.ev_state});
}

// --- A controller's wishes ---

void Engine::apply_ports() {
  const PortMask link = backend_->link_up();
  for (unsigned number = 1; number <= backend_->port_count(); ++number) {
    const auto port = static_cast<PortId>(number);
    const bool up = link.contains(port) && ports_enabled_.contains(port);
    [[maybe_unused]] const Status set = endpoint_->set_port_up(now_, port, up);
  }
  active_ports_.store(endpoint_->ports_up().bits());
}

// Paths denied or allowed again. Paths replaced in a profile that is online reach queue pairs that
// are set up later.
void Engine::apply_node_state(const node::NodeSnapshot& snapshot) {
  now_ = clock();
  ports_enabled_ = snapshot.ports_enabled;
  apply_ports();
  for_each_qp([&](QueuePairImpl& qp) {
    if (!qp.e.paths || !qp.e.paths->from_node) return;
    const auto found = snapshot.ev_profiles.find(qp.e.paths->node_id);
    if (found != snapshot.ev_profiles.end()) deny_paths(qp, found->second);
  });
  more_work_ = true;
}

void Engine::deny_paths(QueuePairImpl& qp, const node::NodeEvProfile& wished) {
  PathProfile& paths = *qp.e.paths;
  for (std::size_t i = 0; i < paths.evs.size(); ++i) {
    const node::ProfileEv& ev = paths.evs[i];
    const auto same = [&](const node::ProfileEv& other) {
      return other.value == ev.value && other.port == ev.port;
    };
    const auto at = i < wished.evs.size() && same(wished.evs[i])
                        ? wished.evs.begin() + static_cast<std::ptrdiff_t>(i)
                        : std::find_if(wished.evs.begin(), wished.evs.end(), same);
    if (at == wished.evs.end()) continue;
    const auto index = static_cast<EvIndex>(i);
    // The mark in the profile is for queue pairs to come, the call for this one.
    paths.profile.set_denied(index, at->denied);
    const Result<core::EvState> now = endpoint_->query_ev(qp.number(), index);
    if (!now.ok() || (now.value() == core::EvState::kDenied) == at->denied) continue;
    [[maybe_unused]] const Status set =
        endpoint_->set_ev_denied(now_, qp.number(), index, at->denied);
  }
}

}  // namespace mrc::nic
