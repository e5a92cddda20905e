#include "lab/cable_order.h"

namespace mrc::lab {
namespace {

DirectionOrder direction(const fabric::LinkCondition& condition, bool cable_is_down) {
  const bool nothing_passes = (condition.down && !cable_is_down) || condition.black_hole;
  return {.filtered = nothing_passes ? 1 : condition.loss, .rate_share = condition.rate_share};
}

}  // namespace

CableOrder order_for(const fabric::LinkCondition& home, const fabric::LinkCondition& back) {
  const bool down = home.down && back.down;
  return {.down = down, .home = direction(home, down), .back = direction(back, down)};
}

}  // namespace mrc::lab
