#include "core/path_set.h"

#include <algorithm>

#include "base/assert.h"
#include "base/planted_bug.h"

namespace mrc::core {

namespace {

std::uint16_t least_active(const PathSetConfig& config, unsigned size) {
  const unsigned wanted = config.min_active != 0 ? config.min_active : size / 4;
  return static_cast<std::uint16_t>(std::clamp(wanted, 1U, size));
}

// What may be lost or late on one plane goes by another that has a good EV. By load alone the copy
// and the question about it took turns between two planes, and the copies all met the one whose
// queue was 4 ms long: 50 of one packet before the first arrived.
PortMask away_from(EvIndex avoid, PortMask candidates, const EvProfile& profile,
                   const Rotation& rotation) {
  if (avoid == kNoEv || MRC_BUG(kResendsOnTheSamePlane)) return candidates;
  PortMask others;
  for (const PortId port : candidates.without(profile.port(avoid))) {
    if (rotation.has_good(port, avoid)) others = others.with(port);
  }
  return others.empty() ? candidates : others;
}

}  // namespace

PathSet::PathSet(const EvProfile& profile, const PathSetConfig& config, std::uint64_t seed,
                 PathObserver& observer)
    : profile_(&profile),
      observer_(&observer),
      prng_(seed),
      rotation_(profile, config.active_evs, config.turns, prng_),
      health_(profile),
      losses_(profile.size()),
      probes_(profile, config.probe_base_ns, config.probe_cap_ns),
      reverse_(profile, rotation_, seed),
      counters_(config.ev_counters ? profile.size() : 0),
      usable_ports_(profile.ports()),
      reported_in_use_(planes_in_use()),
      min_active_(least_active(config, profile.size())),
      oblivious_(config.oblivious) {
  MRC_ASSERT(profile.size() > 0 && profile.size() <= kMaxEvsPerQp);
}

void PathSet::take_over(const PathSet& before, TimeNs now) {
  for (unsigned i = 0; i < size(); ++i) {
    const auto ev = static_cast<EvIndex>(i);
    if (!before.profile_->entry(ev).same_path(profile_->entry(ev))) continue;
    if (counts_evs() && before.counts_evs()) counters_[i] = before.counters_[i];
    const bool was_bad = before.health_.standing(ev) == PathStanding::kBad;
    if (!was_bad || !rotation_.in_use(ev) || at_floor() || is_last_in_use(ev)) continue;
    rotation_.leave(ev, kNoEv, prng_);
    health_.go_bad(ev);
    probes_.add(ev, now);
  }
  last_now_ = before.last_now_;
  reported_in_use_ = before.reported_in_use_;
}

// --- Choosing ---

EvIndex PathSet::choose(PortMask free_ports, EvIndex avoid, unsigned quantum) {
  stay_left_ = static_cast<std::uint16_t>(std::min<unsigned>(stay_left_, quantum - 1));
  if (avoid == kNoEv && may_stay(free_ports) > 0) {
    stay(1);
    return stay_ev_;
  }
  if (MRC_BUG(kPathIgnoresAvoid)) avoid = kNoEv;
  const PortMask candidates = free_ports & planes_in_use();
  if (prefers_confirmed(candidates, avoid)) return use(reverse_.confirmed());
  PortMask left = candidates;
  while (!left.empty()) {
    const PortId port = rotation_.least_loaded(away_from(avoid, left, *profile_, rotation_));
    const EvIndex ev = rotation_.next(port, avoid, prng_);
    left = left.without(port);
    if (ev == kNoEv || passes_over(ev, left, avoid)) continue;
    stay_ev_ = use(ev);
    stay_left_ = static_cast<std::uint16_t>(avoid == kNoEv ? quantum - 1 : 0);
    return stay_ev_;
  }
  if (avoid == kNoEv || !candidates.contains(profile_->port(avoid))) return kNoEv;
  return MRC_BUG(kPathSkipNeverRevives) ? kNoEv : use(rotation_.beside(avoid));
}

void PathSet::stay(unsigned packets) {
  stay_left_ = static_cast<std::uint16_t>(stay_left_ - packets);
  count(stay_ev_, &EvCounters::sent, packets);
  rotation_.use_again(stay_ev_, packets);
}

// None unless the EV of the last packet is as good as it was then.
unsigned PathSet::may_stay(PortMask free_ports) const {
  if (stay_left_ == 0) return 0;
  const bool good = (free_ports & planes_in_use()).contains(profile_->port(stay_ev_)) &&
                    rotation_.is_good(stay_ev_) && rotation_.is_active(stay_ev_);
  return good ? stay_left_ : 0;
}

// At the floor paths are in use that nobody has heard of for long, and in a rotation of two a
// packet sent again could meet such a one each time, with probes taking the turns between.
bool PathSet::prefers_confirmed(PortMask candidates, EvIndex avoid) const {
  const EvIndex confirmed = reverse_.confirmed();
  if (avoid == kNoEv || confirmed == kNoEv || confirmed == avoid) return false;
  return at_floor() && candidates.contains(profile_->port(confirmed)) &&
         rotation_.is_active(confirmed);
}

// A plane kept in use only because of the floor takes its turn as its EVs do: it is passed over for
// one that has a good EV, as often as `ev`, whose turn it is, still has to be.
bool PathSet::passes_over(EvIndex ev, PortMask others, EvIndex avoid) {
  if (!at_floor() || rotation_.is_good(ev)) return false;
  bool is_better = false;
  for (const PortId port : others) {
    is_better = rotation_.has_good(port, avoid);
    if (is_better) break;
  }
  if (!is_better) return false;
  rotation_.pass_over(ev);
  rotation_.charge(profile_->port(ev));
  return true;
}

EvIndex PathSet::use(EvIndex ev) {
  rotation_.use(ev);
  count(ev, &EvCounters::sent);
  return ev;
}

EvIndex PathSet::choose_control(PortMask free_ports, PortId preferred) {
  return reverse_.choose(rotation_, health_, prng_, free_ports, usable_ports_, preferred);
}

EvIndex PathSet::sweep(PortMask free_ports) {
  return reverse_.sweep(health_, free_ports, usable_ports_);
}

// --- Feedback ---

void PathSet::on_marked(EvIndex ev) {
  count(ev, &EvCounters::marked);
  skip(ev, 1);
}

void PathSet::on_late(EvIndex ev, std::uint32_t packets) {
  const unsigned turns = packets / std::max<unsigned>(rotation_.in_use_count(), 1);
  if (turns > 0) skip(ev, turns);
}

void PathSet::skip(EvIndex ev, unsigned turns) {
  if (!oblivious_) rotation_.skip(ev, turns);
}

bool PathSet::on_lost(EvIndex ev, TimeNs now) {
  count(ev, &EvCounters::lost);
  health_.count_drop(ev);
  reverse_.note_silence();
  last_now_ = now;
  if (rotation_.in_use(ev) && losses_.on_loss(ev)) return false;
  speak_against(ev, PathSignal::kLost, now);
  return true;
}

void PathSet::on_always_skip(EvIndex ev, TimeNs now) {
  speak_against(ev, PathSignal::kAlwaysSkip, now);
}

// What makes an EV leave is also the first thing held against it.
void PathSet::speak_against(EvIndex ev, PathSignal signal, TimeNs now) {
  last_now_ = now;
  if (health_.on(signal, ev) != PathHealth::Outcome::kMustLeave) return;
  if (assume_bad(ev, now)) health_.on(signal, ev);
}

void PathSet::on_delivered(EvIndex ev) {
  reverse_.note_life();
  if (rotation_.in_use(ev)) losses_.on_arrival(ev);
  health_.end_trial(ev);
  confirm(ev);
}

void PathSet::on_spurious_loss(EvIndex ev, TimeNs now) {
  last_now_ = now;
  if (health_.on(PathSignal::kSpuriousLoss, ev) != PathHealth::Outcome::kMayReturn) return;
  come_back(ev);
  report_planes();
}

// --- Probes ---

void PathSet::on_probe_sent(EvIndex ev, TimeNs now) {
  last_now_ = now;
  if (health_.standing(ev) != PathStanding::kBad) return;
  health_.on(PathSignal::kProbeSent, ev);
  reverse_.note_silence();
  probes_.on_sent(ev, now);
}

void PathSet::on_probe_answered(EvIndex ev, bool marked, TimeNs now,
                                std::optional<std::uint16_t> stamp) {
  last_now_ = now;
  // Where few paths are left, one that answers is better than those that are kept for want of any.
  const bool one_is_enough = reverse_.in_doubt() || at_floor();
  reverse_.note_life();
  if (marked) on_marked(ev);
  if (health_.standing(ev) != PathStanding::kBad) return confirm(ev);
  const PathHealth::Outcome outcome = health_.on(PathSignal::kProbeAnswered, ev, one_is_enough);
  const bool awaited =
      outcome == PathHealth::Outcome::kAskAgain || outcome == PathHealth::Outcome::kMayReturn;
  const DurationNs took = awaited && stamp ? probes_.took(ev, now, *stamp) : 0;
  if (took > 0) probes_.note_round_trip(took);
  switch (outcome) {
    case PathHealth::Outcome::kAskAgain:
      return probes_.ask_again_soon(ev, now);
    case PathHealth::Outcome::kMayReturn:
      come_back(ev);
      health_.begin_trial(ev);
      if (marked) rotation_.skip_again(ev);
      confirm(ev);
      return report_planes();
    default:
      return;
  }
}

EvIndex PathSet::due_probe(TimeNs now, PortMask free_ports) const {
  return probes_.due(now, free_ports & usable_ports_ & health_.bad_ports());
}

TimeNs PathSet::next_probe_time() const {
  return probes_.next_time(usable_ports_ & health_.bad_ports());
}

// --- Orders and ports ---

void PathSet::set_denied(EvIndex ev, bool denied, TimeNs now) {
  last_now_ = now;
  const PathStanding before = health_.standing(ev);
  switch (health_.on(denied ? PathSignal::kDeny : PathSignal::kAllow, ev)) {
    case PathHealth::Outcome::kIsAllowed:
      rotation_.join(ev, prng_);
      report_state(ev, EvState::kGood);
      return report_planes();
    case PathHealth::Outcome::kIsDenied:
      if (before == PathStanding::kBad) {
        probes_.remove(ev);
      } else {
        rotation_.leave(ev, reverse_.confirmed(), prng_);
      }
      report_state(ev, EvState::kDenied);
      keep_one_in_use();
      return report_planes();
    default:
      return;
  }
}

void PathSet::set_usable_ports(PortMask ports) {
  const PortMask before = usable_ports_;
  usable_ports_ = MRC_BUG(kPathKeepsUsingDeadPlane) ? before | ports : ports;
  usable_ports_ = usable_ports_ & profile_->ports();
  for (const PortId port : usable_ports_ - before) {
    probes_.restart(port, last_now_);
    health_.forget_probes(port);
  }
  keep_one_in_use();
  report_planes();
}

// --- Leaving and coming back ---

// False when the EV stays in use because of the floor.
bool PathSet::assume_bad(EvIndex ev, TimeNs now) {
  const bool needed = at_floor() || is_last_in_use(ev);
  const EvIndex substitute = needed ? health_.longest_bad(profile_->port(ev)) : kNoEv;
  if (needed && (substitute == kNoEv || is_better_known(ev, substitute))) {
    keep_for_want_of_others(ev);
    if (!MRC_BUG(kFloorPassesBackups)) rotation_.step_back(ev, reverse_.confirmed(), prng_);
    observer_->on_ev_floor(ev);
    return false;
  }
  if (needed) {
    rotation_.replace(ev, substitute, reverse_.confirmed(), prng_);
  } else {
    rotation_.leave(ev, reverse_.confirmed(), prng_);
  }
  const bool failed_trial =
      !reverse_.in_doubt() && health_.on_trial(ev) && !MRC_BUG(kTrialsAreForgotten);
  health_.go_bad(ev);
  losses_.forget(ev);
  probes_.add(ev, now, failed_trial);
  report_state(ev, EvState::kAssumedBad);
  if (needed) {
    health_.come_back(substitute);
    probes_.remove(substitute);
    skip(substitute, Rotation::kMaxSkips);  // nothing speaks for it: better paths get most packets
    report_state(substitute, EvState::kGood);
    observer_->on_ev_floor(substitute);
  }
  report_planes();
  return true;
}

// Where another one is known to work, an EV that stays only because of the floor gets as few
// packets as a substitute does. With four planes the floor is one of them: 15 dead EVs beside the
// only one that worked had as many turns as that one, for ever.
void PathSet::keep_for_want_of_others(EvIndex ev) {
  const EvIndex known = reverse_.confirmed();
  const bool another = known != kNoEv && known != ev && rotation_.in_use(known);
  if (another && !MRC_BUG(kFloorKeepsFullTurns)) {
    skip(ev, Rotation::kMaxSkips);
  } else {
    rotation_.revive(ev);
  }
}

bool PathSet::is_last_in_use(EvIndex ev) const {
  return planes_in_use() == PortMask::of(profile_->port(ev)) &&
         rotation_.is_only_one_of_its_plane(ev);
}

// Of all EVs `ev` was the last to show life, and the one that would take its place has left a probe
// unanswered. A lost answer looks like a lost packet, so with few paths left the loss says more
// about the peer's than about this one. In doubt nothing is known.
bool PathSet::is_better_known(EvIndex ev, EvIndex other) const {
  return reverse_.confirmed() == ev && health_.is_doubtful(other) && !reverse_.in_doubt();
}

void PathSet::come_back(EvIndex ev) {
  health_.come_back(ev);
  probes_.remove(ev);
  rotation_.join(ev, prng_);
  report_state(ev, EvState::kGood);
}

// Traffic must flow: if the usable ports have only bad EVs, the first of them is tried again.
void PathSet::keep_one_in_use() {
  const PortMask candidates = usable_ports_ & health_.bad_ports();
  if (!planes_in_use().empty() || candidates.empty()) return;
  const EvIndex ev = health_.longest_bad(rotation_.least_loaded(candidates));
  come_back(ev);
  observer_->on_ev_floor(ev);
}

void PathSet::confirm(EvIndex ev) {
  if (health_.standing(ev) == PathStanding::kInUse) reverse_.confirm(ev);
}

// --- What is told ---

EvState PathSet::state(EvIndex ev) const {
  switch (health_.standing(ev)) {
    case PathStanding::kBad:
      return EvState::kAssumedBad;
    case PathStanding::kDenied:
      return EvState::kDenied;
    case PathStanding::kInUse:
      break;
  }
  return rotation_.is_skipped(ev) ? EvState::kSkip : EvState::kGood;
}

void PathSet::report_state(EvIndex ev, EvState state) {
  observer_->on_ev_state(ev, state, health_.take_drops(ev));
}

void PathSet::report_planes() {
  const PortMask in_use = planes_in_use();
  const PortMask changed = in_use ^ reported_in_use_;
  reported_in_use_ = in_use;
  for (const PortId port : changed) {
    if (in_use.contains(port)) rotation_.forgive(port);
    observer_->on_plane_usable(port, in_use.contains(port));
  }
}

std::size_t PathSet::memory_bytes() const {
  return sizeof(*this) + rotation_.memory_bytes() + health_.memory_bytes() +
         losses_.memory_bytes() + probes_.memory_bytes() + reverse_.memory_bytes() +
         counters_.memory_bytes();
}

}  // namespace mrc::core
