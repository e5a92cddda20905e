#include "fabric/fault_plan.h"

#include <algorithm>

#include "base/one_line.h"
#include "fabric/input_error.h"

namespace mrc::fabric {
namespace {

// More changes than anybody wants to see; a flap of nanoseconds on many links gets here.
constexpr std::size_t kMaxActions = 8'000'000;

Picoseconds over_of(const Fault& fault) {
  return fault.duration_ps > kForever - fault.start_ps ? kForever
                                                       : fault.start_ps + fault.duration_ps;
}

// How often it begins and ends up to `end_ps`, on all its links; the last end may be one too many.
// Known before a single action is made: a flap of nanoseconds would have millions of them.
std::size_t count_actions(const Fault& fault, Picoseconds end_ps) {
  const Picoseconds last_ps = std::min(over_of(fault) - 1, end_ps);
  if (last_ps < fault.start_ps) return 0;
  std::size_t begins = 1;
  if (fault.kind == FaultKind::kFlap) {
    const Picoseconds period_ps = fault.flap_down_ps + fault.flap_up_ps;
    begins += static_cast<std::size_t>((last_ps - fault.start_ps) / period_ps);
  }
  return begins > kMaxActions ? begins : 2 * begins * fault.links.size();
}

void check_count(const std::vector<Fault>& plan, Picoseconds end_ps) {
  std::size_t sum = 0;
  for (const Fault& fault : plan) {
    sum += count_actions(fault, end_ps);
    if (sum > kMaxActions)
      throw InputError(
          one_line("fault '" + fault.text + "': it changes links too often to be executed"));
  }
}

// Collects the actions of one fault on all its links, up to the end.
class Actions {
 public:
  Actions(std::vector<FaultAction>& out, Picoseconds end_ps) : out_(out), end_ps_(end_ps) {}

  void add(const Fault& fault, FaultAction action) {
    if (action.time_ps > end_ps_) return;
    for (const LinkId link : fault.links) {
      action.link = link;
      out_.push_back(action);
    }
  }

 private:
  std::vector<FaultAction>& out_;
  Picoseconds end_ps_;
};

}  // namespace

const char* fault_kind_name(FaultKind kind) {
  switch (kind) {
    case FaultKind::kDown:
      return "down";
    case FaultKind::kRate:
      return "rate";
    case FaultKind::kLoss:
      return "loss";
    case FaultKind::kCorrupt:
      return "corrupt";
    case FaultKind::kFlap:
      return "flap";
    case FaultKind::kBlackHole:
      return "blackhole";
  }
  return "?";
}

FaultAction begin_of(const Fault& fault, std::uint32_t position) {
  const FaultKind kind = fault.kind == FaultKind::kFlap ? FaultKind::kDown : fault.kind;
  return {.kind = kind, .value = fault.value, .fault = position};
}

std::vector<FaultAction> timeline(const std::vector<Fault>& plan, Picoseconds end_ps) {
  // Times in a plan are below 2e18 ps; so far ahead no sum of them overflows.
  end_ps = std::min(end_ps, kForever / 2);
  check_count(plan, end_ps);
  std::vector<FaultAction> actions;
  Actions add(actions, end_ps);
  for (std::uint32_t i = 0; i < plan.size(); ++i) {
    const Fault& fault = plan[i];
    const bool flaps = fault.kind == FaultKind::kFlap;
    FaultAction action = begin_of(fault, i);
    const Picoseconds over_ps = over_of(fault);
    Picoseconds begin_ps = fault.start_ps;
    // A flap begins again after each time up; everything else begins once.
    while (begin_ps < over_ps && begin_ps <= end_ps) {
      const Picoseconds healed_ps =
          flaps ? std::min(begin_ps + fault.flap_down_ps, over_ps) : over_ps;
      action.time_ps = begin_ps;
      action.begins = true;
      add.add(fault, action);
      action.time_ps = healed_ps;
      action.begins = false;
      if (healed_ps != kForever) add.add(fault, action);
      if (!flaps) break;
      begin_ps = healed_ps + fault.flap_up_ps;
    }
  }
  std::stable_sort(actions.begin(), actions.end(), [](const FaultAction& a, const FaultAction& b) {
    return a.time_ps < b.time_ps;
  });
  return actions;
}

}  // namespace mrc::fabric
