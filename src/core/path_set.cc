#include "core/path_set.h"

#include <algorithm>
#include <bit>
#include <limits>
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

}  // namespace

PathSet::PathSet(const EvProfile& profile, const PathSetConfig& config, std::uint64_t seed,
                 PathObserver& observer)
    : profile_(&profile),
      config_(config),
      observer_(&observer),
      prng_(seed),
      rows_(profile.size()),
      counters_(config.ev_counters ? profile.size() : 0),
      order_(profile.size()),
      heap_(profile.size()),
      good_bits_((profile.size() + 63) / 64),
      usable_ports_(profile.ports()) {
  MRC_ASSERT(profile.size() > 0 && profile.size() <= kMaxEvsPerQp);
  const unsigned wanted = config.min_active != 0 ? config.min_active : profile.size() / 4;
  min_active_ = static_cast<std::uint16_t>(std::clamp(wanted, 1U, profile.size()));
  lay_out_planes();
  reported_in_use_ = planes_in_use();
  // Queue pairs with the same profile look for a way in different orders.
  for (Plane& plane : planes_) {
    plane.sweep_cursor =
        static_cast<std::uint16_t>(mix64(seed + static_cast<unsigned>(plane.port)) % size());
  }
  last_swept_plane_ = prng_.below(static_cast<std::uint32_t>(planes_.size()));
  next_port_ = static_cast<unsigned>(planes_[last_swept_plane_].port) - 1;
}

