#include "dst/host_faults.h"

#include "dst/world.h"

namespace mrc::dst {
namespace {

constexpr Fault kKinds[] = {Fault::kPause, Fault::kCrash, Fault::kClockJump};

}  // namespace

HostFaults::HostFaults(World& world)
    : world_(world), random_(world.stage.swarm.seed, Stream::kHostFaults) {}

void HostFaults::start() {
  for (const Fault kind : kKinds) {
    if (world_.stage.swarm.on(kind)) schedule_next(kind);
  }
}

void HostFaults::schedule_next(Fault kind) {
  const DurationNs mean = world_.stage.swarm.fault_phase_ns / world_.stage.swarm.rate(kind);
  world_.stage.queue.push(world_.stage.now + random_.duration(1, 2 * mean), Happening::kHostFault,
                          static_cast<std::uint32_t>(kind));
}

void HostFaults::on_fault(Fault kind) {
  if (!world_.stage.faults_on) return;
  schedule_next(kind);
  const unsigned id = random_.below(world_.stage.swarm.hosts);
  Host& host = *world_.hosts[id];
  if (!host.alive()) return;
  world_.stage.trace.say(world_.stage.now, "fault %s: host %u", fault_name(kind), id);
  switch (kind) {
    case Fault::kPause:
      host.pause_until(world_.stage.now + random_.duration(kMicrosecondNs, 2 * kMillisecondNs));
      break;
    case Fault::kClockJump:
      host.jump_clock(random_.duration(1, 3 * kMillisecondNs));
      break;
    case Fault::kCrash:
      crash(id);
      break;
    default:
      break;
  }
  world_.stage.count(kind);
}

// The peers are not told. Their queue pairs must give up by themselves.
void HostFaults::crash(unsigned id) {
  for (const EndRef ref : world_.model.ends_of(id)) {
    world_.model.connection(ref.connection).add_doom(Doom::kRetries);
    world_.workload.retire(ref.connection);
    world_.model.remove(ref);
  }
  world_.hosts[id]->crash();
  const DurationNs down_ns = random_.duration(10 * kMicrosecondNs, 2 * kMillisecondNs);
  world_.stage.queue.push(world_.stage.now + down_ns, Happening::kHostRestart, id);
}

void HostFaults::on_restart(unsigned id) {
  Host& host = *world_.hosts[id];
  if (host.alive()) return;
  host.restart();
  world_.stage.trace.say(world_.stage.now, "host %u restarts", id);
  for (unsigned port = 1; port <= world_.stage.swarm.ports; ++port) {
    world_.network.port_dead(id, PortId{static_cast<std::uint8_t>(port)}) = 0;
  }
  if (world_.stage.faults_on) world_.workload.connect_to(id);
}

void HostFaults::heal() {
  for (const auto& host : world_.hosts) {
    if (!host->alive()) on_restart(host->id());
  }
}

bool HostFaults::strikes(Fault fault) {
  if (!world_.stage.active(fault) || !random_.ppm(world_.stage.swarm.rate(fault))) return false;
  world_.stage.count(fault);
  return true;
}

bool HostFaults::out_of_buffers() { return strikes(Fault::kOutOfBuffers); }

bool HostFaults::early_timer() { return strikes(Fault::kTimerEarly); }

DurationNs HostFaults::timer_delay() {
  return strikes(Fault::kTimerLate) ? random_.duration(kMicrosecondNs, 200 * kMicrosecondNs) : 0;
}

}  // namespace mrc::dst
