#include "dst/world.h"

#include <algorithm>
#include <cinttypes>
#include <map>
#include <utility>

#include "dst/carriage.h"
#include "dst/failure.h"
#include "dst/teardown.h"

namespace mrc::dst {
namespace {

// Time after the drain in which idle paths are found again and the network falls silent, at least.
constexpr DurationNs kSettleNs = 200 * kMillisecondNs;
constexpr DurationNs kSilenceNs = 5 * kMillisecondNs;
// The longest time between two probes of a path, and how many rounds of them the search for the
// only path may take, per pair of a forward and a reverse path.
constexpr DurationNs kProbeCapNs = 10 * kMillisecondNs;
constexpr DurationNs kSearchRounds = 8;
// How often the drain looks whether all is done.
constexpr DurationNs kDrainStepNs = 50 * kMicrosecondNs;

}  // namespace

World::World(std::uint64_t seed, std::FILE* log)
    : stage(seed, log),
      network(stage),
      packet_faults(stage, network, model),
      checker(*this),
      workload(*this),
      path_faults(*this),
      host_faults(*this),
      api_faults(*this),
      adversary(*this),
      forger(*this) {
  for (unsigned id = 0; id < stage.swarm.hosts; ++id) {
    hosts.push_back(std::make_unique<Host>(*this, id));
  }
}

void World::run() {
  stage.trace.say(0, "%s", describe(stage.swarm).c_str());
  workload.start();
  path_faults.start();
  host_faults.start();
  api_faults.start();
  adversary.start();
  forger.start();
  run_until(stage.swarm.fault_phase_ns);
  heal();
  drain();
  settle();
  checker.check_agreement();
  api_faults.check_all_answered();
  tear_down(*this);
  checker.check_memory();
}

void World::run_until(TimeNs end) {
  while (stage.queue.next_time() <= end) {
    const Scheduled event = stage.queue.pop();
    stage.now = event.time;
    dispatch(event);
  }
  stage.now = end;
}

void World::deliver_now(Flight flight) {
  if (stage.swarm.carries_bytes) pack(flight, stage.swarm);
  const std::uint32_t slot = network.flights().take();
  network.flights()[slot] = std::move(flight);
  hosts[network.flights()[slot].to]->on_deliver(slot);
}

void World::dispatch(const Scheduled& event) {
  const auto kind = static_cast<Fault>(event.subject);
  switch (event.what) {
    case Happening::kLastHop:
      return network.on_last_hop(event.subject);
    case Happening::kPathFault:
      return path_faults.on_fault(kind);
    case Happening::kPathTurn:
      return path_faults.on_turn(event.subject);
    case Happening::kHostFault:
      return host_faults.on_fault(kind);
    case Happening::kHostRestart:
      return host_faults.on_restart(event.subject);
    case Happening::kApiFault:
      return api_faults.on_fault(kind);
    case Happening::kAdversary:
      return kind == Fault::kForgery ? forger.on_fault() : adversary.on_fault(kind);
    default:
      break;
  }
  // The rest happens on a host, and waits while the host does nothing.
  const EndRef ref{event.subject, static_cast<std::uint8_t>(event.detail)};
  unsigned id = event.subject;
  if (event.what == Happening::kDeliver) id = network.flights()[event.subject].to;
  if (event.what == Happening::kPost) id = model.end(ref).host;
  Host& host = *hosts[id];
  if (host.paused_until() > stage.now) {
    return stage.queue.put_off(event, host.paused_until());
  }
  switch (event.what) {
    case Happening::kDeliver:
      return host.on_deliver(event.subject);
    case Happening::kHostTimer:
      return host.on_timer_event(event.detail);
    case Happening::kPortFree:
      return host.on_port_free();
    case Happening::kPoll:
      return host.on_poll();
    case Happening::kPost:
      return workload.on_post(ref);
    default:
      break;
  }
}

void World::heal() {
  stage.trace.say(stage.now, "faults stop");
  stage.faults_on = false;
  workload.stop();
  TimeNs all_awake = stage.now;
  for (const auto& host : hosts)
    all_awake = std::max(all_awake, host->paused_until());
  run_until(all_awake);
  host_faults.heal();
  api_faults.heal();
  path_faults.heal();
  for (const auto& host : hosts)
    host->pump();
}

// Everything posted must finish in this time once the network is healthy; docs/testing.md derives
// it.
DurationNs World::derive_drain_bound() const {
  // An end that may be late waits longer before it takes silence for loss.
  DurationNs longest_timer = 4 * stage.swarm.end_jitter_ns;
  std::uint64_t bytes = 0;
  std::map<std::pair<unsigned, unsigned>, std::uint64_t> packets;  // by sender and receiver
  std::uint64_t most_packets = 0;
  for (const EndRef ref : model.ends()) {
    const End& end = model.end(ref);
    const Flow& flow = model.connection(ref.connection).flows[ref.side];
    const DurationNs timer = DurationNs{1'024} << end.rts.timeout;
    longest_timer = std::max(longest_timer, timer);
    const std::uint64_t missing = flow.posted_packets() - flow.contiguous();
    bytes += missing * (end.rtr.path_mtu + 128);
    const auto pair = std::pair(end.host, model.end(ref.peer()).host);
    most_packets = std::max(most_packets, packets[pair] += missing);
  }
  const DurationNs backoff = 2 * stage.swarm.fault_phase_ns + 32 * longest_timer;
  const std::uint64_t slowest =
      std::min(stage.swarm.port_bits_per_second, stage.swarm.spine_bits_per_second);
  const DurationNs transfer =
      16 * network.serialization_ns(slowest, 1) * static_cast<DurationNs>(bytes);
  // Paths that differ by more than the controller's target look like a queue and may keep its
  // window at one packet.
  const DurationNs at_floor =
      static_cast<DurationNs>(most_packets) * network.longest_empty_round_trip_ns();
  const DurationNs pairs = stage.swarm.heals() ? 1 : kMaxSearchedEvs * kMaxSearchedEvs;
  return backoff + transfer + at_floor + (10 + kSearchRounds * (pairs - 1)) * kProbeCapNs;
}

void World::drain() {
  const TimeNs start = stage.now;
  drain_bound_ns = derive_drain_bound();
  checker.begin_drain();
  while (!workload.all_finished()) {
    MRC_CHECK(stage.now - start <= drain_bound_ns,
              "%s is not done %" PRId64 " us after the faults stopped", unfinished().c_str(),
              drain_bound_ns / kMicrosecondNs);
    run_until(stage.now + kDrainStepNs);
  }
  checker.check_drain_effort();
  drain_ns = stage.now - start;
  stage.trace.say(stage.now, "all done %" PRId64 " us after the faults stopped (bound %" PRId64 ")",
                  drain_ns / kMicrosecondNs, drain_bound_ns / kMicrosecondNs);
}

std::string World::unfinished() const {
  for (const EndRef ref : model.ends()) {
    if (workload.finished(ref)) continue;
    const End& end = model.end(ref);
    const Flow& flow = model.connection(ref.connection).flows[ref.side];
    char text[160];
    std::snprintf(text, sizeof text,
                  "queue pair %06x of host %u (%zu of %zu requests reported, %" PRIu64
                  " of %" PRIu64 " packets arrived)",
                  static_cast<unsigned>(end.config.number), end.host, end.next_report,
                  flow.messages().size(), flow.arrived_packets(), flow.posted_packets());
    return text;
  }
  return "nothing";
}

bool World::all_healthy() const {
  if (!stage.swarm.heals()) return false;
  const auto ends = model.ends();
  return std::all_of(ends.begin(), ends.end(), [&](EndRef ref) {
    return model.end(ref).state == EndState::kLive &&
           model.end(ref.peer()).state == EndState::kLive;
  });
}

// Long enough for every path to be probed back: two answers each, one probe per quarter of a base
// period, which is the jitter of the ends where they have any. 1,000 paths and 800 us make 400 ms.
// Queue pairs to one peer have one probe per sixteenth of it together.
DurationNs World::derive_settle_time() const {
  DurationNs most_evs = 0;
  std::map<std::pair<unsigned, unsigned>, DurationNs> evs_towards;
  for (const EndRef ref : model.ends()) {
    const End& end = model.end(ref);
    if (end.init.ev_profile == nullptr) continue;
    const DurationNs evs = end.init.ev_profile->size();
    most_evs = std::max(most_evs, evs);
    evs_towards[{end.host, model.end(ref.peer()).host}] += evs;
  }
  DurationNs probes = 2 * most_evs * 4;  // in sixteenths
  for (const auto& [_, evs] : evs_towards)
    probes = std::max(probes, 2 * evs);
  return kSettleNs + probes * stage.swarm.end_jitter_ns / 16;
}

// Then nothing is left to be sent.
void World::settle() {
  run_until(stage.now + derive_settle_time());
  const std::uint64_t data = checker.data_packets();
  const std::uint64_t control = checker.control_packets();
  run_until(stage.now + kSilenceNs);
  MRC_CHECK(checker.data_packets() == data, "%" PRIu64 " data packets were sent with nothing to do",
            checker.data_packets() - data);
  MRC_CHECK(checker.control_packets() == control || !all_healthy(),
            "%" PRIu64 " control packets were sent with nothing to do",
            checker.control_packets() - control);
}

}  // namespace mrc::dst
