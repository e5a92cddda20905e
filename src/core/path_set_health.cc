// The state machine of a path: feedback and orders, going bad, probes, coming back.
#include <algorithm>
#include <limits>
#include <utility>

#include "base/planted_bug.h"
#include "core/path_set.h"

namespace mrc::core {

void PathSet::on_marked(EvIndex ev) {
  count(ev, &EvCounters::marked);
  skip(ev, 1);
}

void PathSet::on_trimmed(EvIndex ev) { on_marked(ev); }

void PathSet::on_late(EvIndex ev, std::uint32_t packets) {
  const unsigned skips = packets / std::max<unsigned>(good_count_, 1);
  if (skips > 0) skip(ev, skips);
}

void PathSet::skip(EvIndex ev, unsigned skips) {
  if (config_.oblivious) return;
  Row& marked = row(ev);
  skips = std::min(skips, kMaxSkips);
  if (marked.state == EvState::kGood) {
    marked.skips_left = 0;
    set_state(ev, EvState::kSkip);
  }
  if (marked.state != EvState::kSkip || skips <= marked.skips_left) return;
  marked.skips_left = static_cast<std::uint8_t>(skips) & kMaxSkips;
}

void PathSet::on_lost(EvIndex ev, TimeNs now) {
  last_now_ = now;
  Row& lost = row(ev);
  count(ev, &EvCounters::lost);
  ++lost.drops;
  note_silence();
  if (lost.state == EvState::kDenied) return;
  if (lost.state != EvState::kAssumedBad && !assume_bad(ev, now)) return;
  if (++lost.losses == std::numeric_limits<std::uint8_t>::max()) {
    lost.blamed = true;  // too many to take back one by one
    --lost.losses;
  }
}

void PathSet::on_always_skip(EvIndex ev, TimeNs now) {
  last_now_ = now;
  Row& skipped = row(ev);
  if (skipped.state == EvState::kDenied) return;
  if (skipped.state != EvState::kAssumedBad && !assume_bad(ev, now)) return;
  skipped.blamed = true;
  skipped.answered_once = false;
}

void PathSet::on_delivered(EvIndex ev) {
  note_life();
  confirm(ev);
}

void PathSet::on_asked_again() {
  if (asked_again_ < kMostQuestions && !MRC_BUG(kIgnoresRepeatedQuestions)) ++asked_again_;
}

void PathSet::on_probe_sent(EvIndex ev, TimeNs now) {
  last_now_ = now;
  Row& probed = row(ev);
  if (probed.state != EvState::kAssumedBad) return;
  if (probed.probe_open) {
    probed.answered_once = false;
    probed.blamed = true;
  }
  probed.probe_open = true;
  note_silence();
  next_probe_allowed_ = now + config_.probe_base_ns / 4;
  if (probed.probe_level < kMaxProbeLevel &&
      probe_period(probed.probe_level) < config_.probe_cap_ns) {
    ++probed.probe_level;
  }
  schedule(ev, MRC_BUG(kPathProbesOnlyOnce) ? kNever : now + probe_period(probed.probe_level));
}

void PathSet::on_probe_answered(EvIndex ev, bool marked, TimeNs now) {
  last_now_ = now;
  Row& answered = row(ev);
  const bool was_in_doubt = in_doubt();
  note_life();
  if (marked) on_marked(ev);
  if (answered.state != EvState::kAssumedBad) return confirm(ev);
  if (!answered.probe_open) return;
  answered.probe_open = false;
  // Where few paths are left, one that answers is better than those that are kept for want of any.
  const bool at_floor = good_count_ <= min_active_;
  if (!answered.answered_once && !was_in_doubt && !at_floor) {
    answered.answered_once = true;
    return schedule(ev, std::min(answered.probe_due, now + probe_period(0)));
  }
  revive(ev, marked ? EvState::kSkip : EvState::kGood);
  confirm(ev);
  report_planes();
}

void PathSet::on_spurious_loss(EvIndex ev, TimeNs now) {
  last_now_ = now;
  Row& lost = row(ev);
  if (lost.state != EvState::kAssumedBad || lost.losses == 0) return;
  if (--lost.losses != 0 || lost.blamed) return;
  revive(ev, EvState::kGood);
  report_planes();
}

void PathSet::set_denied(EvIndex ev, bool denied, TimeNs now) {
  last_now_ = now;
  const EvState before = row(ev).state;
  if (denied == (before == EvState::kDenied)) return;
  if (!denied) {
    join(ev);
    set_state(ev, EvState::kGood);
    report_state(ev, EvState::kGood);
  } else {
    if (before == EvState::kAssumedBad) {
      forget_bad(ev);
    } else {
      leave(ev);
    }
    set_state(ev, EvState::kDenied);
    report_state(ev, EvState::kDenied);
    keep_one_in_use();
  }
  report_planes();
}

void PathSet::set_usable_ports(PortMask ports) {
  const PortMask before = usable_ports_;
  usable_ports_ = MRC_BUG(kPathKeepsUsingDeadPlane) ? before | ports : ports;
  usable_ports_ = usable_ports_ & profile_->ports();
  for (Plane& plane : planes_) {
    if (usable_ports_.contains(plane.port) && !before.contains(plane.port)) restart_probes(plane);
  }
  keep_one_in_use();
  report_planes();
}

// False when the EV stays in use because of the floor.
bool PathSet::assume_bad(EvIndex ev, TimeNs now) {
  const bool at_floor = good_count_ <= min_active_ || is_last_in_use(ev);
  const std::uint16_t oldest = plane_of(ev).oldest_bad;
  if (at_floor && (oldest == kNowhere || is_better_known(ev, rows_[oldest]))) {
    set_state(ev, EvState::kGood);
    observer_->on_ev_floor(ev);
    return false;
  }
  if (at_floor) {
    swap_positions(row(ev).position, row(EvIndex{oldest}).position);
  } else {
    leave(ev);
  }
  watch_bad(ev, now);
  if (at_floor) {
    forget_bad(EvIndex{oldest});
    set_state(EvIndex{oldest}, EvState::kGood);
    skip(EvIndex{oldest}, kMaxSkips);  // nothing speaks for it: better paths get most packets
    report_state(EvIndex{oldest}, EvState::kGood);
    observer_->on_ev_floor(EvIndex{oldest});
  }
  report_planes();
  return true;
}

// Of all EVs `ev` was the last to show life, and the one that would take its place has left a probe
// unanswered. A lost answer looks like a lost packet, so with few paths left the loss says more
// about the peer's than about this one. In doubt nothing is known.
bool PathSet::is_better_known(EvIndex ev, const Row& other) const {
  return confirmed_ == ev && (other.blamed || other.probe_open) && !in_doubt();
}

// Puts an EV that left on the list of its plane and on the probe schedule.
void PathSet::watch_bad(EvIndex ev, TimeNs now) {
  set_state(ev, EvState::kAssumedBad);
  Plane& plane = plane_of(ev);
  Row& bad = row(ev);
  bad.losses = 0;
  bad.probe_level = 0;
  bad.probe_open = bad.answered_once = bad.blamed = false;
  bad.newer = kNowhere;
  bad.older = plane.newest_bad;
  (bad.older == kNowhere ? plane.oldest_bad : rows_[bad.older].newer) = to_index(ev);
  plane.newest_bad = to_index(ev);
  ++bad_count_;
  ports_with_bad_ = ports_with_bad_.with(plane.port);
  heap_put(plane, plane.bad_count++, to_index(ev));
  schedule(ev, now + probe_period(0));
  report_state(ev, EvState::kAssumedBad);
}

// Takes a bad EV off both again.
void PathSet::forget_bad(EvIndex ev) {
  Plane& plane = plane_of(ev);
  Row& bad = row(ev);
  (bad.older == kNowhere ? plane.oldest_bad : rows_[bad.older].newer) = bad.newer;
  (bad.newer == kNowhere ? plane.newest_bad : rows_[bad.newer].older) = bad.older;
  --bad_count_;
  --plane.bad_count;
  if (plane.bad_count == 0) ports_with_bad_ = ports_with_bad_.without(plane.port);
  const unsigned gap = bad.heap_index;
  if (gap == plane.bad_count) return;
  heap_put(plane, gap, heap_[plane.begin + plane.bad_count]);
  heap_settle(plane, gap);
}

void PathSet::revive(EvIndex ev, EvState state) {
  forget_bad(ev);
  join(ev);
  set_state(ev, state);
  report_state(ev, EvState::kGood);
}

bool PathSet::is_last_in_use(EvIndex ev) {
  const Plane& plane = plane_of(ev);
  return planes_in_use() == PortMask::of(plane.port) && plane.usable_end - plane.begin == 1;
}

// Traffic must flow: if the usable ports have only bad EVs, the first of them is tried again.
void PathSet::keep_one_in_use() {
  const PortMask candidates = usable_ports_ & ports_with_bad_;
  if (!planes_in_use().empty() || candidates.empty()) return;
  const EvIndex ev{least_loaded(candidates).oldest_bad};
  revive(ev, EvState::kGood);
  observer_->on_ev_floor(ev);
}

// A packet on this EV reached the peer and the answer reached us.
void PathSet::confirm(EvIndex ev) {
  const EvState state = row(ev).state;
  if (state != EvState::kGood && state != EvState::kSkip) return;
  Plane& plane = plane_of(ev);
  plane.confirmed = confirmed_ = ev;
  plane.control_turn = 0;
  asked_again_ = 0;
}

// Something came back. Unless it was about an EV in use, see confirm(), that says nothing of the
// EVs our answers take: a bad one may answer every probe while they all are dead.
void PathSet::note_life() {
  silent_sends_ = 0;
  if (MRC_BUG(kAnyAnswerEndsDoubt)) asked_again_ = 0;
}

void PathSet::note_silence() {
  if (silent_sends_ < kDoubtAfter) ++silent_sends_;
}

void PathSet::report_state(EvIndex ev, EvState state) {
  observer_->on_ev_state(ev, state, std::exchange(row(ev).drops, 0));
}

void PathSet::report_planes() {
  const PortMask in_use = planes_in_use();
  if (in_use == reported_in_use_) return;
  const PortMask before = std::exchange(reported_in_use_, in_use);
  for (Plane& plane : planes_) {
    const bool usable = in_use.contains(plane.port);
    if (usable == before.contains(plane.port)) continue;
    // What the plane missed while it was away is not its debt.
    if (usable) plane.load = max_load_;
    observer_->on_plane_usable(plane.port, usable);
  }
}

EvIndex PathSet::due_probe(TimeNs now, PortMask free_ports) const {
  if (now < next_probe_allowed_) return kNoEv;
  const PortMask candidates = free_ports & usable_ports_ & ports_with_bad_;
  if (candidates.empty()) return kNoEv;
  const Plane* best = nullptr;
  for (const Plane& plane : planes_) {
    if (!candidates.contains(plane.port)) continue;
    if (best == nullptr || first_due(plane) < first_due(*best)) best = &plane;
  }
  return first_due(*best) <= now ? EvIndex{heap_[best->begin]} : kNoEv;
}

TimeNs PathSet::next_probe_time() const {
  const PortMask candidates = usable_ports_ & ports_with_bad_;
  if (candidates.empty()) return kNever;
  TimeNs earliest = kNever;
  for (const Plane& plane : planes_) {
    if (candidates.contains(plane.port)) earliest = std::min(earliest, first_due(plane));
  }
  return std::max(earliest, next_probe_allowed_);
}

DurationNs PathSet::probe_period(unsigned level) const {
  const DurationNs base = std::max<DurationNs>(config_.probe_base_ns, 1);
  return base > (config_.probe_cap_ns >> level) ? config_.probe_cap_ns : base << level;
}

void PathSet::schedule(EvIndex ev, TimeNs due) {
  row(ev).probe_due = due;
  heap_settle(plane_of(ev), row(ev).heap_index);
}

void PathSet::heap_put(Plane& plane, unsigned index, std::uint16_t ev) {
  heap_[plane.begin + index] = ev;
  rows_[ev].heap_index = static_cast<std::uint16_t>(index);
}

// Moves the entry at `index` up or down until the order of due times holds again.
void PathSet::heap_settle(Plane& plane, unsigned index) {
  const auto at = [this, &plane](unsigned i) { return heap_[plane.begin + i]; };
  const auto due = [this, &at](unsigned i) { return rows_[at(i)].probe_due; };
  const std::uint16_t ev = at(index);
  const TimeNs key = rows_[ev].probe_due;
  while (index > 0 && key < due((index - 1) / 2)) {
    heap_put(plane, index, at((index - 1) / 2));
    index = (index - 1) / 2;
  }
  for (unsigned child = 2 * index + 1; child < plane.bad_count; child = 2 * index + 1) {
    if (child + 1U < plane.bad_count && due(child + 1) < due(child)) ++child;
    if (due(child) >= key) break;
    heap_put(plane, index, at(child));
    index = child;
  }
  heap_put(plane, index, ev);
}

// Equal due times keep the heap in order.
void PathSet::restart_probes(Plane& plane) {
  for (unsigned i = 0; i < plane.bad_count; ++i) {
    Row& bad = rows_[heap_[plane.begin + i]];
    bad.probe_due = last_now_;
    bad.probe_level = 0;
    bad.probe_open = bad.answered_once = false;
  }
}

}  // namespace mrc::core
