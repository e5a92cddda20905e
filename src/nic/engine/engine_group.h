// The engines of one device, and what they have in common.
//
// A queue pair belongs to one engine for life; nothing of its work touches another one. What
// belongs to the device is here, and follows three rules:
//
// 1. Registered memory changes under the locks of all engines (GroupLock), taken in order of index.
//    Whoever holds the lock of one engine therefore sees memory that stays as it is. Nobody else
//    takes the lock of a second engine while it holds one.
// 2. Completion queues and the hub of asynchronous events have locks of their own, which are the
//    last to be taken: engines take them under their own lock.
// 3. The first engine leads: its thread watches the node's state and brings it to all of them, its
//    endpoint tells about ports, and it sends the requests of controllers.
//
// The list is complete before the first thread starts and stays until the last one has ended.
#pragma once

#include <memory>
#include <vector>

#include "nic/async_events.h"
#include "nic/plane_watch.h"
#include "nic/region_table.h"
#include "node/node_state.h"

namespace mrc::nic {

class Engine;
class TelemetryPublisher;

struct EngineGroup {
  explicit EngineGroup(std::unique_ptr<node::NodeState> state);
  ~EngineGroup();
  EngineGroup(const EngineGroup&) = delete;
  EngineGroup& operator=(const EngineGroup&) = delete;

  Engine& lead() const { return *engines.front(); }
  // The one with the fewest queue pairs.
  Engine& least_loaded() const;
  // A completion queue overran in engine `from`: queue pairs of the others that report to it fail
  // soon.
  void report_overrun(unsigned from) const;
  // Ends all threads; none of them touches another engine afterwards.
  void stop();

  std::unique_ptr<node::NodeState> node;
  std::shared_ptr<AsyncHub> async = std::make_shared<AsyncHub>();
  RegionTable regions;  // looking keys up needs no lock
  PlaneWatch planes;
  std::unique_ptr<TelemetryPublisher> telemetry;  // null: nothing is told
  std::vector<std::unique_ptr<Engine>> engines;
};

class GroupLock {
 public:
  explicit GroupLock(const EngineGroup& group);
  ~GroupLock();
  GroupLock(const GroupLock&) = delete;
  GroupLock& operator=(const GroupLock&) = delete;

 private:
  const EngineGroup* group_;
};

}  // namespace mrc::nic
