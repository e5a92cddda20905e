#include "fabric/fault_plan.h"

#include <algorithm>

#include "fabric/input_error.h"

namespace mrc::fabric {
namespace {

// More changes than anybody wants to see; a flap of nanoseconds on many links gets here.
constexpr std::size_t kMaxActions = 8'000'000;

// Collects the actions of one fault on all its links, up to the end.
class Actions {
 public:
  Actions(std::vector<FaultAction>& out, Picoseconds end_ps) : out_(out), end_ps_(end_ps) {}

  void add(const Fault& fault, std::uint32_t position, Picoseconds time_ps, FaultAction::Kind kind,
           double value = 0) {
    if (time_ps > end_ps_) return;
    if (out_.size() + fault.links.size() > kMaxActions)
      throw InputError("fault '" + fault.text + "': it changes links too often to be executed");
    for (const LinkId link : fault.links)
      out_.push_back({time_ps, link, kind, value, position});
  }

 private:
  std::vector<FaultAction>& out_;
  Picoseconds end_ps_;
};

struct Change {
  FaultAction::Kind begin;
  FaultAction::Kind end;
  double healthy;  // value of the end
};

Change change_of(FaultKind kind) {
  using Kind = FaultAction::Kind;
  switch (kind) {
    case FaultKind::kDown:
    case FaultKind::kFlap:
      return {Kind::kDown, Kind::kUp, 0};
    case FaultKind::kRate:
      return {Kind::kRate, Kind::kRate, 1};
    case FaultKind::kLoss:
      return {Kind::kLoss, Kind::kLoss, 0};
    case FaultKind::kCorrupt:
      return {Kind::kCorrupt, Kind::kCorrupt, 0};
    case FaultKind::kBlackHole:
      return {Kind::kBlackHoleOn, Kind::kBlackHoleOff, 0};
  }
  return {Kind::kDown, Kind::kUp, 0};
}

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

std::vector<FaultAction> timeline(const std::vector<Fault>& plan, Picoseconds end_ps) {
  // Times in a plan are below 2e18 ps; so far ahead no sum of them overflows.
  end_ps = std::min(end_ps, kForever / 2);
  std::vector<FaultAction> actions;
  Actions add(actions, end_ps);
  for (std::uint32_t i = 0; i < plan.size(); ++i) {
    const Fault& fault = plan[i];
    const Change change = change_of(fault.kind);
    const Picoseconds over_ps = fault.duration_ps > kForever - fault.start_ps
                                    ? kForever
                                    : fault.start_ps + fault.duration_ps;
    Picoseconds begin_ps = fault.start_ps;
    // A flap begins again after each time up; everything else begins once.
    while (begin_ps < over_ps && begin_ps <= end_ps) {
      const bool flaps = fault.kind == FaultKind::kFlap;
      const Picoseconds healed_ps =
          flaps ? std::min(begin_ps + fault.flap_down_ps, over_ps) : over_ps;
      add.add(fault, i, begin_ps, change.begin, fault.value);
      if (healed_ps != kForever) add.add(fault, i, healed_ps, change.end, change.healthy);
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
