#include "sim/rate_history.h"

#include "fabric/link_condition.h"

namespace mrc::sim {

RateHistory::RateHistory(const std::vector<fabric::Fault>& plan, Time end) {
  fabric::FabricFaults faults;
  for (const fabric::FaultAction& action : fabric::timeline(plan, end)) {
    const fabric::LinkCondition& condition = faults.apply(action);
    const double share = condition.down ? 0 : condition.rate_share;
    std::vector<Change>& changes = changes_[fabric::index(action.link)];
    // Loss is not counted: what a link loses it has carried all the same.
    if (share != (changes.empty() ? 1 : changes.back().share))
      changes.push_back({action.time_ps, share});
  }
}

const std::vector<RateHistory::Change>& RateHistory::of(fabric::LinkId link) const {
  static const std::vector<Change> kNone;
  const auto found = changes_.find(fabric::index(link));
  return found == changes_.end() ? kNone : found->second;
}

}  // namespace mrc::sim
