// What will be broken, when, and for how long. Fixed before the run, from the options alone.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/types.h"
#include "demo/options.h"
#include "demo/topology.h"
#include "demo/virtual_network.h"

namespace mrc::demo {

enum class FaultKind : std::uint8_t {
  kPath,   // one cable between a T0 and a T1; nobody is told
  kPlane,  // all T1 switches of a plane; nobody is told, the hosts' links stay up
  kPort,   // a host's cable; that host sees it, its peers do not
};
const char* fault_kind_name(FaultKind kind);

struct Fault {
  FaultKind kind = FaultKind::kPath;
  TimeNs at = 0;
  TimeNs repair_at = kNever;
  PortId plane{1};
  unsigned leaf = 0;   // kPath
  unsigned spine = 0;  // kPath
  unsigned host = 0;   // kPort
  std::vector<LinkId> links;
};

std::string describe(const Fault& fault);

// The moments of the plan in order.
struct FaultAction {
  TimeNs at = 0;
  FaultId fault{};
  bool repair = false;
};

class FaultPlan {
 public:
  // `span_ns` is how long the transfer takes at least; the faults are spread over it.
  FaultPlan(const Options& options, const Topology& topology, DurationNs span_ns);

  const std::vector<Fault>& faults() const { return faults_; }
  const Fault& fault(FaultId id) const { return faults_[static_cast<std::size_t>(id)]; }
  TimeNs next_time() const { return next_ < actions_.size() ? actions_[next_].at : kNever; }
  FaultAction take_next() { return actions_[next_++]; }

 private:
  void add_path(TimeNs at, const Trunk& trunk, const Topology& topology);
  void add_plane(TimeNs at, TimeNs repair_at, const Topology& topology);
  void add_port(TimeNs at, TimeNs repair_at, const Topology& topology);

  std::vector<Fault> faults_;
  std::vector<FaultAction> actions_;
  std::size_t next_ = 0;
};

}  // namespace mrc::demo
