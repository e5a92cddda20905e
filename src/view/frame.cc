#include "view/frame.h"

#include <algorithm>

namespace mrc::view {

LaneState state_of(const fabric::LinkCondition& condition) {
  if (condition.down) return LaneState::kDown;
  if (condition.black_hole) return LaneState::kBlackHole;
  if (condition.loss > 0 || condition.corrupt > 0) return LaneState::kLossy;
  return condition.rate_share < 1 ? LaneState::kSlow : LaneState::kHealthy;
}

void settle(Lane& lane, const Geometry& geometry, LaneId id, const LaneTraffic& traffic) {
  if (lane.state == LaneState::kDown && traffic.links_down < geometry.cable_of(id).links)
    lane.state = LaneState::kPartlyDown;
  const double room =
      static_cast<double>(geometry.bits_per_second(id)) / 8e9 * static_cast<double>(traffic.span);
  if (room <= 0) return;
  const double share = static_cast<double>(traffic.bytes) / room;
  lane.load_permille = static_cast<std::uint16_t>(std::min(1000.0, 1000.0 * share));
}

}  // namespace mrc::view
