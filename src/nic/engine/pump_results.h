// Results out: completions to their queues, events to streams and controllers. Under the engine
// lock.
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/ring.h"
#include "core/endpoint.h"
#include "nic/engine/pump_state.h"
#include "node/node_state.h"

namespace mrc::nic {

class CompletionQueueImpl;
struct CompletionEntry;

// Tells the processes of the node about a path. Writes files.
void tell(node::NodeState& node, const node::NodeEvEvent& news);

class PumpResults {
 public:
  explicit PumpResults(PumpState& state) : state_(state) {}

  void drain_completions();
  void drain_events();
  // Receives that have waited long enough for the sends before them.
  void report_waiting();
  TimeNs waiting_until() const { return waiting_until_; }  // the first of them

  // Work the protocol did not take, since its queue pair has failed.
  void flush_send(QueuePairImpl& qp, std::uint32_t slot);
  void flush_receive(QueuePairImpl& qp, std::uint32_t slot);

  // Changes of paths, for whoever tells the node, in their order.
  static constexpr std::size_t kMaxNews = 1'024;
  bool has_news() const { return !news_.empty(); }
  bool take_news(node::NodeEvEvent& out);

  // Queue pairs that report to a completion queue which overran.
  void fail_overrun_qps();

 private:
  void complete_send(QueuePairImpl& qp, std::uint32_t slot, core::CompletionStatus status);
  void complete_receive(QueuePairImpl& qp, const core::Completion& completion);
  void report_receive(QueuePairImpl& qp, const core::Completion& completion);
  void report_waiting(QueuePairImpl& qp);
  void deliver(CompletionQueueImpl& cq, const CompletionEntry& entry);
  void on_overrun(CompletionQueueImpl& cq);
  void on_qp_error(const core::Event& event);
  void on_plane(const core::Event& event);
  void judge_silence(QueuePairImpl& qp, PortId port);
  bool is_denied(const QueuePairImpl& qp, PortId port) const;
  void on_ev_state(const core::Event& event);

  PumpState& state_;
  TimeNs waiting_until_ = kNever;
  Ring<node::NodeEvEvent> news_{kMaxNews};
};

}  // namespace mrc::nic
