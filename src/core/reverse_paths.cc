#include "core/reverse_paths.h"

#include "base/planted_bug.h"

namespace mrc::core {

// Queue pairs with the same profile look for a way in different orders.
ReversePaths::ReversePaths(const EvProfile& profile, const Rotation& rotation, std::uint64_t seed)
    : profile_(&profile), planes_(profile.plane_count()), last_swept_(rotation.next_port()) {
  for (const PortId port : profile.ports()) {
    Plane& plane = planes_[profile.plane(port)];
    plane.cursor = rotation.first_position(profile.plane(port));
    plane.sweep_cursor =
        static_cast<std::uint16_t>(mix64(seed + static_cast<unsigned>(port)) % profile.size());
  }
}

// --- Choosing ---

EvIndex ReversePaths::choose(const Rotation& rotation, const PathHealth& health, Prng& prng,
                             PortMask free_ports, PortMask usable, PortId preferred) {
  const PortMask ours = free_ports & profile_->ports();
  if (!ours.empty() && in_doubt() && prng.below(2) == 0) {
    const EvIndex ev = sweep(health, free_ports, usable);
    if (ev != kNoEv) return ev;
  }
  // An idle port is no reason to send into a dead plane.
  const PortMask in_use = usable & rotation.ports();
  const PortMask ports =
      in_use.empty() ? least_hopeless(rotation, health, ours, usable) : ours & in_use;
  if (ports.empty()) return kNoEv;
  const bool is_port = preferred != kNoPort && static_cast<unsigned>(preferred) <= kMaxPorts;
  const bool can_prefer = is_port && ports.contains(preferred);
  if (can_prefer && gives_way(preferred, ports) && prng.below(4) != 0) {
    preferred = profile_->port(confirmed_);
  }
  const unsigned plane = profile_->plane(can_prefer ? preferred : draw_port(ports, prng));
  const unsigned turn = planes_[plane].turn++;
  // No sign of life for a while: this plane may be dead in our direction, so every second packet
  // tries any.
  if (turn >= kTrustedPackets && prng.below(2) == 0) {
    const unsigned any = profile_->plane(draw_port(ports, prng));
    return choose_on(rotation, health, prng, any, turn);
  }
  return choose_on(rotation, health, prng, plane, turn);
}

// A plane without a sign of life for a while gives way to the one that showed the last, but for
// every fourth packet: its own may have come from where nothing leads back.
bool ReversePaths::gives_way(PortId silent, PortMask ports) const {
  if (confirmed_ == kNoEv || MRC_BUG(kAnswersKeepTheSilentPlane)) return false;
  const PortId alive = profile_->port(confirmed_);
  return alive != silent && ports.contains(alive) &&
         planes_[profile_->plane(silent)].turn >= kTrustedPackets &&
         planes_[profile_->plane(alive)].turn < kTrustedPackets;
}

PortMask ReversePaths::least_hopeless(const Rotation& rotation, const PathHealth& health,
                                      PortMask ports, PortMask usable) const {
  for (const PortMask mask : {usable & health.bad_ports(), rotation.ports(), health.bad_ports()}) {
    if (!(ports & mask).empty()) return ports & mask;
  }
  return ports;
}

EvIndex ReversePaths::choose_on(const Rotation& rotation, const PathHealth& health, Prng& prng,
                                unsigned number, unsigned turn) {
  if (!rotation.any_in_use_on(number)) {
    const EvIndex any = rotation.at(rotation.first_position(number));
    const EvIndex bad = health.last_bad(profile_->port(any));
    return bad != kNoEv ? bad : any;
  }
  Plane& plane = planes_[number];
  const bool is_recent = turn < kTrustedPackets;
  const bool is_trusted =
      is_recent && plane.confirmed != kNoEv && rotation.in_use_on(number, plane.confirmed);
  if (is_trusted && prng.below(2) == 0) return plane.confirmed;
  // A mark says which is better of paths that work; without a sign of life each has its turn.
  return rotation.peek(number, plane.cursor, !is_recent);
}

EvIndex ReversePaths::sweep(const PathHealth& health, PortMask free_ports, PortMask usable) {
  PortMask ports = free_ports & (MRC_BUG(kStatusAvoidsDeadPlanes) ? usable : profile_->ports());
  while (!ports.empty()) {
    const PortId port = next_swept_port(ports);
    const EvIndex ev = next_of_sweep(health, port);
    if (ev != kNoEv) return ev;
    ports = ports.without(port);
  }
  return kNoEv;
}

// Each plane has a place of its own in the sweep: with one for all, EVs whose turn comes while
// their port is busy would be passed over, and that may be the same ones every time.
EvIndex ReversePaths::next_of_sweep(const PathHealth& health, PortId port) {
  Plane& plane = planes_[profile_->plane(port)];
  for (unsigned tries = profile_->size(); tries > 0; --tries) {
    const EvIndex ev{plane.sweep_cursor};
    plane.sweep_cursor = static_cast<std::uint16_t>((plane.sweep_cursor + 1U) % profile_->size());
    if (profile_->port(ev) == port && health.standing(ev) != PathStanding::kDenied) return ev;
  }
  return kNoEv;
}

// Drawn: answers come in pairs of SACK and ACK, and with two planes in turn each would always have
// the same one, alive or not.
PortId ReversePaths::draw_port(PortMask candidates, Prng& prng) {
  if (MRC_BUG(kAnswersTakeTurns)) return next_swept_port(candidates);
  auto drawn = candidates.begin();
  for (auto left = prng.below(candidates.count()); left > 0; --left)
    ++drawn;
  return *drawn;
}

// The next one round; `candidates` are ports of the profile.
PortId ReversePaths::next_swept_port(PortMask candidates) {
  const PortMask behind = candidates - PortMask::first(static_cast<unsigned>(last_swept_));
  last_swept_ = (behind.empty() ? candidates : behind).lowest();
  return last_swept_;
}

// --- Signs of life ---

void ReversePaths::confirm(EvIndex ev) {
  Plane& plane = planes_[profile_->plane(ev)];
  plane.confirmed = confirmed_ = ev;
  plane.turn = 0;
  asked_again_ = 0;
}

void ReversePaths::note_life() {
  silent_sends_ = 0;
  if (MRC_BUG(kAnyAnswerEndsDoubt)) asked_again_ = 0;
}

void ReversePaths::on_asked_again() {
  if (asked_again_ < kMostQuestions && !MRC_BUG(kIgnoresRepeatedQuestions)) ++asked_again_;
}

}  // namespace mrc::core
