// Drives one protocol engine of a device: posted work in, packets in and out, timers, results. A
// device has one or several of them (engine_group.h); each has its own lock, thread, sockets and
// queue pairs.
//
// Whoever holds the engine lock does the work: the engine thread, or a program thread that posts or
// polls and finds the lock free. Three things keep work from being forgotten:
//
// 1. Doorbells. A poster publishes its slot, pushes its queue pair on the doorbell list and tries
//    the lock. If it fails, the holder looks at the list after giving the lock up (engine_lock.h).
// 2. Deadlines. Whoever gives the lock up has stored in `wanted_at_` when the engine must run next
//    (0 = at once). The engine thread stores in `sleeps_until_` when it will wake by itself, then
//    looks at `wanted_at_` and the doorbells again, and only then sleeps; whoever stored an earlier
//    `wanted_at_` reads `sleeps_until_` afterwards and writes the wake-up descriptor. All of these
//    are sequentially consistent, so at least one of the two sees the other's store.
// 3. Packets. The back end's descriptor wakes the engine thread.
//
// A program that polls without pause would fight with the engine thread for the lock and for the
// packets. So while an empty poll is less than kPolledRecentlyNs old the engine thread only naps:
// it ignores packets and deadlines, which the poller sees to, and looks again after kNapNs. A
// program that asks for a notification says that it stops polling, which ends the nap.
//
// One thread that polls for many engines is too slow for all of them. So where a device has
// several, and one of them has moved many packets lately, its thread takes over (`alone_`): it goes
// round without sleeping, posters only ring and pollers only look at their completions, until
// nothing has moved for a while. A post that saw `alone_` may rely on a round after it: the thread
// takes `alone_` back before its last one.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <thread>

#include "core/endpoint.h"
#include "nic/endpoint_requests.h"
#include "nic/engine/engine_group.h"
#include "nic/engine/engine_lock.h"
#include "nic/io/backend.h"
#include "nic/mapped_memory.h"
#include "nic/path_profile.h"
#include "nic/peer_table.h"
#include "os/kernel_random.h"

namespace mrc::nic {

class CompletionQueueImpl;
class QueuePairImpl;
struct CompletionEntry;
struct HeldByte;

struct EngineParts {
  std::unique_ptr<core::Endpoint> endpoint;
  std::unique_ptr<Backend> backend;
  EngineGroup* group = nullptr;
  unsigned index = 0;  // in the group
  std::uint32_t evs_per_port = 8;
  std::uint32_t spray_quantum = 0;
  unsigned max_peers = 0;
  unsigned udp_port = 0;  // for explanations
};

class Engine final : private Receiver {
 public:
  explicit Engine(EngineParts parts);
  ~Engine() override;
  Engine(const Engine&) = delete;
  Engine& operator=(const Engine&) = delete;

  // Starts the thread; 0 or an errno. Before that nothing happens.
  int start(const std::string& name);
  // Ends the thread and waits for it. Others may still call the engine.
  void stop();

  // --- Any thread, without the lock.
  void ring(QueuePairImpl& qp);  // `qp` has new work
  // The same, and it may wait until the program polls, which it does at short intervals.
  void ring_later(QueuePairImpl& qp);
  bool polled_recently() const { return polled_recently(clock()); }
  void poll();          // an empty completion queue was polled
  void polling_ends();  // the program will wait for a notification
  // The process ends: sends the answers peers are owed, unless another thread keeps the engine.
  void on_exit();
  const core::CcProfile& default_cc() const { return default_cc_; }
  static TimeNs clock();
  unsigned index() const { return index_; }
  unsigned qp_count() const { return qp_count_.load(std::memory_order_relaxed); }
  // A completion queue overran in another engine: queue pairs here that report to it fail soon.
  void look_for_overruns();

  void lock() { lock_.lock(); }
  void unlock();  // and sees to it that what was asked for meanwhile is done

  // --- Under the lock.
  core::Endpoint& endpoint() { return *endpoint_; }
  Backend& backend() { return *backend_; }
  PeerTable& peers() { return peers_; }
  PathProfiles& path_profiles() { return path_profiles_; }
  os::KernelRandom& random() { return random_; }
  EndpointRequests& requests() { return requests_; }
  PortMask ports_enabled() const { return ports_enabled_; }
  unsigned udp_port() const { return udp_port_; }
  // Any thread: enabled and with a link.
  PortMask active_ports() const { return PortMask(active_ports_.load()); }

  // Queue pairs. `reserve_qp` takes the memory that `add_qp` needs.
  Result<QpNumber> free_qp_number();
  void reserve_qp(QpNumber number);
  void add_qp(QueuePairImpl& qp);
  void remove_qp(QueuePairImpl& qp);
  QueuePairImpl* find(QpNumber number) const;

  template <typename Visit>
  void for_each_qp(Visit visit) {
    for (const auto& page : qps_) {
      if (!page) continue;
      for (QueuePairImpl* qp : *page)
        if (qp != nullptr) visit(*qp);
    }
  }
  // Sends that end without a completion.
  void forget_sends(QueuePairImpl& qp);
  // Bytes held back for a region that goes.
  void forget_held(std::uint32_t remote_key);

