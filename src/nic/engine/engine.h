// One protocol engine of a device and the thread that drives it. A device has one or several of
// them (engine_group.h); each has its own lock, thread, sockets and queue pairs.
//
// The engine joins two things that know nothing of each other: EnginePump does the work,
// single-threaded, and EngineWaker sees to it that there is always somebody who does it. What is
// left here is the thread, and the calls by which program threads do the work themselves.
#pragma once

#include <atomic>
#include <cstdint>
#include <ctime>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "nic/engine/engine_group.h"
#include "nic/engine/engine_pump.h"
#include "nic/engine/engine_waker.h"

namespace mrc::nic {

class QueuePairImpl;

class Engine final {
 public:
  explicit Engine(EngineParts parts);
  ~Engine();
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
  bool polled_recently() const { return waker_.polled_recently(clock()); }
  void poll();                                        // an empty completion queue was polled
  void polling_ends() { waker_.polling_ends(); }      // the program will wait for a notification
  void report_overrun() { waker_.report_overrun(); }  // of a completion queue in another engine
  // The process ends: sends the answers peers are owed, unless another thread keeps the engine.
  void on_exit();
  static TimeNs clock();
  unsigned index() const { return index_; }
  std::uint64_t cpu_ns() const;  // of its thread, while that lives
  unsigned qp_count() const { return qp_count_.load(std::memory_order_relaxed); }
  // Enabled and with a link.
  PortMask active_ports() const { return PortMask(active_ports_.load()); }

  void lock() { waker_.lock(); }
  // And sees to it that what was asked for meanwhile is done.
  void unlock() { waker_.unlock(*this); }

  // --- Under the lock.
  EnginePump& pump() { return pump_; }
  void add_qp(QueuePairImpl& qp);  // its number has been reserved
  void remove_qp(QueuePairImpl& qp);
  unsigned apply_node_state(const node::NodeSnapshot& snapshot);
  // What the waker asks of whose lock it gives up.
  TimeNs next_run() {
    news_waits_.store(pump_.has_news(), std::memory_order_relaxed);
    return pump_.next_run();
  }
  void progress() { pump_.progress(); }

 private:
  bool is_lead() const { return index_ == 0; }
  void note_load();
  void look_after_links();
  int watch_descriptors();

  // Of the engine thread alone.
  void run();
  void run_taken_over();
  void housekeep(TimeNs now);
  TimeNs tell_telemetry(TimeNs now);
  void read_node_state();
  void tell_news();
  bool take_news(node::NodeEvEvent& out);

  EngineGroup& group_;
  unsigned index_;
  EngineWaker waker_;
  EnginePump pump_;
  std::atomic<clockid_t> cpu_clock_{0};  // 0: there is no thread yet
  std::atomic<unsigned> qp_count_{0};    // changes under the lock
  std::atomic<std::uint32_t> active_ports_{0};
  std::atomic<bool> news_waits_{false};  // in the pump, for whoever has no lock
  TimeNs housekept_at_ = 0;
  std::vector<std::string> notices_;  // to be told when the lock is free
  std::thread thread_;
};

class EngineGuard {
 public:
  explicit EngineGuard(Engine& engine) : engine_(&engine) { engine.lock(); }
  // The caller has the lock.
  EngineGuard(Engine& engine, std::adopt_lock_t) : engine_(&engine) {}
  ~EngineGuard() { engine_->unlock(); }
  EngineGuard(const EngineGuard&) = delete;
  EngineGuard& operator=(const EngineGuard&) = delete;

 private:
  Engine* engine_;
};

}  // namespace mrc::nic
