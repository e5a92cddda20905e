#include "dst/network.h"

#include <algorithm>

#include "dst/carriage.h"

namespace mrc::dst {
namespace {

std::size_t lane(const Flight& flight, bool retransmissions_overtake) {
  switch (flight.traffic_class) {
    case core::TrafficClass::kControl:
      return 0;
    case core::TrafficClass::kTrimmable:
    case core::TrafficClass::kNoTrim:
      return 1;
    case core::TrafficClass::kTrimmableRetransmission:
      return retransmissions_overtake ? 2 : 1;
  }
  return 1;
}

bool is_priority(const Flight& flight) {
  return flight.traffic_class == core::TrafficClass::kControl;
}

}  // namespace

bool trim_flight(Flight& flight, core::TrimState how, bool carries_bytes) {
  if (carries_bytes && !trim(flight, how)) return false;
  flight.trim = how;
  // Trimmed packets travel with the control packets.
  flight.traffic_class = core::TrafficClass::kControl;
  flight.payload_length = 0;
  auto& write = std::get<wire::Write>(flight.packet.body);
  const wire::Write kept{.receive_msn = write.receive_msn,
                         .msn = write.msn,
                         .timestamp = write.timestamp,
                         .address = 0,
                         .key = {},
                         .message_length = 0,
                         .immediate = 0};
  write = kept;
  return true;
}

Network::Network(Stage& stage)
    : stage_(stage),
      random_(stage.swarm.seed, Stream::kNetwork),
      spines_(std::size_t{stage.swarm.ports} * stage.swarm.spines),
      last_hops_(stage.swarm.hosts),
      port_dead_(stage.swarm.hosts),
      survivors_(std::size_t{stage.swarm.hosts} * stage.swarm.hosts) {
  for (Queue& queue : spines_)
    queue.bits_per_second = stage.swarm.spine_bits_per_second;
  for (auto& queues : last_hops_) {
    for (Queue& queue : queues)
      queue.bits_per_second = stage.swarm.port_bits_per_second;
  }
}

std::uint32_t Network::path_index(const PathKey& key) {
  const std::uint64_t name = (std::uint64_t{key.from} << 48) | (std::uint64_t{key.to} << 40) |
                             (static_cast<std::uint64_t>(key.port) << 32) | key.entropy;
  const auto [entry, added] =
      path_indices_.try_emplace(name, static_cast<std::uint32_t>(paths_.size()));
  if (added) {
    const Swarm& swarm = stage_.swarm;
    Path path;
    path.salt = mix64(swarm.seed ^ mix64(name));
    const auto span = static_cast<std::uint64_t>(swarm.max_delay_ns - swarm.min_delay_ns) + 1;
    path.base_delay_ns = swarm.min_delay_ns + static_cast<DurationNs>(path.salt % span);
    path.spine = static_cast<std::uint32_t>(slot(key.port)) * swarm.spines +
                 static_cast<std::uint32_t>(mix64(path.salt) % swarm.spines);
    paths_.push_back(path);
  }
  return entry->second;
}

DurationNs Network::serialization_ns(std::uint64_t bits_per_second, std::uint32_t bytes) const {
  return static_cast<DurationNs>(std::uint64_t{bytes} * 8 * kSecondNs / bits_per_second) + 1;
}

DurationNs Network::longest_transit_ns() const {
  const Swarm& swarm = stage_.swarm;
  const std::uint64_t slowest = std::min(swarm.port_bits_per_second, swarm.spine_bits_per_second);
  return 2 * swarm.max_delay_ns + swarm.jitter_ns +
         2 * serialization_ns(slowest, 2 * swarm.queue_bytes);
}

DurationNs Network::longest_empty_round_trip_ns() const {
  const Swarm& swarm = stage_.swarm;
  return 2 * (2 * swarm.max_delay_ns + swarm.jitter_ns + swarm.end_jitter_ns);
}

DurationNs Network::path_delay(const Path& path) {
  const Swarm& swarm = stage_.swarm;
  const auto regime = static_cast<std::uint64_t>(stage_.now / swarm.regime_ns);
  // Within a regime the path is up to twice as long as its base.
  const auto detour = static_cast<DurationNs>(mix64(path.salt + regime) %
                                              static_cast<std::uint64_t>(path.base_delay_ns));
  DurationNs delay = path.base_delay_ns + detour;
  if (swarm.jitter_ns != 0) delay += random_.duration(0, swarm.jitter_ns);
  return path.slow != 0 ? delay * path.slow_factor : delay;
}

bool Network::survives(const Flight& flight) const {
  const Survivors& rule = survivors_[std::size_t{flight.from} * stage_.swarm.hosts + flight.to];
  if (!rule.in_force) return true;
  return std::any_of(rule.paths.begin(), rule.paths.end(), [&](const PathKey& key) {
    return key.port == flight.port && key.entropy == flight.entropy;
  });
}

std::optional<Fault> Network::blocked(const Flight& flight) const {
  const std::size_t port = slot(flight.port);
  const Path& path = paths_[flight.path];
  if (!survives(flight)) return Fault::kAllButOneDead;
  if (port_dead_[flight.from][port] != 0 || port_dead_[flight.to][port] != 0) {
    return Fault::kPortDown;
  }
  if (plane_dead_[port] != 0) return Fault::kPlaneDead;
  if (path.dead != 0) return path.dead_by;
  if (path.mtu_shrunk != 0 && flight.payload_length > core::kMinPathMtu / 2) {
    return Fault::kMtuShrink;
  }
  return std::nullopt;
}

void Network::drop(std::uint32_t slot, Fault why) {
  stage_.count(why);
  const Flight& flight = flights_[slot];
  stage_.trace.fault(stage_.now, flight, why);
  if (why == Fault::kQueueDrop) {
    stage_.note_queue_drop(flight.origin.connection, flight.origin.side);
  }
  flights_.release(slot);
}

bool Network::cut(Flight& flight, core::TrimState how) {
  const bool allowed = flight.traffic_class == core::TrafficClass::kTrimmable ||
                       flight.traffic_class == core::TrafficClass::kTrimmableRetransmission;
  if (!allowed || !stage_.swarm.switches_trim || !flight.is_write()) return false;
  return trim_flight(flight, how, stage_.swarm.carries_bytes);
}

void Network::corrupt(Flight& flight) {
  stage_.count(Fault::kCorruptPath);
  flight.corrupt = true;
  if (!flight.frame.empty()) flight.frame.back() ^= std::byte{1};
}

// Fluid queue: what is ahead of a packet is what the queue still has to send. Control packets go
// first and are too small to count.
Network::Verdict Network::pass_queue(Queue& queue, Flight& flight, bool last_hop) {
  if (is_priority(flight)) return Verdict::kPass;
  const Swarm& swarm = stage_.swarm;
  const DurationNs wait_ns = std::max<DurationNs>(0, queue.busy_until - stage_.now);
  const std::uint64_t backlog =
      static_cast<std::uint64_t>(wait_ns) * (queue.bits_per_second / 1'000'000) / 8'000;
  const std::uint32_t size = wire::nominal_size(flight.packet, flight.payload_length);
  if (backlog + size > swarm.queue_bytes) {
    const auto how = last_hop ? core::TrimState::kTrimmedLastHop : core::TrimState::kTrimmed;
    if (!cut(flight, how)) return Verdict::kDropped;
    stage_.count(Fault::kQueueTrim);
    stage_.note_queue_trim(flight.origin.connection, flight.origin.side);
    stage_.trace.fault(stage_.now, flight, Fault::kQueueTrim);
    return Verdict::kPass;
  }
  if (backlog > swarm.mark_bytes && !swarm.never_mark && (!last_hop || swarm.last_hop_marks)) {
    flight.marked = true;
    stage_.count(Fault::kQueueMark);
  }
  queue.busy_until =
      std::max(queue.busy_until, stage_.now) + serialization_ns(queue.bits_per_second, size);
  return Verdict::kPass;
}

void Network::send(const Sending& sending) {
  Flight& flight = flights_[sending.slot];
  flight.path = path_index({flight.from, flight.to, flight.port, flight.entropy});
  if (const auto why = blocked(flight)) return drop(sending.slot, *why);
  Path& path = paths_[flight.path];
  if (path.marks_all != 0) {
    flight.marked = true;
    stage_.count(Fault::kEcnAlways);
  }
  if (path.slow != 0) stage_.count(Fault::kSlowPath);
  if (path.corrupts != 0) corrupt(flight);
  Queue& spine = spines_[path.spine];
  if (pass_queue(spine, flight, false) == Verdict::kDropped) {
    return drop(sending.slot, Fault::kQueueDrop);
  }
  const TimeNs leaves = is_priority(flight) ? stage_.now : std::max(stage_.now, spine.busy_until);
  TimeNs arrives = leaves + path_delay(path) + sending.delay_ns;
  if (stage_.swarm.fifo_paths && !sending.overtakes) {
    TimeNs& last = path.last_arrival[lane(flight, stage_.swarm.retransmissions_overtake)];
    arrives = std::max(arrives, last);
    last = arrives;
  }
  stage_.queue.push(arrives, Happening::kLastHop, sending.slot);
}

void Network::on_last_hop(std::uint32_t slot_index) {
  Flight& flight = flights_[slot_index];
  Queue& queue = last_hops_[flight.to][slot(flight.port)];
  if (pass_queue(queue, flight, true) == Verdict::kDropped) {
    return drop(slot_index, Fault::kQueueDrop);
  }
  const TimeNs at = is_priority(flight) ? stage_.now : queue.busy_until;
  stage_.queue.push(at, Happening::kDeliver, slot_index);
}

}  // namespace mrc::dst
