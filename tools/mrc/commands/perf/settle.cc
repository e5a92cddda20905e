#include <algorithm>

#include "commands/perf/losses.h"

namespace mrc::tool::perf {
namespace {

// Of each plane of the sender.
void settle_planes(std::vector<PlaneLosses>& sender, const std::vector<PlaneLosses>& receiver) {
  for (PlaneLosses& plane : sender) {
    const auto there = std::ranges::find(receiver, plane.plane, &PlaneLosses::plane);
    const bool lost = there != receiver.end() && plane.sent > there->arrived;
    plane.lost = lost ? plane.sent - there->arrived : 0;
  }
}

}  // namespace

void settle(Losses& own, Losses& theirs) {
  const auto missing = [](const QpLosses& sender, const QpLosses& receiver) {
    const std::uint64_t known = receiver.arrived + sender.trimmed + sender.refused;
    return sender.packets > known ? sender.packets - known : 0;
  };
  for (std::size_t i = 0; i < std::min(own.queue_pairs.size(), theirs.queue_pairs.size()); ++i) {
    QpLosses& a = own.queue_pairs[i];
    QpLosses& b = theirs.queue_pairs[i];
    a.lost = missing(a, b);
    b.lost = missing(b, a);
  }
  settle_planes(own.planes, theirs.planes);
  settle_planes(theirs.planes, own.planes);
}

}  // namespace mrc::tool::perf
