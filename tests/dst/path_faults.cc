#include "dst/path_faults.h"

#include <algorithm>

#include "dst/world.h"

namespace mrc::dst {
namespace {

constexpr Fault kKinds[] = {
    Fault::kBlackhole, Fault::kFlap,          Fault::kAsymmetric,  Fault::kSlowPath,
    Fault::kEcnAlways, Fault::kMtuShrink,     Fault::kCorruptPath, Fault::kSwizzle,
    Fault::kPlaneDead, Fault::kAllButOneDead, Fault::kPortDown,
};

PathKey reverse(const PathKey& key) { return {key.to, key.from, key.port, key.entropy}; }

}  // namespace

PathFaults::PathFaults(World& world)
    : world_(world), random_(world.stage.swarm.seed, Stream::kPathFaults) {}

void PathFaults::start() {
  for (const Fault kind : kKinds) {
    if (world_.stage.swarm.on(kind)) schedule_next(kind);
  }
  if (world_.stage.swarm.dead_for_ever == DeadForEver::kAllButOnePlane) plan_last_plane();
}

void PathFaults::schedule_next(Fault kind) {
  const DurationNs mean = world_.stage.swarm.fault_phase_ns / world_.stage.swarm.rate(kind);
  world_.stage.queue.push(world_.stage.now + random_.duration(1, 2 * mean), Happening::kPathFault,
                          static_cast<std::uint32_t>(kind));
}

// A path that some queue pair uses.
std::optional<PathKey> PathFaults::random_path() {
  const auto ends = world_.model.ends();
  if (ends.empty()) return std::nullopt;
  const EndRef ref = random_.pick(ends);
  const End& end = world_.model.end(ref);
  const auto& profile = *end.init.ev_profile;
  const core::EvEntry& entry =
      profile.entry(EvIndex{static_cast<std::uint16_t>(random_.below(profile.size()))});
  return PathKey{end.host, world_.model.end(ref.peer()).host, entry.port, entry.entropy};
}

void PathFaults::on_fault(Fault kind) {
  if (!world_.stage.faults_on) return;
  schedule_next(kind);
  const auto key = random_path();
  if (!key) return;
  const DurationNs longest = world_.stage.swarm.fault_phase_ns / 2;
  const Span span{0, random_.duration(10 * kMicrosecondNs, longest)};
  switch (kind) {
    case Fault::kBlackhole:
      plan({Effect::kDead, kind, *key}, span);
      plan({Effect::kDead, kind, reverse(*key)}, span);
      break;
    case Fault::kAsymmetric:
      plan({Effect::kDead, kind, *key}, span);
      break;
    case Fault::kFlap:
      flap(*key);
      break;
    case Fault::kSlowPath:
      plan({Effect::kSlow, kind, *key}, span);
      break;
    case Fault::kEcnAlways:
      plan({Effect::kMarks, kind, *key}, span);
      break;
    case Fault::kMtuShrink:
      plan({Effect::kMtu, kind, *key}, span);
      break;
    case Fault::kCorruptPath:
      plan({Effect::kCorrupts, kind, *key}, span);
      break;
    case Fault::kPlaneDead:
      plan({Effect::kPlane, kind, *key}, span);
      break;
    case Fault::kPortDown:
      plan({Effect::kPort, kind, *key}, span);
      break;
    case Fault::kAllButOneDead:
      plan({Effect::kSurvivors, kind, *key}, span);
      if (random_.one_in(2)) plan({Effect::kSurvivors, kind, reverse(*key)}, span);
      break;
    case Fault::kSwizzle:
      swizzle();
      break;
    default:
      break;
  }
}

void PathFaults::plan(const Episode& episode, const Span& span) {
  episodes_.push_back(episode);
  const auto slot = static_cast<std::uint32_t>(episodes_.size() - 1);
  const TimeNs begins = world_.stage.now + span.after_ns;
  world_.stage.queue.push(begins, Happening::kPathTurn, slot);
  world_.stage.queue.push(begins + span.length_ns, Happening::kPathTurn, slot);
}

void PathFaults::flap(const PathKey& key) {
  DurationNs after = 0;
  for (unsigned i = random_.between(2, 6); i != 0; --i) {
    after += random_.duration(kMicrosecondNs, 100 * kMicrosecondNs);
    const DurationNs length = random_.duration(kMicrosecondNs, 100 * kMicrosecondNs);
    plan({Effect::kDead, Fault::kFlap, key}, {after, length});
    after += length;
  }
}

// Takes paths down one after the other and brings them back in another order.
void PathFaults::swizzle() {
  const DurationNs step = random_.duration(kMicrosecondNs, 50 * kMicrosecondNs);
  const unsigned count = random_.between(2, 24);
  for (unsigned i = 0; i < count; ++i) {
    const auto key = random_path();
    if (!key) return;
    const DurationNs after = i * step;
    const DurationNs back = count * step + random_.below(count) * step;
    plan({Effect::kDead, Fault::kSwizzle, *key}, {after, back - after});
  }
}

void PathFaults::on_turn(std::uint32_t slot) {
  Episode& episode = episodes_[slot];
  if (episode.phase == Phase::kPlanned) {
    begin(episode);
  } else if (episode.phase == Phase::kInForce) {
    end(episode);
  }
}

void PathFaults::begin(Episode& episode) {
  episode.phase = Phase::kInForce;
  const PathKey& key = episode.key;
  Path& path = world_.network.path(key);
  world_.stage.trace.say(world_.stage.now, "fault %s begins: %u -> %u port %u ev %08x",
                         fault_name(episode.kind), key.from, key.to,
                         static_cast<unsigned>(key.port), key.entropy);
  switch (episode.effect) {
    case Effect::kDead:
      ++path.dead;
      path.dead_by = episode.kind;
      break;
    case Effect::kSlow:
      ++path.slow;
      path.slow_factor = random_.logarithmic(10, 1000);
      break;
    case Effect::kMarks:
      ++path.marks_all;
      break;
    case Effect::kMtu:
      ++path.mtu_shrunk;
      break;
    case Effect::kCorrupts:
      ++path.corrupts;
      break;
    case Effect::kPlane:
      ++world_.network.plane_dead(key.port);
      break;
    case Effect::kSurvivors:
      leave_one_path(key.from, key.to);
      break;
    case Effect::kPort: {
      Host& host = *world_.hosts[key.from];
      if (host.alive() && ++world_.network.port_dead(key.from, key.port) == 1) {
        host.set_port_up(key.port, false);
      }
      break;
    }
  }
}

void PathFaults::end(Episode& episode) {
  episode.phase = Phase::kOver;
  const PathKey& key = episode.key;
  Path& path = world_.network.path(key);
  world_.stage.trace.say(world_.stage.now, "fault %s ends: %u -> %u port %u ev %08x",
                         fault_name(episode.kind), key.from, key.to,
                         static_cast<unsigned>(key.port), key.entropy);
  switch (episode.effect) {
    case Effect::kDead:
      --path.dead;
      break;
    case Effect::kSlow:
      // The path is a new one: what is still on the slow way no longer holds up what follows.
      if (--path.slow == 0) path.last_arrival = {};
      break;
    case Effect::kMarks:
      --path.marks_all;
      break;
    case Effect::kMtu:
      --path.mtu_shrunk;
      break;
    case Effect::kCorrupts:
      --path.corrupts;
      break;
    case Effect::kPlane:
      --world_.network.plane_dead(key.port);
      break;
    case Effect::kSurvivors:
      world_.network.survivors(key.from, key.to).in_force = false;
      break;
    case Effect::kPort: {
      unsigned& dead = world_.network.port_dead(key.from, key.port);
      if (dead != 0 && --dead == 0 && world_.hosts[key.from]->alive()) {
        world_.hosts[key.from]->set_port_up(key.port, true);
      }
      break;
    }
  }
}

// For each EV profile of the sender one path survives.
void PathFaults::leave_one_path(unsigned from, unsigned to) {
  Survivors& rule = world_.network.survivors(from, to);
  rule.in_force = true;
  rule.paths.clear();
  for (const auto& profile : world_.hosts[from]->profiles()) {
    const EvIndex ev{static_cast<std::uint16_t>(random_.below(profile->size()))};
    rule.paths.push_back({from, to, profile->entry(ev).port, profile->entry(ev).entropy});
  }
}

void PathFaults::heal() {
  for (Episode& episode : episodes_) {
    if (episode.phase == Phase::kInForce) end(episode);
    episode.phase = Phase::kOver;
  }
  if (world_.stage.swarm.heals()) return;
  const auto key = last_plane_ ? last_plane_ : random_path();
  if (key) leave_for_ever(*key);
}

// The plane that will be left, known before: its port is down, at one end or at both, when the
// faults stop, and comes back then.
void PathFaults::plan_last_plane() {
  last_plane_ = random_path();
  if (!last_plane_) return;
  const DurationNs phase = world_.stage.swarm.fault_phase_ns;
  const Span span{random_.duration(0, phase - 1), 2 * phase};
  plan({Effect::kPort, Fault::kPortDown, *last_plane_}, span);
  if (random_.one_in(2)) plan({Effect::kPort, Fault::kPortDown, reverse(*last_plane_)}, span);
}

void PathFaults::leave_for_ever(const PathKey& key) {
  const DeadForEver dead = world_.stage.swarm.dead_for_ever;
  if (dead == DeadForEver::kAllButOnePath) {
    leave_one_path(key.from, key.to);
    if (random_.one_in(2)) leave_one_path(key.to, key.from);
    return;
  }
  const bool one_plane = dead == DeadForEver::kAllButOnePlane;
  for (const PathKey& way : {key, reverse(key)}) {
    leave_one_path(way.from, way.to);
    Survivors& rule = world_.network.survivors(way.from, way.to);
    if (one_plane) rule.paths.clear();
    for (const auto& profile : world_.hosts[way.from]->profiles()) {
      for (std::uint16_t i = 0; i < profile->size(); ++i) {
        const core::EvEntry& entry = profile->entry(EvIndex{i});
        if (one_plane ? entry.port != key.port : !random_.one_in(4)) continue;
        rule.paths.push_back({way.from, way.to, entry.port, entry.entropy});
      }
    }
  }
}

}  // namespace mrc::dst