  void take_doorbells();
  void take_posted(QueuePairImpl& qp);
  void hand_out_results();
  void transmit();
  // Sends the answers that peers are owed, before somebody who owes them goes.
  void pay_answers();
  // Brings ports and denied paths in line with a controller's wishes.
  void apply_node_state(const node::NodeSnapshot& snapshot);
  void apply_ports();

 private:
  static constexpr unsigned kNumbersPerPage = 256;
  using QpPage = std::array<QueuePairImpl*, kNumbersPerPage>;

  // engine.cc
  bool is_lead() const { return index_ == 0; }
  void publish_wanted();
  void note_load();
  void receive();
  void progress();

  // engine_rx.cc
  void on_received(const Received& received) override;
  void on_dropped(DropReason reason) override;
  Address source_of(const Received& received, const wire::Packet& packet, const QueuePairImpl* qp);
  bool has_target(const QueuePairImpl& qp, const wire::Packet& packet, std::uint32_t length);
  void place(QueuePairImpl& qp, const core::Placement& placement, const wire::Packet& packet,
             std::span<const std::byte> payload);
  struct Target {
    std::byte* address = nullptr;
    std::span<const std::byte> payload;
  };
  void place_last_byte_last(QueuePairImpl& qp, const HeldByte& last, bool ends_message,
                            const Target& target);
  void store_held(QueuePairImpl& qp);

  // engine_tx.cc
  bool next_packet(core::TxPacket& tx);
  void send(const core::TxPacket& tx);
  void send_for_endpoint(const core::TxPacket& tx);
  void choose_quantum();

  // engine_results.cc
  void drain_completions();
  void drain_events();
  void complete_send(QueuePairImpl& qp, std::uint32_t slot, core::CompletionStatus status);
  void complete_receive(QueuePairImpl& qp, const core::Completion& completion);
  void report_receive(QueuePairImpl& qp, const core::Completion& completion);
  void report_waiting(QueuePairImpl& qp);
  void report_waiting();
  void flush_receive(QueuePairImpl& qp, std::uint32_t slot);
  void deliver(CompletionQueueImpl& cq, const CompletionEntry& entry);
  void on_overrun(CompletionQueueImpl& cq);
  void fail_overrun_qps();
  void on_qp_error(const core::Event& event);
  void on_ev_state(const core::Event& event);
  void deny_paths(QueuePairImpl& qp, const node::NodeEvProfile& wished);

  // engine_thread.cc
  int open_descriptors();
  void close_descriptors();
  void run();
  void work_round();
  void work_alone();
  void sleep();
  void nap();
  void wake();
  void call_thread();  // ends its nap or its sleep
  bool polled_recently(TimeNs now) const;
  void push_doorbell(QueuePairImpl& qp);
  void read_descriptors(int timeout_ms);
  void clear_wake() const;
  void housekeep(TimeNs now);
  void read_node_state();

  EngineLock lock_;
  std::unique_ptr<core::Endpoint> endpoint_;
  std::unique_ptr<Backend> backend_;
  EngineGroup& group_;
  unsigned index_;
  os::KernelRandom random_;
  PeerTable peers_;
  PathProfiles path_profiles_;
  EndpointRequests requests_;
  MappedMemory sources_;  // of packets being sent in this round
  MappedMemory targets_;  // of packets received in this round
  core::CcProfile default_cc_;
  unsigned udp_port_;
  std::uint32_t fixed_quantum_;
  std::array<core::TxPacket, 8> few_;
  unsigned quantum_ = 1;
  std::uint64_t packets_under_way_ = 0;  // of sends taken and not completed
  PortMask ports_enabled_ = PortMask::first(kMaxPorts);
  std::array<std::unique_ptr<QpPage>, 65'536 / kNumbersPerPage> qps_;
  std::atomic<unsigned> qp_count_{0};  // changes under the lock
  TimeNs now_ = 0;
  bool more_work_ = false;
  TimeNs waiting_until_ = kNever;  // the first receive that waits for sends is reported then
  bool something_home_ = false;    // this round changed what the program sees
  unsigned moved_ = 0;             // packets, in and out, since `load_since_`
  TimeNs load_since_ = 0;

  std::atomic<QueuePairImpl*> doorbells_{nullptr};
  std::atomic<TimeNs> wanted_at_{kNever};
  std::atomic<TimeNs> sleeps_until_{0};  // 0: awake, or napping
  std::atomic<TimeNs> polled_at_{0};
  std::atomic<std::uint32_t> active_ports_{0};
  std::atomic<bool> napping_{false};
  std::atomic<bool> overruns_{false};      // look_for_overruns() was called
  std::atomic<bool> alone_wanted_{false};  // somebody found that there is much to do
  std::atomic<bool> alone_{false};         // the thread does it all
  std::atomic<bool> stopping_{false};

  // Of the engine thread alone.
  int epoll_ = -1;
  int wake_ = -1;
  int timer_ = -1;
  TimeNs timer_set_to_ = 0;
  TimeNs housekept_at_ = 0;
  bool backend_fired_ = false;
  bool node_fired_ = false;
  std::thread thread_;
};

class EngineGuard {
 public:
  explicit EngineGuard(Engine& engine) : engine_(&engine) { engine.lock(); }
  ~EngineGuard() { engine_->unlock(); }
  EngineGuard(const EngineGuard&) = delete;
  EngineGuard& operator=(const EngineGuard&) = delete;

 private:
  Engine* engine_;
};

}  // namespace mrc::nic
