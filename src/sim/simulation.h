// One run: hosts, network and workload under one clock.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <string_view>
#include <vector>

#include "sim/config.h"
#include "sim/event_queue.h"
#include "sim/explain.h"
#include "sim/fault_schedule.h"
#include "sim/host.h"
#include "sim/memory_image.h"
#include "sim/mrc_host.h"
#include "sim/network.h"
#include "sim/result.h"
#include "sim/roce_host.h"
#include "sim/workload.h"

namespace mrc::sim {

// Called now and then while a run goes on.
struct Progress {
  double share = 0;  // of the bytes to be moved
  Time now = 0;
  std::uint64_t events = 0;
  std::uint64_t packet_hops = 0;
};
using ProgressFunction = std::function<void(const Progress&)>;

// Called at a time of its own choosing: returns when it wants to be called again. Looking changes
// nothing about the run.
using Sampler = std::function<Time(Time now)>;

class Simulation final : public HostListener {
 public:
  // Throws InputError.
  explicit Simulation(const SimConfig& config);
  ~Simulation() override;

  // All before run(); the tap must live until its end.
  void tap(fabric::LinkId link, PacketTap& packet_tap) { network_->tap(link, packet_tap); }
  void sample(Time first, Sampler sampler);
  void follow(const std::vector<TaskId>& tasks);  // explain() tells of them after the run
  // Instead of follow(): one watch at a time.
  void watch(PacketWatch& watch) { network_->watch(watch); }
  SimResult run(const ProgressFunction& progress = {});
  // run() in pieces: advance() until it says false, then finish(). Between two of them faults come
  // and go, from the next nanosecond on; the plan is then as if it had always said so.
  // Everything up to and including `until` happens. False: nothing is left to do.
  bool advance(Time until, const ProgressFunction& progress = {});
  SimResult finish();
  void add_fault(std::string_view what) { faults_.add(what, now_); }  // both throw InputError,
  void end_fault(std::uint32_t fault) { faults_.end(fault, now_); }   // see fault_schedule.h
  // From any thread: run() and advance() return soon with what it has.
  void stop() { stopped_ = true; }
  std::vector<Explanation> explain() const;

  // For samplers.
  std::uint32_t queued_bytes(Time now, fabric::LinkId link) {
    return network_->queued_bytes(now, link);
  }
  const Host& host(std::uint32_t host) const { return *hosts_[host].host; }
  const SimResult& so_far() const { return result_; }  // flows, bytes per plane
  PacketPool& packets() { return packets_; }

  const fabric::Topology& topology() const { return topology_; }
  const fabric::Routing& routing() const { return routing_; }
  const Network& network() const { return *network_; }
  const Workload& workload() const { return workload_; }
  const std::vector<fabric::Fault>& faults() const { return faults_.plan(); }

 private:
  struct HostSlot {
    std::unique_ptr<Host> host;
    Time wake_at = kEndOfTime;   // of the earliest kHostWake on its way
    Time timer_at = kEndOfTime;  // likewise
    Time sealing_until = 0;      // what it has to seal and to open is done then

    void prefetch() const { __builtin_prefetch(host.get()); }
  };

  struct Observers {
    Sampler sample;
    std::unique_ptr<Explainer> explainer;
  };

  struct Bytes {
    std::uint64_t total = 0;
    std::uint64_t placed = 0;
  };

  void build_hosts();
  std::unique_ptr<Host> build_host(std::uint32_t host, const std::vector<PlannedConnection>& plan);

  // HostListener
  void on_sent(Time now, TaskId task, bool ok) override;
  void on_received(Time now, TaskId task) override;
  void on_placed(Time now, const Placed& placed) override;

  void handle(const Event& event);
  void on_arrival(const Event& event);
  void on_fault(Time now, std::uint32_t number);
  void on_carrier(Time now, std::uint32_t host, unsigned plane);
  void on_pause(const Event& event);
  void pump(Time now, std::uint32_t host);
  void inject(Time now, const Outgoing& out);
  void charge_seal(Time now, HostSlot& slot, PacketId packet);
  void start_task(Time now, TaskId task);
  void post_task(Time now, TaskId task);
  void finish_task(Time now, TaskId task);
  void prefetch() const;
  void note(std::uint64_t value);

  SimConfig config_;
  fabric::Topology topology_;
  fabric::Routing routing_;
  Workload workload_;
  EventQueue events_;
  FaultSchedule faults_;
  PacketPool packets_;
  std::unique_ptr<Network> network_;
  std::unique_ptr<MrcWorld> mrc_world_;    // of the transport in use
  std::unique_ptr<RoceWorld> roce_world_;  // likewise
  std::vector<HostSlot> hosts_;
  MemoryImage memory_;
  Observers observers_;  // where somebody looks

  SimResult result_;
  std::uint64_t tasks_done_ = 0;
  Bytes bytes_;
  Time last_down_ = -1;
  enum class Phase : std::uint8_t { kFresh, kUnderWay, kPaused, kOver };
  Phase phase_ = Phase::kFresh;
  Time now_ = 0;
  std::atomic<bool> stopped_ = false;
};

}  // namespace mrc::sim
