#include "demo/measurements.h"

#include <algorithm>

namespace mrc::demo {

void Measurements::on_fault(const FaultAction& action) {
  FaultObservation& observation = observations_[static_cast<std::size_t>(action.fault)];
  (action.repair ? observation.repaired : observation.happened) = true;
}

bool Measurements::is_reaction(const Fault& fault, const core::Event& event,
                               const Flow& flow) const {
  if (fault.kind == FaultKind::kPort) {
    return event.kind == core::EventKind::kRemotePorts &&
           event.peer == endpoint_address(host_address(fault.host));
  }
  if (event.kind != core::EventKind::kEvState || event.ev_state != core::EvState::kAssumedBad) {
    return false;
  }
  const Path path = topology_.path(event.ev);
  if (path.plane != fault.plane) return false;
  if (fault.kind == FaultKind::kPlane) return true;
  // The same EV of another flow need not cross this cable.
  return path.spine == fault.spine && (topology_.leaf_of(flow.source) == fault.leaf ||
                                       topology_.leaf_of(flow.destination) == fault.leaf);
}

void Measurements::on_event(const core::Event& event, const Flow& flow) {
  using enum core::EventKind;
  if (event.kind == kEvState) {
    if (event.ev_state == core::EvState::kAssumedBad) ++events_.paths_given_up;
    if (event.ev_state == core::EvState::kGood) ++events_.paths_revived;
  }
  if (event.kind == kPlaneLost) ++events_.planes_lost;
  if (event.kind == kPlaneBack) ++events_.planes_back;
  if (event.kind == kEvFloorReached) ++events_.floors_reached;
  for (std::size_t i = 0; i < observations_.size(); ++i) {
    FaultObservation& observation = observations_[i];
    if (!observation.happened || observation.repaired) continue;
    if (!is_reaction(plan_.faults()[i], event, flow)) continue;
    ++observation.reactions;
    observation.first_reaction_at = std::min(observation.first_reaction_at, event.time);
    observation.last_reaction_at = event.time;
  }
}

void Measurements::on_placed(TimeNs now, PortId plane, std::uint64_t bytes) {
  const auto bucket = static_cast<std::size_t>(now / kBucketNs);
  if (bucket >= buckets_.size()) buckets_.resize(bucket + 1);
  buckets_[bucket][static_cast<std::size_t>(plane) - 1] += bytes;
}

void Measurements::on_data_frame(std::span<const std::byte> frame) {
  if (sample_frame_.empty()) sample_frame_.assign(frame.begin(), frame.end());
}

}  // namespace mrc::demo
