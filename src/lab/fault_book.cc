#include "lab/fault_book.h"

#include <algorithm>
#include <utility>

#include "base/one_line.h"
#include "fabric/input_error.h"

namespace mrc::lab {
namespace {

using fabric::FaultAction;
using fabric::Picoseconds;

constexpr Picoseconds kUnrollPs = 100'000'000'000;  // of a flap, at a time
// Changes of links that a flap may ask for in such a stretch. The thread that forwards executes
// them; far more would leave it no time for anything else.
constexpr Picoseconds kMaxChanges = 20'000;
constexpr Picoseconds kMaxChangesPerSecond = kMaxChanges * (1'000'000'000'000 / kUnrollPs);

Picoseconds end_of(const fabric::Fault& fault) {
  return fault.duration_ps > fabric::kForever - fault.start_ps ? fabric::kForever
                                                               : fault.start_ps + fault.duration_ps;
}

void check_pace(const fabric::Fault& fault) {
  if (fault.kind != fabric::FaultKind::kFlap) return;
  const Picoseconds period = fault.flap_down_ps + fault.flap_up_ps;
  const Picoseconds times = std::min(kUnrollPs, fault.duration_ps) / period;
  const auto changes = static_cast<Picoseconds>(2 * fault.links.size());
  if (changes == 0 || times <= kMaxChanges / changes) return;
  throw fabric::InputError(one_line("fault '" + fault.text +
                                    "': it changes links too often for a lab, which has time for " +
                                    std::to_string(kMaxChangesPerSecond) +
                                    " changes a second; flap fewer links, or more slowly"));
}

}  // namespace

void FaultBook::add(fabric::Fault fault, Picoseconds now) {
  check_pace(fault);
  fault.start_ps += now;
  Known known{.fault = std::move(fault), .active = {}, .pending = 0, .unrolled_ps = 0};
  known.unrolled_ps = known.fault.start_ps;
  const std::uint32_t number = next_number_++;
  unroll(number, known);
  faults_.emplace(number, std::move(known));
}

void FaultBook::unroll(std::uint32_t number, Known& known) {
  fabric::Fault part = known.fault;
  if (part.kind == fabric::FaultKind::kFlap) {
    const Picoseconds period = part.flap_down_ps + part.flap_up_ps;
    const Picoseconds length = (kUnrollPs / period + 1) * period;
    part.start_ps = known.unrolled_ps;
    part.duration_ps = std::min(length, end_of(known.fault) - part.start_ps);
  }
  for (FaultAction action : fabric::timeline({part}, fabric::kForever)) {
    action.fault = number;
    actions_.emplace(action.time_ps, action);
    ++known.pending;
  }
  known.unrolled_ps = end_of(part);
}

Picoseconds FaultBook::next_time() const {
  return actions_.empty() ? fabric::kForever : actions_.begin()->first;
}

bool FaultBook::next(Picoseconds now, FaultAction& action) {
  if (next_time() > now) return false;
  action = actions_.begin()->second;
  actions_.erase(actions_.begin());
  Known& known = faults_.at(action.fault);
  --known.pending;
  if (action.begins) {
    known.active.insert(action.link);
  } else {
    known.active.erase(action.link);
  }
  if (known.pending == 0 && known.unrolled_ps < end_of(known.fault)) unroll(action.fault, known);
  forget_if_over(action.fault);
  return true;
}

void FaultBook::forget_if_over(std::uint32_t number) {
  const auto found = faults_.find(number);
  if (found == faults_.end()) return;
  if (found->second.pending == 0 && found->second.active.empty()) faults_.erase(found);
}

unsigned FaultBook::heal(std::span<const fabric::LinkId> links, Picoseconds now,
                         std::vector<FaultAction>& actions) {
  const std::set<fabric::LinkId> healed(links.begin(), links.end());
  for (auto at = actions_.begin(); at != actions_.end();) {
    if (healed.contains(at->second.link)) {
      --faults_.at(at->second.fault).pending;
      at = actions_.erase(at);
    } else {
      ++at;
    }
  }
  unsigned count = 0;
  for (auto at = faults_.begin(); at != faults_.end();) {
    Known& known = at->second;
    const std::size_t before = known.fault.links.size();
    std::erase_if(known.fault.links, [&](fabric::LinkId link) { return healed.contains(link); });
    if (known.fault.links.size() != before) ++count;
    for (auto link = known.active.begin(); link != known.active.end();) {
      if (!healed.contains(*link)) {
        ++link;
        continue;
      }
      FaultAction action = fabric::begin_of(known.fault, at->first);
      action.begins = false;
      action.link = *link;
      action.time_ps = now;
      actions.push_back(action);
      link = known.active.erase(link);
    }
    const bool over = known.pending == 0 && known.active.empty();
    at = over || known.fault.links.empty() ? faults_.erase(at) : std::next(at);
  }
  return count;
}

std::vector<FaultBook::Entry> FaultBook::entries() const {
  std::vector<Entry> list;
  for (const auto& [number, known] : faults_)
    list.push_back({known.fault.text, known.fault.start_ps, !known.active.empty()});
  return list;
}

}  // namespace mrc::lab
