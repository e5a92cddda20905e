#include "sim/fault_schedule.h"

#include <algorithm>

#include "fabric/input_error.h"

namespace mrc::sim {
namespace {

using fabric::Fault;
using fabric::FaultAction;
using fabric::InputError;
using fabric::kPicosecondsPerNs;

std::string in_ns(Time time) { return std::to_string(time / kPicosecondsPerNs) + "ns"; }

}  // namespace

FaultSchedule::FaultSchedule(const std::vector<std::string>& plan, const fabric::Topology& topology,
                             Time end, EventQueue& events)
    : topology_(topology), events_(events), end_(end) {
  for (const std::string& text : plan)
    plan_.push_back(fabric::parse_fault(text, topology));
  actions_ = fabric::timeline(plan_, end);
  for (std::uint32_t i = 0; i < actions_.size(); ++i)
    events_.push(Event(actions_[i].time_ps, EventKind::kFault, i));
}

void FaultSchedule::add(std::string_view what, Time now) {
  if (what.find('@') != std::string_view::npos)
    throw InputError("a fault that is added to a run begins at once; leave out the @");
  const Time at = next_moment(now);
  const std::size_t lasts = std::min(what.find(" for "), what.size());
  const std::string text = std::string(what.substr(0, lasts)) + " @" + in_ns(at);
  plan_.push_back(fabric::parse_fault(text + std::string(what.substr(lasts)), topology_));
  last_moment_ = at;
  schedule(static_cast<std::uint32_t>(plan_.size() - 1), now);
}

void FaultSchedule::end(std::uint32_t fault, Time now) {
  if (fault >= plan_.size()) throw InputError("there is no such fault");
  const Fault& old = plan_[fault];
  const Time at = next_moment(now);
  const bool over = old.duration_ps != fabric::kForever && old.start_ps + old.duration_ps <= at;
  if (over || old.start_ps >= at) throw InputError("fault '" + old.text + "' does not last");
  const std::string begins = old.text.substr(0, old.text.rfind(" for "));
  const Time lasted_ps = at - old.start_ps;
  const bool whole = lasted_ps % kPicosecondsPerNs == 0;
  plan_[fault] = fabric::parse_fault(
      begins + " for " + (whole ? in_ns(lasted_ps) : std::to_string(lasted_ps) + "ps"), topology_);
  last_moment_ = at;
  for (FaultAction& action : actions_)
    if (action.fault == fault && action.time_ps > now) action.link = fabric::kNoLink;
  schedule(fault, now);
}

// Later than every other, so that their order is that of a plan.
Time FaultSchedule::next_moment(Time now) {
  return (std::max(now, last_moment_) / kPicosecondsPerNs + 1) * kPicosecondsPerNs;
}

// What is still to come of it.
void FaultSchedule::schedule(std::uint32_t fault, Time after) {
  for (FaultAction action : fabric::timeline({plan_[fault]}, end_)) {
    if (action.time_ps <= after) continue;
    action.fault = fault;
    events_.push(
        Event(action.time_ps, EventKind::kFault, static_cast<std::uint32_t>(actions_.size())));
    actions_.push_back(action);
  }
}

}  // namespace mrc::sim
