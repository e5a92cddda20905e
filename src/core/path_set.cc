#include "core/path_set.h"

#include <algorithm>
#include <bit>
#include <utility>

#include "base/assert.h"
#include "base/planted_bug.h"

namespace mrc::core {

namespace {

// An order lasts this many rotations of its plane; the first of them draws it, one step a packet.
constexpr unsigned kRotationsPerOrder = 16;
// A plane that could not send for a while makes up for at most this many packets.
constexpr std::uint64_t kMaxCatchUpPackets = 8;
// A plane gets this many control packets after its last sign of life; then others get a share.
constexpr unsigned kTrustedControlPackets = 8;

constexpr std::uint16_t to_index(EvIndex ev) { return static_cast<std::uint16_t>(ev); }

}  // namespace

PathSet::PathSet(const EvProfile& profile, const PathSetConfig& config, std::uint64_t seed,
                 PathObserver& observer)
    : profile_(&profile),
      config_(config),
      observer_(&observer),
      prng_(seed),
      rows_(profile.size()),
      counters_(profile.size()),
      order_(profile.size()),
      heap_(profile.size()),
      good_bits_((profile.size() + 63) / 64),
      usable_ports_(profile.ports()) {
  MRC_ASSERT(profile.size() > 0 && profile.size() <= kMaxEvsPerQp);
  const unsigned wanted = config.min_active != 0 ? config.min_active : profile.size() / 4;
  min_active_ = static_cast<std::uint16_t>(std::clamp(wanted, 1U, profile.size()));
  lay_out_planes();
  reported_in_use_ = planes_in_use();
  next_plane_ = prng_.below(static_cast<std::uint32_t>(planes_.size()));
  next_control_plane_ = next_plane_;
}

void PathSet::lay_out_planes() {
  const auto plane_count = static_cast<unsigned>(std::popcount(profile_->ports().bits()));
  planes_.reserve(plane_count);
  unsigned begin = 0;
  for (unsigned number = 1; number <= kMaxPorts; ++number) {
    const PortId port{static_cast<std::uint8_t>(number)};
    if (!profile_->ports().contains(port)) continue;
    plane_index_[number - 1] = static_cast<std::uint8_t>(planes_.size());
    Plane plane;
    plane.port = port;
    plane.begin = static_cast<std::uint16_t>(begin);
    fill_plane(plane, plane_count);
    begin = plane.end;
    planes_.push_back(plane);
  }
}

// Places the plane's EVs in a random order, the denied ones last.
void PathSet::fill_plane(Plane& plane, unsigned plane_count) {
  unsigned end = plane.begin;
  for (unsigned i = 0; i < size(); ++i) {
    if (profile_->port(EvIndex{static_cast<std::uint16_t>(i)}) != plane.port) continue;
    order_[end++] = static_cast<std::uint16_t>(i);
  }
  for (unsigned i = plane.begin; i < end; ++i) {
    std::swap(order_[i], order_[i + prng_.below(end - i)]);
  }
  const auto is_denied = [this](std::uint16_t ev) { return profile_->entry(EvIndex{ev}).denied; };
  unsigned usable_end = plane.begin;
  for (unsigned i = plane.begin; i < end; ++i) {
    if (!is_denied(order_[i])) std::swap(order_[i], order_[usable_end++]);
  }
  const unsigned share =
      config_.active_evs == 0 ? end - plane.begin : std::max(1U, config_.active_evs / plane_count);
  plane.share = static_cast<std::uint16_t>(std::min(share, end - plane.begin));
  plane.end = static_cast<std::uint16_t>(end);
  plane.usable_end = static_cast<std::uint16_t>(usable_end);
  plane.active_end = static_cast<std::uint16_t>(std::min(usable_end, plane.begin + share));
  plane.cursor = plane.control_cursor = plane.begin;
  for (unsigned i = plane.begin; i < end; ++i) {
    rows_[order_[i]].position = static_cast<std::uint16_t>(i);
    set_state(EvIndex{order_[i]}, i < usable_end ? EvState::kGood : EvState::kDenied);
  }
  good_count_ = static_cast<std::uint16_t>(good_count_ + usable_end - plane.begin);
  if (usable_end > plane.begin) ports_with_usable_ = ports_with_usable_.with(plane.port);
}

// --- Choosing
// ---------------------------------------------------------------------------------------

EvIndex PathSet::choose(PortMask free_ports, EvIndex avoid) {
  if (MRC_BUG(kPathIgnoresAvoid)) avoid = kNoEv;
  const PortMask candidates = free_ports & planes_in_use();
  PortMask left = candidates;
  while (!left.empty()) {
    Plane& plane = least_loaded(left);
    const std::uint16_t position = next_position(plane, avoid);
    if (position != kNowhere) return use(plane, position);
    left = left.without(plane.port);
  }
  if (avoid == kNoEv || !candidates.contains(profile_->port(avoid))) return kNoEv;
  return MRC_BUG(kPathSkipNeverRevives) ? kNoEv : choose_beside(avoid);
}

// The plane that has had the fewest packets, within the limit of what a plane may catch up.
PathSet::Plane& PathSet::least_loaded(PortMask candidates) {
  const std::uint64_t least = max_load_ - std::min(max_load_, kMaxCatchUpPackets);
  Plane* best = nullptr;
  for (std::size_t i = 0; i < planes_.size(); ++i) {
    std::size_t index = next_plane_ + i;
    if (index >= planes_.size()) index -= planes_.size();
    Plane& plane = planes_[index];
    if (!candidates.contains(plane.port)) continue;
    plane.load = std::max(plane.load, least);
    if (best == nullptr || plane.load < best->load) best = &plane;
  }
  MRC_ASSERT(best != nullptr);
  return *best;
}

// Where the next EV other than `avoid` stands in the rotation, kNowhere when `avoid` is all there
// is. Revives the first SKIP entry it passes (11.2.2). Everything between the cursor and the first
// GOOD entry is SKIP or `avoid`, so the first SKIP entry needs no search.
std::uint16_t PathSet::next_position(Plane& plane, EvIndex avoid) {
  if (plane.rotations == 0) {
    swap_positions(plane.cursor, plane.cursor + prng_.below(plane.active_end - plane.cursor));
  }
  const std::uint16_t first = plane.cursor;
  const unsigned except = avoid == kNoEv ? kNowhere : row(avoid).position;
  std::uint16_t good = find_good(first, plane.active_end, except);
  if (good == kNowhere) good = find_good(plane.begin, first, except);
  if (good == kNowhere) {
    if (MRC_BUG(kPathSkipNeverRevives)) return kNowhere;
    const std::uint16_t skipped = first == except ? after(plane, first) : first;
    return skipped == except ? kNowhere : skipped;
  }
  if (good == first) return good;
  const std::uint16_t passed = is_good(first) ? after(plane, first) : first;
  if (passed != good && !MRC_BUG(kPathSkipNeverRevives)) {
    set_state(EvIndex{order_[passed]}, EvState::kGood);
  }
  return good;
}

EvIndex PathSet::use(Plane& plane, std::uint16_t position) {
  const EvIndex ev{order_[position]};
  set_state(ev, EvState::kGood);
  ++counters_[to_index(ev)].sent;
  max_load_ = std::max(max_load_, ++plane.load);
  next_plane_ = static_cast<unsigned>(&plane - planes_.data()) + 1;
  if (next_plane_ == planes_.size()) next_plane_ = 0;

  const std::uint16_t next = after(plane, position);
  if (next <= plane.cursor) plane.rotations = (plane.rotations + 1) % kRotationsPerOrder;
  plane.cursor = next;
  return ev;
}

// The case where `avoid` is the only active EV: a backup takes its place; without one it is used.
EvIndex PathSet::choose_beside(EvIndex avoid) {
  Plane& plane = plane_of(avoid);
  if (plane.active_end < plane.usable_end) swap_positions(row(avoid).position, plane.active_end);
  return use(plane, plane.begin);
}

std::uint16_t PathSet::find_good(unsigned from, unsigned to, unsigned except) const {
  while (from < to) {
    const std::uint64_t bits = good_bits_[from / 64] >> (from % 64);
    if (bits == 0) {
      from = (from / 64 + 1) * 64;
      continue;
    }
    from += static_cast<unsigned>(std::countr_zero(bits));
    if (from >= to) break;
    if (from != except) return static_cast<std::uint16_t>(from);
    ++from;
  }
  return kNowhere;
}

std::uint16_t PathSet::after(const Plane& plane, std::uint16_t position) const {
  const unsigned next = position + 1U;
  return next >= plane.active_end ? plane.begin : static_cast<std::uint16_t>(next);
}

EvIndex PathSet::choose_control(PortMask free_ports, PortId preferred) {
  const PortMask ports = free_ports & profile_->ports();
  if (ports.empty()) return kNoEv;
  PortMask candidates = ports & planes_in_use();
  if (candidates.empty()) candidates = ports & usable_ports_ & ports_with_bad_;
  if (candidates.empty()) candidates = ports & ports_with_usable_;
  if (candidates.empty()) candidates = ports & ports_with_bad_;
  if (candidates.empty()) candidates = ports;

  const bool can_prefer = preferred != kNoPort && candidates.contains(preferred);
  Plane& plane = can_prefer ? plane_of(preferred) : next_control_plane(candidates);
  const unsigned turn = plane.control_turn++;
  // No sign of life for a while: this plane may be dead in our direction, so every second packet
  // tries the planes in turn.
  if (turn >= kTrustedControlPackets && turn % 2 != 0) {
    return control_ev(next_control_plane(candidates), turn / 2);
  }
  return control_ev(plane, turn);
}

PathSet::Plane& PathSet::next_control_plane(PortMask candidates) {
  do {
    if (++next_control_plane_ >= planes_.size()) next_control_plane_ = 0;
  } while (!candidates.contains(planes_[next_control_plane_].port));
  return planes_[next_control_plane_];
}

// Takes turns between the EV that last showed life and all others: answers are cumulative, so
// whichever of the two is dead without our knowledge costs every second packet at most.
EvIndex PathSet::control_ev(Plane& plane, unsigned turn) {
  if (plane.usable_end == plane.begin) {
    return EvIndex{plane.newest_bad != kNowhere ? plane.newest_bad : order_[plane.begin]};
  }
  if (plane.confirmed != kNoEv && turn % 2 == 0) return plane.confirmed;
  std::uint16_t from = plane.control_cursor;
  if (from >= plane.active_end) from = plane.begin;
  std::uint16_t position = find_good(from, plane.active_end, kNowhere);
  if (position == kNowhere) position = find_good(plane.begin, from, kNowhere);
  if (position == kNowhere) position = from;
  plane.control_cursor = after(plane, position);
  return EvIndex{order_[position]};
}

// --- Feedback
// ---------------------------------------------------------------------------------------

void PathSet::on_marked(EvIndex ev) { mark(ev); }

void PathSet::on_trimmed(EvIndex ev) { mark(ev); }

void PathSet::mark(EvIndex ev) {
  ++counters_[to_index(ev)].marked;
  if (row(ev).state == EvState::kGood) set_state(ev, EvState::kSkip);
}

void PathSet::on_lost(EvIndex ev, TimeNs now) {
  last_now_ = now;
  Row& lost = row(ev);
  ++counters_[to_index(ev)].lost;
  ++lost.drops;
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

void PathSet::on_delivered(EvIndex ev) { confirm(ev); }

void PathSet::on_probe_sent(EvIndex ev, TimeNs now) {
  last_now_ = now;
  Row& probed = row(ev);
  if (probed.state != EvState::kAssumedBad) return;
  if (probed.probe_open) {
    probed.answered_once = false;
    probed.blamed = true;
  }
  probed.probe_open = true;
  next_probe_allowed_ = now + config_.probe_base_ns / 4;
  if (probe_period(probed.probe_level) < config_.probe_cap_ns) ++probed.probe_level;
  schedule(ev, MRC_BUG(kPathProbesOnlyOnce) ? kNever : now + probe_period(probed.probe_level));
}

void PathSet::on_probe_answered(EvIndex ev, bool marked, TimeNs now) {
  last_now_ = now;
  Row& answered = row(ev);
  if (marked) mark(ev);
  if (answered.state != EvState::kAssumedBad) return confirm(ev);
  if (!answered.probe_open) return;
  answered.probe_open = false;
  if (!answered.answered_once) {
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

// --- Control
// ----------------------------------------------------------------------------------------

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

EvState PathSet::state(EvIndex ev) const { return row(ev).state; }

const EvCounters& PathSet::counters(EvIndex ev) const { return counters_[to_index(ev)]; }

PortMask PathSet::planes_in_use() const { return usable_ports_ & ports_with_usable_; }

unsigned PathSet::good_count() const { return good_count_; }

unsigned PathSet::bad_count() const { return bad_count_; }

unsigned PathSet::size() const { return static_cast<unsigned>(rows_.size()); }

std::size_t PathSet::memory_bytes() const {
  const auto bytes = [](const auto& v) { return v.capacity() * sizeof(v[0]); };
  return sizeof(*this) + bytes(rows_) + bytes(counters_) + bytes(planes_) + bytes(order_) +
         bytes(heap_) + bytes(good_bits_);
}

// --- Moving EVs between the parts of their plane
// ----------------------------------------------------

void PathSet::set_state(EvIndex ev, EvState state) {
  row(ev).state = state;
  const unsigned position = row(ev).position;
  const std::uint64_t bit = std::uint64_t{1} << (position % 64);
  std::uint64_t& word = good_bits_[position / 64];
  word = state == EvState::kGood ? word | bit : word & ~bit;
}

void PathSet::swap_positions(unsigned a, unsigned b) {
  if (a == b) return;
  std::swap(order_[a], order_[b]);
  for (const unsigned position : {a, b}) {
    const EvIndex ev{order_[position]};
    row(ev).position = static_cast<std::uint16_t>(position);
    set_state(ev, row(ev).state);
  }
}

// Brings an EV that was bad or denied into use: active if the plane is short of its share,
// otherwise a backup.
void PathSet::join(EvIndex ev) {
  Plane& plane = plane_of(ev);
  swap_positions(row(ev).position, plane.usable_end++);
  if (plane.active_end - plane.begin < plane.share) {
    swap_positions(row(ev).position, plane.active_end++);
  }
  ++good_count_;
  ports_with_usable_ = ports_with_usable_.with(plane.port);
}

// Takes an EV out of use. A backup of the same plane gets its place in the rotation.
void PathSet::leave(EvIndex ev) {
  Plane& plane = plane_of(ev);
  const unsigned backups = plane.usable_end - plane.active_end;
  if (row(ev).position < plane.active_end) {
    if (backups > 0) {
      swap_positions(row(ev).position, plane.active_end + prng_.below(backups));
    } else {
      leave_rotation(plane, row(ev).position);
    }
  }
  swap_positions(row(ev).position, --plane.usable_end);
  if (plane.confirmed == ev) plane.confirmed = kNoEv;
  --good_count_;
  if (plane.usable_end == plane.begin) {
    ports_with_usable_ = ports_with_usable_.without(plane.port);
  }
}

// Closes the gap such that entries used in this rotation stay before the cursor and others after
// it.
void PathSet::leave_rotation(Plane& plane, unsigned position) {
  if (position < plane.cursor) {
    swap_positions(position, --plane.cursor);
    position = plane.cursor;
  }
  swap_positions(position, --plane.active_end);
  if (plane.cursor >= plane.active_end) plane.cursor = plane.begin;
}

// --- Going bad and coming back
// ----------------------------------------------------------------------

// False when the EV stays in use because of the floor.
bool PathSet::assume_bad(EvIndex ev, TimeNs now) {
  const bool at_floor = good_count_ <= min_active_ || is_last_in_use(ev);
  const std::uint16_t oldest = plane_of(ev).oldest_bad;
  if (at_floor && oldest == kNowhere) {
    set_state(ev, EvState::kGood);
    observer_->on_ev_floor(ev);
    return false;
  }
  retire(ev, now);
  if (at_floor) {
    revive(EvIndex{oldest}, EvState::kGood);
    observer_->on_ev_floor(EvIndex{oldest});
  }
  report_planes();
  return true;
}

void PathSet::retire(EvIndex ev, TimeNs now) {
  leave(ev);
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

void PathSet::revive(EvIndex ev, EvState state) {
  forget_bad(ev);
  join(ev);
  set_state(ev, state);
  report_state(ev, EvState::kGood);
}

// Takes a bad EV off the list of its plane and off the probe schedule.
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
  plane.confirmed = ev;
  plane.control_turn = 0;
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
    if (usable) plane.load = max_load_;  // what it missed while away is not its debt
    observer_->on_plane_usable(plane.port, usable);
  }
}

// --- Probe schedule
// ---------------------------------------------------------------------------------

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
