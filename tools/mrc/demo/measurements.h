// What is written down during the run, as opposed to what engines and network count themselves.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "base/types.h"
#include "core/event.h"
#include "demo/fault_plan.h"
#include "demo/topology.h"

namespace mrc::demo {

inline constexpr DurationNs kBucketNs = 20 * kMicrosecondNs;

// How the engines reacted to a fault: paths given up, or news of a port received.
struct FaultObservation {
  bool happened = false;
  bool repaired = false;
  std::uint64_t reactions = 0;
  TimeNs first_reaction_at = kNever;
  TimeNs last_reaction_at = kNever;
};

struct EventTotals {
  std::uint64_t paths_given_up = 0;
  std::uint64_t paths_revived = 0;
  std::uint64_t planes_lost = 0;  // by a queue pair, each counted
  std::uint64_t planes_back = 0;
  std::uint64_t floors_reached = 0;
};

class Measurements {
 public:
  using PlaneBytes = std::array<std::uint64_t, kMaxPorts>;  // index 0 is plane 1

  Measurements(const FaultPlan& plan, const Topology& topology)
      : plan_(plan), topology_(topology), observations_(plan.faults().size()) {}

  void on_fault(const FaultAction& action);
  // `flow` is that of the queue pair the event is about, if it is about one.
  void on_event(const core::Event& event, const Flow& flow);
  void on_placed(TimeNs now, PortId plane, std::uint64_t bytes);
  void on_data_frame(std::span<const std::byte> frame);

  const FaultObservation& observation(FaultId fault) const {
    return observations_[static_cast<std::size_t>(fault)];
  }
  const EventTotals& events() const { return events_; }
  // Payload placed for the first time, by the time of its arrival.
  const std::vector<PlaneBytes>& buckets() const { return buckets_; }
  // The first data packet of the run, as it left its host.
  std::span<const std::byte> sample_frame() const { return sample_frame_; }

 private:
  bool is_reaction(const Fault& fault, const core::Event& event, const Flow& flow) const;

  const FaultPlan& plan_;
  const Topology& topology_;
  std::vector<FaultObservation> observations_;
  std::vector<PlaneBytes> buckets_;
  std::vector<std::byte> sample_frame_;
  EventTotals events_;
};

}  // namespace mrc::demo
