#include "fabric/link_condition.h"

#include <fmt/core.h>

#include <algorithm>

#include "base/assert.h"

namespace mrc::fabric {
namespace {

void add(LinkCondition& condition, FaultKind kind, double value) {
  switch (kind) {
    case FaultKind::kDown:
    case FaultKind::kFlap:
      condition.down = true;
      return;
    case FaultKind::kRate:
      condition.rate_share = value;
      return;
    case FaultKind::kLoss:
      condition.loss = value;
      return;
    case FaultKind::kCorrupt:
      condition.corrupt = value;
      return;
    case FaultKind::kBlackHole:
      condition.black_hole = true;
      return;
  }
}

}  // namespace

std::string in_words(const LinkCondition& condition) {
  std::string text;
  const auto add = [&text](const std::string& part) { text += (text.empty() ? "" : ", ") + part; };
  if (condition.down) add("down");
  if (condition.rate_share != 1) add(fmt::format("rate {:g} %", condition.rate_share * 100));
  if (condition.loss > 0) add(fmt::format("loss {:g} %", condition.loss * 100));
  if (condition.corrupt > 0) add(fmt::format("corrupt {:g} %", condition.corrupt * 100));
  if (condition.black_hole) add("black hole");
  return text;
}

void LinkFaults::apply(const FaultAction& action) {
  if (action.begins) {
    held_.push_back({action.value, action.fault, action.kind});
  } else {
    const auto is_it = [&action](const Held& held) {
      return held.fault == action.fault && held.kind == action.kind;
    };
    const auto found = std::find_if(held_.begin(), held_.end(), is_it);
    MRC_ASSERT(found != held_.end());  // only what began can end
    held_.erase(found);
  }
  // Later ones replace the values of earlier ones.
  condition_ = {};
  for (const Held& held : held_)
    add(condition_, held.kind, held.value);
}

void LinkFaults::lose_flight(Picoseconds last_arrival_ps) {
  lost_until_ps_ = std::max(lost_until_ps_, last_arrival_ps);
}

const LinkCondition& FabricFaults::apply(const FaultAction& action) {
  LinkFaults& link = links_[index(action.link)];
  const bool was_down = link.condition().down;
  link.apply(action);
  if (link.condition().down && !was_down) ++links_down_;
  if (!link.condition().down && was_down) --links_down_;
  return link.condition();
}

const LinkFaults& FabricFaults::of(LinkId link) const {
  const auto found = links_.find(index(link));
  if (found != links_.end()) return found->second;
  static const LinkFaults kNone;
  return kNone;
}

void FabricFaults::lose_flight(LinkId link, Picoseconds last_arrival_ps) {
  links_.at(index(link)).lose_flight(last_arrival_ps);
}

}  // namespace mrc::fabric