void PathSet::lay_out_planes() {
  const auto plane_count = static_cast<unsigned>(std::popcount(profile_->ports().bits()));
  planes_ = FixedArray<Plane>(plane_count);
  unsigned laid_out = 0;
  unsigned begin = 0;
  for (unsigned number = 1; number <= kMaxPorts; ++number) {
    const PortId port{static_cast<std::uint8_t>(number)};
    if (!profile_->ports().contains(port)) continue;
    plane_index_[number - 1] = static_cast<std::uint8_t>(laid_out);
    Plane& plane = planes_[laid_out++];
    plane.port = port;
    plane.begin = static_cast<std::uint16_t>(begin);
    fill_plane(plane, plane_count);
    begin = plane.end;
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

EvIndex PathSet::choose(PortMask free_ports, EvIndex avoid, unsigned quantum) {
  stay_left_ = static_cast<std::uint16_t>(std::min<unsigned>(stay_left_, quantum - 1));
  if (stay_left_ > 0 && avoid == kNoEv && can_stay(free_ports)) {
    --stay_left_;
    count_use(stay_ev_, plane_of(stay_ev_));
    return stay_ev_;
  }
  if (MRC_BUG(kPathIgnoresAvoid)) avoid = kNoEv;
  const PortMask candidates = free_ports & planes_in_use();
  if (prefers_confirmed(candidates, avoid))
    return use(plane_of(confirmed_), row(confirmed_).position);
  PortMask left = candidates;
  while (!left.empty()) {
    Plane& plane = least_loaded(left);
    const std::uint16_t position = next_position(plane, avoid);
    if (position != kNowhere && !passes_over(plane, position, left.without(plane.port), avoid)) {
      stay_ev_ = use(plane, position);
      stay_left_ = static_cast<std::uint16_t>(avoid == kNoEv ? quantum - 1 : 0);
      return stay_ev_;
    }
    left = left.without(plane.port);
  }
  if (avoid == kNoEv || !candidates.contains(profile_->port(avoid))) return kNoEv;
  return MRC_BUG(kPathSkipNeverRevives) ? kNoEv : choose_beside(avoid);
}

// The plane that has had the fewest packets; among equals the next one round.
PathSet::Plane& PathSet::least_loaded(PortMask candidates) {
  std::uint64_t best = std::numeric_limits<std::uint64_t>::max();
  Plane* least = &planes_[0];
  for (std::uint32_t bits = candidates.bits(); bits != 0; bits &= bits - 1) {
    const auto port = static_cast<unsigned>(std::countr_zero(bits));
    Plane& plane = planes_[plane_index_[port]];
    const std::uint64_t key = load(plane) * kMaxPorts + (port - next_port_) % kMaxPorts;
    if (key >= best) continue;
    best = key;
    least = &plane;
  }
  return *least;
}

// Packets sent on a plane, at least so many that it cannot catch up more than the limit.
std::uint64_t PathSet::load(const Plane& plane) const {
  return std::max(plane.load, max_load_ - std::min(max_load_, kMaxCatchUpPackets));
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
    pass_over(EvIndex{order_[passed]});
  }
  return good;
}

void PathSet::pass_over(EvIndex ev) {
  Row& passed = row(ev);
  if (passed.skips_left > 0) --passed.skips_left;
  if (passed.skips_left == 0) set_state(ev, EvState::kGood);
}

EvIndex PathSet::use(Plane& plane, std::uint16_t position) {
  const EvIndex ev{order_[position]};
  set_state(ev, EvState::kGood);
  count_use(ev, plane);
  next_port_ = static_cast<unsigned>(plane.port);

  const std::uint16_t next = after(plane, position);
  if (next <= plane.cursor) plane.rotations = (plane.rotations + 1) % kRotationsPerOrder;
  plane.cursor = next;
  return ev;
}

void PathSet::count_use(EvIndex ev, Plane& plane) {
  count(ev, &EvCounters::sent);
  charge(plane);
}

void PathSet::charge(Plane& plane) {
  plane.load = load(plane) + 1;
  max_load_ = std::max(max_load_, plane.load);
}

// Whether the EV of the last packet is as good as it was then.
bool PathSet::can_stay(PortMask free_ports) {
  return (free_ports & planes_in_use()).contains(profile_->port(stay_ev_)) &&
         row(stay_ev_).state == EvState::kGood &&
         row(stay_ev_).position < plane_of(stay_ev_).active_end;
}

// At the floor paths are in use that nobody has heard of for long, and in a rotation of two a
// packet sent again could meet such a one each time, with probes taking the turns between.
bool PathSet::prefers_confirmed(PortMask candidates, EvIndex avoid) {
  if (avoid == kNoEv || confirmed_ == kNoEv || confirmed_ == avoid) return false;
  return good_count_ <= min_active_ && candidates.contains(profile_->port(confirmed_)) &&
         row(confirmed_).position < plane_of(confirmed_).active_end;
}

// A plane kept in use only because of the floor takes its turn as its EVs do: it is passed over for
// one that has a good EV, as often as the EV at `position` still has to be.
bool PathSet::passes_over(Plane& plane, std::uint16_t position, PortMask others, EvIndex avoid) {
  if (good_count_ > min_active_ || is_good(position)) return false;
  const unsigned except = avoid == kNoEv ? kNowhere : row(avoid).position;
  const auto has_good = [this, others, except](const Plane& other) {
    return others.contains(other.port) &&
           find_good(other.begin, other.active_end, except) != kNowhere;
  };
  if (std::none_of(planes_.begin(), planes_.end(), has_good)) return false;
  pass_over(EvIndex{order_[position]});
  charge(plane);
  return true;
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
  if (in_doubt() && prng_.below(2) == 0) {
    const EvIndex ev = sweep(free_ports);
    if (ev != kNoEv) return ev;
  }
  PortMask candidates = ports & planes_in_use();
  if (candidates.empty() && !planes_in_use().empty()) return kNoEv;
  if (candidates.empty()) candidates = ports & usable_ports_ & ports_with_bad_;
  if (candidates.empty()) candidates = ports & ports_with_usable_;
  if (candidates.empty()) candidates = ports & ports_with_bad_;
  if (candidates.empty()) candidates = ports;

  const bool is_port = preferred != kNoPort && static_cast<unsigned>(preferred) <= kMaxPorts;
  const bool can_prefer = is_port && candidates.contains(preferred);
  Plane& plane = can_prefer ? plane_of(preferred) : draw_plane(candidates);
  const unsigned turn = plane.control_turn++;
  // No sign of life for a while: this plane may be dead in our direction, so every second packet
  // tries any.
  if (turn >= kTrustedControlPackets && prng_.below(2) == 0) {
    return control_ev(draw_plane(candidates), turn);
  }
  return control_ev(plane, turn);
}

EvIndex PathSet::sweep(PortMask free_ports) {
  const PortMask planes = MRC_BUG(kStatusAvoidsDeadPlanes) ? usable_ports_ : profile_->ports();
  for (PortMask ports = free_ports & planes; !ports.empty();) {
    Plane& plane = next_swept_plane(ports);
    const EvIndex ev = next_of_sweep(plane);
    if (ev != kNoEv) return ev;
    ports = ports.without(plane.port);
  }
  return kNoEv;
}

// Each plane has a place of its own in the sweep: with one for all, EVs whose turn comes while
// their port is busy would be passed over, and that may be the same ones every time.
EvIndex PathSet::next_of_sweep(Plane& plane) {
  for (unsigned tries = size(); tries > 0; --tries) {
    const EvIndex ev{plane.sweep_cursor};
    plane.sweep_cursor = static_cast<std::uint16_t>((plane.sweep_cursor + 1U) % size());
    if (profile_->port(ev) == plane.port && row(ev).state != EvState::kDenied) return ev;
  }
  return kNoEv;
}

// Drawn: answers come in pairs of SACK and ACK, and with two planes in turn each would always have
// the same one, alive or not.
PathSet::Plane& PathSet::draw_plane(PortMask candidates) {
  if (MRC_BUG(kAnswersTakeTurns)) return next_swept_plane(candidates);
  std::uint32_t bits = candidates.bits();
  for (auto left = prng_.below(static_cast<std::uint32_t>(std::popcount(bits))); left > 0; --left)
    bits &= bits - 1;
  return planes_[plane_index_[static_cast<unsigned>(std::countr_zero(bits))]];
}

PathSet::Plane& PathSet::next_swept_plane(PortMask candidates) {
  do {
    if (++last_swept_plane_ >= planes_.size()) last_swept_plane_ = 0;
  } while (!candidates.contains(planes_[last_swept_plane_].port));
  return planes_[last_swept_plane_];
}

// Draws between the EV that last showed life, while that is not long ago, and all others in turn:
// answers are cumulative, so whichever of the two is dead without our knowledge costs every second
// packet at most. Drawn, because a fixed alternation would always give SACKs one and ACKs the
// other.
EvIndex PathSet::control_ev(Plane& plane, unsigned turn) {
  if (plane.usable_end == plane.begin) {
    return EvIndex{plane.newest_bad != kNowhere ? plane.newest_bad : order_[plane.begin]};
  }
  const EvIndex confirmed = plane.confirmed;
  const bool is_known = confirmed != kNoEv && row(confirmed).position < plane.usable_end;
  const bool is_trusted = is_known && turn < kTrustedControlPackets;
  if (is_trusted && prng_.below(2) == 0) return confirmed;
  std::uint16_t from = plane.control_cursor;
  if (from >= plane.active_end) from = plane.begin;
  // A mark says which is better of paths that work; without a sign of life each has its turn.
  std::uint16_t position = kNowhere;
  if (turn < kTrustedControlPackets) {
    position = find_good(from, plane.active_end, kNowhere);
    if (position == kNowhere) position = find_good(plane.begin, from, kNowhere);
  }
  if (position == kNowhere) position = from;
  plane.control_cursor = after(plane, position);
  return EvIndex{order_[position]};
}

EvState PathSet::state(EvIndex ev) const { return row(ev).state; }

PortMask PathSet::planes_in_use() const { return usable_ports_ & ports_with_usable_; }

unsigned PathSet::good_count() const { return good_count_; }

unsigned PathSet::bad_count() const { return bad_count_; }

unsigned PathSet::size() const { return static_cast<unsigned>(rows_.size()); }

std::size_t PathSet::memory_bytes() const {
  const auto bytes = [](const auto& v) { return v.memory_bytes(); };
  return sizeof(*this) + bytes(rows_) + bytes(counters_) + bytes(planes_) + bytes(order_) +
         bytes(heap_) + bytes(good_bits_);
}

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
  if (plane.active_end - plane.begin < plane.share) enter_rotation(plane, row(ev).position);
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
  --good_count_;
  if (plane.usable_end == plane.begin) {
    ports_with_usable_ = ports_with_usable_.without(plane.port);
  }
}

// Entries before the cursor have had their turn in this rotation. A new entry goes there, and the
// places of others are drawn: were new entries put where the cursor comes next, a stream of paths
// that fail and return would keep the good ones waiting for ever.
void PathSet::enter_rotation(Plane& plane, unsigned position) {
  swap_positions(position, plane.active_end);
  const unsigned waiting = plane.active_end - plane.cursor;
  if (waiting > 0) swap_positions(plane.cursor, plane.cursor + prng_.below(waiting));
  swap_positions(plane.cursor, plane.active_end);
  ++plane.active_end;
  ++plane.cursor;
  if (plane.cursor == plane.active_end) plane.cursor = plane.begin;
}

// Closes the gap. Used entries stay before the cursor, waiting ones after it.
void PathSet::leave_rotation(Plane& plane, unsigned position) {
  if (position < plane.cursor) {
    swap_positions(position, --plane.cursor);
    position = plane.cursor;
  }
  swap_positions(position, --plane.active_end);
  const unsigned waiting = plane.active_end - plane.cursor;
  if (waiting > 0) {
    swap_positions(plane.cursor, plane.cursor + prng_.below(waiting));
  } else {
    plane.cursor = plane.begin;
  }
}

}  // namespace mrc::core
