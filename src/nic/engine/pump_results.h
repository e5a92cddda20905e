// Results out: completions to their queues, events to streams and controllers. Under the engine
// lock.
#pragma once

#include <atomic>
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

  // Changes of paths, for whoever tells the node, in their order. has_news() from any thread.
  static constexpr std::size_t kMaxNews = 1'024;
  bool has_news() const { return has_news_.load(std::memory_order_relaxed); }
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
  void on_ev_state(const core::Event& event);

  PumpState& state_;
  TimeNs waiting_until_ = kNever;
  Ring<node::NodeEvEvent> news_{kMaxNews};
  std::atomic<bool> has_news_{false};
};

}  // namespace mrc::nic
