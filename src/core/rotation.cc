#include "core/rotation.h"

#include <algorithm>
#include <bit>
#include <limits>
#include <utility>

#include "base/planted_bug.h"

namespace mrc::core {

namespace {

// An order lasts this many rotations of its plane; the first of them draws it, one step a packet.
constexpr unsigned kRotationsPerOrder = 16;
// A plane that could not send for a while makes up for at most this many packets.
constexpr std::uint64_t kMaxCatchUpPackets = 8;

}  // namespace

Rotation::Rotation(const EvProfile& profile, unsigned active_evs, PortTurns* turns, Prng& prng)
    : profile_(&profile),
      turns_(profile.listed(0).empty() || active_evs != 0 ? nullptr : turns),
      rows_(profile.size()),
      order_(profile.size()),
      good_bits_((profile.size() + 63) / 64),
      planes_(profile.plane_count()) {
  unsigned plane = 0;
  unsigned begin = 0;
  for (unsigned number = 1; number <= kMaxPorts; ++number) {
    const PortId port{static_cast<std::uint8_t>(number)};
    if (!profile.ports().contains(port)) continue;
    planes_[plane].port = port;
    fill_plane(planes_[plane], begin, active_evs, prng);
    begin = planes_[plane++].end;
  }
  const Plane& first = planes_[prng.below(static_cast<std::uint32_t>(planes_.size()))];
  next_port_ = static_cast<std::uint8_t>(static_cast<unsigned>(first.port) - 1);
}

// Places the plane's EVs in a random order, the denied ones last.
void Rotation::fill_plane(Plane& plane, unsigned begin, unsigned active_evs, Prng& prng) {
  unsigned end = begin;
  for (unsigned i = 0; i < profile_->size(); ++i) {
    if (profile_->port(EvIndex{static_cast<std::uint16_t>(i)}) != plane.port) continue;
    order_[end++] = static_cast<std::uint16_t>(i);
  }
  for (unsigned i = begin; i < end; ++i) {
    std::swap(order_[i], order_[i + prng.below(end - i)]);
  }
  const auto is_denied = [this](std::uint16_t ev) { return profile_->entry(EvIndex{ev}).denied; };
  unsigned usable_end = begin;
  for (unsigned i = begin; i < end; ++i) {
    if (!is_denied(order_[i])) std::swap(order_[i], order_[usable_end++]);
  }
  const auto plane_count = static_cast<unsigned>(planes_.size());
  const unsigned share = active_evs == 0 ? end - begin : std::max(1U, active_evs / plane_count);
  plane.share = static_cast<std::uint16_t>(std::min(share, end - begin));
  plane.begin = plane.cursor = static_cast<std::uint16_t>(begin);
  plane.end = static_cast<std::uint16_t>(end);
  plane.usable_end = static_cast<std::uint16_t>(usable_end);
  plane.active_end = static_cast<std::uint16_t>(std::min(usable_end, begin + share));
  for (unsigned i = begin; i < end; ++i) {
    rows_[order_[i]].position = static_cast<std::uint16_t>(i) & kPositionMask;
    set_good_at(i, i < usable_end);
  }
  in_use_count_ = static_cast<std::uint16_t>(in_use_count_ + usable_end - begin);
  if (usable_end > begin) ports_ = ports_.with(plane.port);
}

// --- Who is in use ---

void Rotation::join(EvIndex ev, Prng& prng) {
  Plane& plane = plane_of(ev);
  swap_positions(position(ev), plane.usable_end++);
  if (plane.active_end - plane.begin < plane.share) enter_rotation(plane, position(ev), prng);
  ++in_use_count_;
  ports_ = ports_.with(plane.port);
  set_good_at(position(ev), true);
}

void Rotation::leave(EvIndex ev, EvIndex preferred, Prng& prng) {
  Plane& plane = plane_of(ev);
  if (is_active(ev) && !give_way_to_backup(ev, preferred, prng)) {
    leave_rotation(plane, position(ev), prng);
  }
  swap_positions(position(ev), --plane.usable_end);
  --in_use_count_;
  if (plane.usable_end == plane.begin) ports_ = ports_.without(plane.port);
  rows_[index(ev)].skipped = false;
  set_good_at(position(ev), false);
}

void Rotation::replace(EvIndex out, EvIndex in, EvIndex preferred, Prng& prng) {
  if (is_active(out) && !MRC_BUG(kSubstitutesPassBackups)) give_way_to_backup(out, preferred, prng);
  swap_positions(position(out), position(in));
  rows_[index(out)].skipped = false;
  set_good_at(position(out), false);
  set_good_at(position(in), true);
}

void Rotation::step_back(EvIndex ev, EvIndex preferred, Prng& prng) {
  if (is_active(ev)) give_way_to_backup(ev, preferred, prng);
}

// An active EV and a backup of its plane change places. False without a backup.
bool Rotation::give_way_to_backup(EvIndex ev, EvIndex preferred, Prng& prng) {
  const Plane& plane = plane_of(ev);
  const unsigned backups = plane.usable_end - plane.active_end;
  if (backups == 0) return false;
  const bool stands_by = preferred != kNoEv && profile_->plane(preferred) == profile_->plane(ev) &&
                         in_use(preferred) && !is_active(preferred);
  swap_positions(position(ev),
                 stands_by ? position(preferred) : plane.active_end + prng.below(backups));
  return true;
}

// Entries before the cursor have had their turn in this rotation. A new entry goes there, and the
// places of others are drawn: were new entries put where the cursor comes next, a stream of paths
// that fail and return would keep the good ones waiting for ever.
void Rotation::enter_rotation(Plane& plane, unsigned position, Prng& prng) {
  swap_positions(position, plane.active_end);
  const unsigned waiting = plane.active_end - plane.cursor;
  if (waiting > 0) swap_positions(plane.cursor, plane.cursor + prng.below(waiting));
  swap_positions(plane.cursor, plane.active_end);
  ++plane.active_end;
  ++plane.cursor;
  if (plane.cursor == plane.active_end) plane.cursor = plane.begin;
}

// Closes the gap. Used entries stay before the cursor, waiting ones after it.
void Rotation::leave_rotation(Plane& plane, unsigned position, Prng& prng) {
  if (position < plane.cursor) {
    swap_positions(position, --plane.cursor);
    position = plane.cursor;
  }
  swap_positions(position, --plane.active_end);
  const unsigned waiting = plane.active_end - plane.cursor;
  if (waiting > 0) {
    swap_positions(plane.cursor, plane.cursor + prng.below(waiting));
  } else {
    plane.cursor = plane.begin;
  }
}

void Rotation::swap_positions(unsigned a, unsigned b) {
  if (a == b) return;
  std::swap(order_[a], order_[b]);
  rows_[order_[a]].position = static_cast<std::uint16_t>(a) & kPositionMask;
  rows_[order_[b]].position = static_cast<std::uint16_t>(b) & kPositionMask;
  const bool good = is_good_at(a);
  set_good_at(a, is_good_at(b));
  set_good_at(b, good);
}

void Rotation::set_good_at(unsigned position, bool good) {
  const std::uint64_t bit = std::uint64_t{1} << (position % 64);
  std::uint64_t& word = good_bits_[position / 64];
  word = good ? word | bit : word & ~bit;
}

// --- SKIP ---

void Rotation::skip(EvIndex ev, unsigned turns) {
  if (!in_use(ev)) return;
  Row& row = rows_[index(ev)];
  if (!row.skipped) {
    row.skipped = true;
    row.turns = 0;
    set_good_at(row.position, false);
  }
  turns = std::min(turns, kMaxSkips);
  if (turns > row.turns) row.turns = static_cast<std::uint16_t>(turns) & kMaxSkips;
}

void Rotation::skip_again(EvIndex ev) {
  rows_[index(ev)].skipped = true;
  set_good_at(position(ev), false);
}

void Rotation::revive(EvIndex ev) {
  rows_[index(ev)].skipped = false;
  set_good_at(position(ev), true);
}

void Rotation::pass_over(EvIndex ev) {
  Row& row = rows_[index(ev)];
  if (row.turns > 0) --row.turns;
  if (row.turns == 0) revive(ev);
}

// --- Turns ---

PortId Rotation::least_loaded(PortMask candidates) const {
  std::uint64_t best = std::numeric_limits<std::uint64_t>::max();
  PortId least = planes_[0].port;
  const auto first = static_cast<unsigned>(next_port());
  const std::uint64_t at_least = least_load();
  for (const Plane& plane : planes_) {
    if (!candidates.contains(plane.port)) continue;
    const std::uint64_t packets = std::max(plane.load, at_least);
    const unsigned turn = (static_cast<unsigned>(plane.port) - first) % kMaxPorts;
    const std::uint64_t key = packets * kMaxPorts + turn;
    if (key >= best) continue;
    best = key;
    least = plane.port;
  }
  return least;
}

bool Rotation::is_turn_of_any(PortMask free, PortMask candidates) const {
  if (MRC_BUG(kOnlyTheNextPlaneFits)) {
    return !candidates.empty() && free.contains(least_loaded(candidates));
  }
  std::uint64_t least = std::numeric_limits<std::uint64_t>::max();
  std::uint64_t least_free = least;
  const std::uint64_t at_least = least_load();
  for (const Plane& plane : planes_) {
    if (!candidates.contains(plane.port)) continue;
    const std::uint64_t packets = std::max(plane.load, at_least);
    least = std::min(least, packets);
    if (free.contains(plane.port)) least_free = std::min(least_free, packets);
  }
  return !candidates.empty() && least_free == least;
}

// A plane counts as having sent so many packets at least: it cannot catch up more than the limit.
std::uint64_t Rotation::least_load() const {
  return max_load_ - std::min(max_load_, kMaxCatchUpPackets);
}

void Rotation::charge(Plane& plane, unsigned packets) {
  plane.load = std::max(plane.load, least_load()) + packets;
  max_load_ = std::max(max_load_, plane.load);
}

EvIndex Rotation::next(PortId port, EvIndex avoid, Prng& prng) {
  Plane& plane = planes_[profile_->plane(port)];
  if (turns_ == nullptr) return next_drawn(plane, avoid, SkipsInTheWay::kReviveFirst, prng);
  const EvIndex listed = listed_turn(plane);
  if (listed != avoid && is_good(listed)) return listed;
  // Only this turn goes to another. Were that the next of the list, all who pass over a slow path
  // would meet there: 1.178 of the bound with one T1 of 16 at a quarter of its rate, not 1.023.
  if (MRC_BUG(kPassedTurnsGoToTheNext)) {
    turns_->move_on(port);
    return is_good(listed_turn(plane)) ? listed_turn(plane) : listed;
  }
  const EvIndex drawn = next_drawn(plane, avoid, SkipsInTheWay::kLeave, prng);
  if (drawn != kNoEv && is_good(drawn) && is_skipped(listed)) pass_over(listed);
  return drawn;
}

// Everything between the cursor and the first GOOD entry is SKIP or `avoid`, so the first SKIP
// entry needs no search.
EvIndex Rotation::next_drawn(Plane& plane, EvIndex avoid, SkipsInTheWay skips, Prng& prng) {
  if (plane.rotations == 0) {
    swap_positions(plane.cursor, plane.cursor + prng.below(plane.active_end - plane.cursor));
  }
  const std::uint16_t first = plane.cursor;
  const unsigned except = avoid == kNoEv ? kNowhere : position(avoid);
  std::uint16_t good = find_good(first, plane.active_end, except);
  if (good == kNowhere) good = find_good(plane.begin, first, except);
  if (good == kNowhere) {
    if (MRC_BUG(kPathSkipNeverRevives)) return kNoEv;
    const std::uint16_t skipped = first == except ? after(plane, first) : first;
    return skipped == except ? kNoEv : at(skipped);
  }
  if (good == first || skips == SkipsInTheWay::kLeave) return at(good);
  const std::uint16_t passed = is_good_at(first) ? after(plane, first) : first;
  if (passed != good && !MRC_BUG(kPathSkipNeverRevives)) pass_over(at(passed));
  return at(good);
}

EvIndex Rotation::listed_turn(const Plane& plane) const {
  const auto listed = profile_->listed(profile_->plane(plane.port));
  return listed[turns_->turn(plane.port) % listed.size()];
}

void Rotation::use(EvIndex ev) {
  const Row row = rows_[index(ev)];
  if (row.skipped) revive(ev);
  Plane& plane = plane_of(ev);
  next_port_ = static_cast<std::uint8_t>(plane.port);
  if (turns_ != nullptr) {
    const bool as_listed = listed_turn(plane) == ev;
    turns_->move_on(plane.port);
    if (as_listed) return charge(plane);
  }
  const std::uint16_t next = after(plane, row.position);
  if (next <= plane.cursor) plane.rotations = (plane.rotations + 1) % kRotationsPerOrder;
  plane.cursor = next;
  charge(plane);
}

EvIndex Rotation::beside(EvIndex ev) {
  const Plane& plane = plane_of(ev);
  if (plane.active_end < plane.usable_end) swap_positions(position(ev), plane.active_end);
  return at(plane.begin);
}

bool Rotation::has_good(PortId port, EvIndex except) const {
  const Plane& plane = planes_[profile_->plane(port)];
  const unsigned position_of_except = except == kNoEv ? kNowhere : position(except);
  return find_good(plane.begin, plane.active_end, position_of_except) != kNowhere;
}

EvIndex Rotation::peek(unsigned number, std::uint16_t& cursor, bool any_state) const {
  const Plane& plane = planes_[number];
  const std::uint16_t from = cursor >= plane.active_end ? plane.begin : cursor;
  std::uint16_t found = kNowhere;
  if (!any_state) {
    found = find_good(from, plane.active_end, kNowhere);
    if (found == kNowhere) found = find_good(plane.begin, from, kNowhere);
  }
  if (found == kNowhere) found = from;
  cursor = after(plane, found);
  return at(found);
}

std::uint16_t Rotation::find_good(unsigned from, unsigned to, unsigned except) const {
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

std::uint16_t Rotation::after(const Plane& plane, std::uint16_t position) const {
  const unsigned next = position + 1U;
  return next >= plane.active_end ? plane.begin : static_cast<std::uint16_t>(next);
}

std::size_t Rotation::memory_bytes() const {
  return rows_.memory_bytes() + order_.memory_bytes() + good_bits_.memory_bytes() +
         planes_.memory_bytes();
}

}  // namespace mrc::core
