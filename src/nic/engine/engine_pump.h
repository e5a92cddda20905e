// Does the work of one protocol engine: posted work in, packets in and out, timers, results.
//
// Single-threaded: every call is made under the engine lock, which the pump knows nothing about.
// Its caller (engine.h) decides when to call, engine_waker.h who. One round of work is round(), in
// engine_pump.cc; each of its steps is an object of its own (pump_intake.h, pump_receive.h,
// pump_transmit.h, pump_results.h) over a common PumpState.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "core/endpoint.h"
#include "nic/engine/engine_inbox.h"
#include "nic/engine/pump_intake.h"
#include "nic/engine/pump_receive.h"
#include "nic/engine/pump_results.h"
#include "nic/engine/pump_state.h"
#include "nic/engine/pump_transmit.h"
#include "nic/engine/receive_pressure.h"
#include "nic/engine/software_cc.h"
#include "nic/path_profile.h"
#include "os/kernel_random.h"

namespace mrc::nic {

struct EngineParts {
  std::unique_ptr<core::Endpoint> endpoint;
  std::unique_ptr<Backend> backend;
  EngineGroup* group = nullptr;
  unsigned index = 0;  // in the group
  PathProfiles::Counts paths;
  std::uint32_t spray_quantum = 0;
  bool trimming = false;
  unsigned max_peers = 0;
  unsigned udp_port = 0;  // for explanations
  wire::Dialect dialect;
};

class EnginePump {
 public:
  // Who runs a round, which decides what it does first.
  enum class Driver : std::uint8_t {
    kPoster,       // a program thread with new work, which wants to go on
    kPoller,       // a program thread that waits for completions
    kEagerPoller,  // the same, and it polls without pause
    kThread,       // the engine thread
  };

  // Posted work is taken from `inbox`.
  EnginePump(EngineParts parts, EngineInbox& inbox);
  EnginePump(const EnginePump&) = delete;
  EnginePump& operator=(const EnginePump&) = delete;

  // One round at `now`. True: packets moved, or another round must follow at once. Where memory is
  // out, what was being sent or received is lost like any packet, and the rest is left to the next.
  bool round(Driver driver, TimeNs now) noexcept;
  // A poster's round: all there is to do but a look for packets.
  void progress() noexcept;
  // When a round must follow; 0 = at once.
  TimeNs next_run() const;
  // Whether 8 packets or more moved within the last 100 us. To be asked once a round.
  bool much_to_do();

  // --- Parts of a round, for those who change a queue pair.
  void take_posted_work();
  void take_posted(QueuePairImpl& qp) { intake_.take(qp); }
  void hand_out_results();
  // Changes of paths that the node is to be told of, once the lock is free.
  bool has_news() const { return results_.has_news(); }
  bool take_news(node::NodeEvEvent& out) { return results_.take_news(out); }
  // Sends the answers that peers are owed, before somebody who owes them goes.
  void send_owed_answers();
  void forget_sends(QueuePairImpl& qp) { intake_.forget_sends(qp); }
  void forget_held(std::uint32_t remote_key) { receive_.forget_held(remote_key); }

  // --- Ports and paths.
  // Brings ports and denied paths in line with a controller's wishes. Returns to how many queue
  // pairs drained parts leave no path.
  unsigned apply_node_state(const node::NodeSnapshot& snapshot);
  // The paths of one queue pair, as its profile and the drained parts have it; of the latter those
  // count on which a peer is reached. False: drained parts leave it none.
  bool settle_paths(QueuePairImpl& qp);
  void apply_ports();
  PortMask ports_enabled() const { return ports_enabled_; }

  core::Endpoint& endpoint() { return *state_.endpoint; }
  const core::Endpoint& endpoint() const { return *state_.endpoint; }
  Backend& backend() { return *state_.backend; }
  const Backend& backend() const { return *state_.backend; }
  QpTable& qps() { return state_.qps; }
  const QpTable& qps() const { return state_.qps; }
  EngineTelemetry& telemetry() { return state_.telemetry; }
  PeerTable& peers() { return state_.peers; }
  EndpointRequests& requests() { return state_.requests; }
  std::uint8_t vendor_info() const { return state_.vendor_info(); }
  PathProfiles& path_profiles() { return path_profiles_; }
  os::KernelRandom& random() { return random_; }
  // Constant: without the lock as well.
  // Of queue pairs without a CC profile, and of those with one: what it leaves open, by 0, is as
  // in the former.
  const core::CcProfile& default_cc() const { return default_cc_; }
  core::CcProfile cc_of(const node::NodeCcProfile& profile) const;

 private:
  void work(Driver driver);
  void receive_packets();
  void ease_pressure();
  void run_timers();
  void transmit() { transmit_.run(); }
  bool is_excluded(const QueuePairImpl& qp, EvIndex ev) const;

  PumpState state_;
  EngineInbox& inbox_;
  os::KernelRandom random_;
  PathProfiles path_profiles_;
  SoftwarePorts ports_;
  core::CcProfile default_cc_;
  PumpResults results_;
  PumpIntake intake_;
  PumpReceive receive_;
  PumpTransmit transmit_;
  ReceivePressure pressure_;
  PortMask ports_enabled_ = PortMask::first(kMaxPorts);
  std::vector<node::PathExclusion> exclusions_;  // of all drained parts
  TimeNs load_since_ = 0;                        // `state_.moved` counts from then on
};

}  // namespace mrc::nic
