#include "dst/api_faults.h"

#include <algorithm>

#include "dst/failure.h"
#include "dst/world.h"

namespace mrc::dst {
namespace {

constexpr Fault kKinds[] = {
    Fault::kBadArguments,  Fault::kPostToDeadQp,   Fault::kFullSendQueue,  Fault::kInvalidateMemory,
    Fault::kBadAccess,     Fault::kReceiveMissing, Fault::kImmediateFlood, Fault::kLocalFailure,
    Fault::kQpNumberReuse, Fault::kWindowChange,   Fault::kEvDenied,       Fault::kEndpointProbe,
    Fault::kProfileChange,
};

void check_ok(const Status& status, const char* call) {
  MRC_CHECK(status.ok(), "%s refused good arguments: %s", call, status.what());
}

// A queue pair may have failed without its program knowing yet.
bool in_rts(const core::Endpoint& engine, QpNumber number) {
  const auto status = engine.query_qp(number);
  return status.ok() && status.value().state == core::QpState::kReadyToSend;
}

}  // namespace

ApiFaults::ApiFaults(World& world) : world_(world), random_(world.stage.swarm.seed, Stream::kApi) {}

void ApiFaults::start() {
  for (const Fault kind : kKinds) {
    if (world_.stage.swarm.on(kind)) schedule_next(kind);
  }
}

void ApiFaults::schedule_next(Fault kind) {
  const DurationNs mean = world_.stage.swarm.fault_phase_ns / world_.stage.swarm.rate(kind);
  world_.stage.queue.push(world_.stage.now + random_.duration(1, 2 * mean), Happening::kApiFault,
                          static_cast<std::uint32_t>(kind));
}

std::optional<EndRef> ApiFaults::random_live_end() {
  const auto ends = world_.model.ends();
  if (ends.empty()) return std::nullopt;
  const EndRef ref = random_.pick(ends);
  const End& end = world_.model.end(ref);
  const End& peer = world_.model.end(ref.peer());
  const bool live = end.state == EndState::kLive && peer.state == EndState::kLive &&
                    world_.hosts[end.host]->alive() &&
                    world_.hosts[end.host]->paused_until() <= world_.stage.now;
  return live ? std::optional(ref) : std::nullopt;
}

void ApiFaults::on_fault(Fault kind) {
  if (!world_.stage.faults_on) return;
  schedule_next(kind);
  const auto ref = random_live_end();
  if (!ref) return;
  const End& end = world_.model.end(*ref);
  world_.stage.trace.say(world_.stage.now, "fault %s: host %u qp %06x", fault_name(kind), end.host,
                         static_cast<unsigned>(end.config.number));
  world_.stage.count(kind);
  strike(kind, *ref);
  Host& host = *world_.hosts[world_.model.end(*ref).host];
  if (host.alive()) host.pump();
}

void ApiFaults::strike(Fault kind, EndRef ref) {
  switch (kind) {
    case Fault::kBadArguments: {
      const End& end = world_.model.end(ref);
      check_bad_arguments(*world_.hosts[end.host], end, random_);
      // It connects a queue pair to the same peer, for which old news of its ports is void.
      world_.checker.on_connect(end.host, world_.model.end(ref.peer()).host);
      break;
    }
    case Fault::kPostToDeadQp:
      post_to_dead(ref);
      break;
    case Fault::kFullSendQueue:
      fill_send_queue(ref);
      break;
    case Fault::kInvalidateMemory:
      invalidate_memory(ref);
      break;
    case Fault::kBadAccess:
      bad_access(ref);
      break;
    case Fault::kReceiveMissing:
      starve_receives(ref);
      break;
    case Fault::kImmediateFlood:
      flood_immediates(ref);
      break;
    case Fault::kLocalFailure:
      fail_locally(ref);
      break;
    case Fault::kQpNumberReuse:
      reuse_numbers(ref.connection);
      break;
    case Fault::kWindowChange:
      change_window(ref);
      break;
    case Fault::kEvDenied:
      deny_ev(ref);
      break;
    case Fault::kEndpointProbe:
      probe_endpoint(ref);
      break;
    case Fault::kProfileChange:
      change_profiles(ref);
      break;
    default:
      break;
  }
}

// The first connection from this one on that has come to rest.
void ApiFaults::reuse_numbers(std::uint32_t first) {
  const std::uint32_t count = world_.model.size();
  for (std::uint32_t i = 0; i < count; ++i) {
    if (world_.workload.reconnect((first + i) % count)) return;
  }
}

// A queue pair that failed takes no more work, and a program that tries hears nothing of it later.
void ApiFaults::post_to_dead(EndRef ref) {
  Host& host = *world_.hosts[world_.model.end(ref).host];
  for (const EndRef other : world_.model.ends_of(host.id())) {
    const End& end = world_.model.end(other);
    if (end.state != EndState::kFailed) continue;
    const Status sent = host.post_send(end.config.number, {});
    MRC_CHECK(!sent.ok(), "post_send to a failed queue pair was accepted");
    const Status received = host.post_receive(end.config.number, {});
    MRC_CHECK(!received.ok(), "post_receive to a failed queue pair was accepted");
  }
}

void ApiFaults::fill_send_queue(EndRef ref) {
  const End& end = world_.model.end(ref);
  const Flow& flow = world_.model.outgoing(ref);
  for (std::uint32_t i = 0; i < 2 * end.config.max_sends; ++i) {
    const auto request = world_.workload.make_request(ref, {0, false, true});
    if (world_.workload.post(ref, request).ok()) continue;
    const std::size_t outstanding = flow.messages().size() - end.next_report;
    const bool doomed = world_.model.connection(ref.connection).doomed();
    MRC_CHECK(doomed || outstanding >= end.config.max_sends,
              "post_send refused request %zu of a queue for %u", outstanding, end.config.max_sends);
    return;
  }
  fail("the send queue of %u requests took twice as many", end.config.max_sends);
}

void ApiFaults::invalidate_memory(EndRef ref) {
  const End& end = world_.model.end(ref);
  Host& host = *world_.hosts[end.host];
  const auto key = host.memory().region(end.region).key;
  if (!key) return;
  world_.model.connection(ref.connection).add_doom(Doom::kAccess);
  world_.workload.retire(ref.connection);
  check_ok(host.engine().invalidate_memory(*key), "invalidate_memory");
  host.memory().invalidate(end.region);
  MRC_CHECK(!host.engine().invalidate_memory(*key).ok(), "a key was invalidated twice");
}

// Something the peer must refuse: the wrong key, or bytes outside the region.
core::SendRequest ApiFaults::bad_request(EndRef ref) {
  const End& target = world_.model.end(ref.peer());
  const auto& memory = world_.hosts[target.host]->memory();
  const auto& region = memory.region(target.region);
  const std::uint32_t mtu = target.rtr.path_mtu;
  core::SendRequest request =
      world_.workload.make_request(ref, {1 + random_.below(mtu), false, true});
  const std::uint64_t end = region.what.address + region.what.length;
  switch (random_.below(8)) {
    case 0:
      request.remote_key = Rkey{static_cast<std::uint32_t>(random_.bits())};
      break;
    case 1:
      request.remote_address = region.what.address - 1;
      break;
    case 2:
      request.remote_address = end - request.length + 1;
      break;
    case 3:  // the last packet only
      request.length = 2 * mtu + 1;
      request.remote_address = end - 2 * mtu;
      break;
    case 4:
      request.remote_address = ~std::uint64_t{0} - random_.below(request.length);
      break;
    default: {  // another region, which may be of another domain or not for writing
      const auto& other = memory.region(random_.below(static_cast<std::uint32_t>(memory.size())));
      request.remote_key = other.key.value_or(Rkey{0});
      request.remote_address = other.what.address;
      break;
    }
  }
  const ProtectionDomain domain = target.config.domain;
  if (memory.allows_write(domain, request.remote_key, request.remote_address, request.length)) {
    request.remote_address = end - request.length + 1;
    request.remote_key = region.key.value_or(Rkey{0});
  }
  return request;
}

void ApiFaults::bad_access(EndRef ref) {
  End& end = world_.model.end(ref);
  const core::SendRequest request = bad_request(ref);
  world_.model.connection(ref.connection).add_doom(Doom::kAccess);
  if (world_.workload.post(ref, request).ok()) end.offended = true;
}

// The peer posts no more receives, while immediates keep coming.
void ApiFaults::starve_receives(EndRef ref) {
  Connection& connection = world_.model.connection(ref.connection);
  End& end = connection.ends[ref.side];
  End& peer = connection.ends[1 - ref.side];
  connection.add_doom(Doom::kReceiveMissing);
  world_.workload.stop_receives(ref.peer());
  world_.workload.retire(ref.connection);
  const Flow& flow = connection.flows[ref.side];
  while (flow.immediates().size() <= peer.receives_posted) {
    const auto request = world_.workload.make_request(ref, {0, true, true});
    if (!world_.workload.post(ref, request).ok()) return;
  }
  end.offended = true;
}

// More than the peer can stash, though not more than it has receives for: the engine holds them
// back.
void ApiFaults::flood_immediates(EndRef ref) {
  const Connection& connection = world_.model.connection(ref.connection);
  const Flow& flow = connection.flows[ref.side];
  const std::uint32_t count = connection.ends[ref.side].rts.max_wimm + random_.between(1, 8);
  for (std::uint32_t i = 0; i < count; ++i) {
    if (flow.immediates().size() >= connection.ends[1 - ref.side].receives_posted) return;
    const auto request = world_.workload.make_request(ref, {0, true, true});
    if (!world_.workload.post(ref, request).ok()) return;
  }
}

void ApiFaults::fail_locally(EndRef ref) {
  const End& end = world_.model.end(ref);
  Host& host = *world_.hosts[end.host];
  Connection& connection = world_.model.connection(ref.connection);
  connection.add_doom(Doom::kLocal);
  connection.add_doom(Doom::kRetries);
  world_.workload.retire(ref.connection);
  check_ok(host.engine().fail_qp(host.clock(), end.config.number), "fail_qp");
}

void ApiFaults::change_window(EndRef ref) {
  End& end = world_.model.end(ref);
  if (!end.rtr.dynamic_mpr) return;
  const auto units = static_cast<std::uint8_t>(random_.between(1, end.rtr.mpr_dest));
  core::Endpoint& engine = world_.hosts[end.host]->engine();
  if (!in_rts(engine, end.config.number)) return;
  check_ok(engine.set_receive_window(end.config.number, units), "set_receive_window");
  end.window_units = units;
}

// Never more than half of the paths of a plane, so that there is always one left.
void ApiFaults::deny_ev(EndRef ref) {
  End& end = world_.model.end(ref);
  Host& host = *world_.hosts[end.host];
  const auto& profile = *end.init.ev_profile;
  const auto ev = static_cast<std::uint16_t>(random_.below(profile.size()));
  const bool deny = !end.denied.contains(ev);
  unsigned on_plane = 0;
  unsigned denied_on_plane = 0;
  for (std::uint16_t i = 0; i < profile.size(); ++i) {
    if (profile.port(EvIndex{i}) != profile.port(EvIndex{ev})) continue;
    ++on_plane;
    denied_on_plane += end.denied.contains(i) ? 1 : 0;
  }
  if (deny && 2 * (denied_on_plane + 1) > on_plane) return;
  const Status status =
      host.engine().set_ev_denied(host.clock(), end.config.number, EvIndex{ev}, deny);
  check_ok(status, "set_ev_denied");
  if (deny) {
    end.denied.insert(ev);
  } else {
    end.denied.erase(ev);
  }
  const auto state = host.engine().query_ev(end.config.number, EvIndex{ev});
  MRC_CHECK(state.ok() && (state.value() == core::EvState::kDenied) == deny,
            "query_ev does not show what set_ev_denied did");
}

// One EV or all are replaced, on their port or on another, and every other time the window changes.
// What was denied stays so unless it is replaced.
void ApiFaults::change_profiles(EndRef ref) {
  End& end = world_.model.end(ref);
  Host& host = *world_.hosts[end.host];
  if (!in_rts(host.engine(), end.config.number)) return;
  const core::EvProfile& before = *end.init.ev_profile;
  const bool all = random_.one_in(8);
  const std::uint32_t chosen = random_.below(before.size());
  std::vector<core::EvEntry> entries;
  for (std::uint16_t i = 0; i < before.size(); ++i) {
    entries.push_back(before.entry(EvIndex{i}));
    if (all || i == chosen) {
      entries.back().entropy = random_.below(0xFFFF'FFFF);
      if (random_.one_in(4)) {
        entries.back().port =
            PortId{static_cast<std::uint8_t>(1 + random_.below(world_.stage.swarm.ports))};
      }
      end.denied.erase(i);
    }
    entries.back().denied = end.denied.contains(i);
  }
  const auto order = before.listed(0).empty() ? core::EvOrder::kDrawn : core::EvOrder::kAsListed;
  profiles_.push_back(core::EvProfile::create(entries, 0xFFFF'FFFF, order).value());
  core::CcProfile cc = end.init.cc;
  if (random_.one_in(2)) cc.nscc.max_cwnd = random_.logarithmic(16'384, 1'048'576);
  check_ok(host.engine().follow_profiles(host.clock(), end.config.number, profiles_.back(), cc),
           "follow_profiles");
  end.init.ev_profile = &profiles_.back();
  end.init.cc = cc;
}

void ApiFaults::probe_endpoint(EndRef ref) {
  const End& end = world_.model.end(ref);
  Host& host = *world_.hosts[end.host];
  const auto& profile = *end.init.ev_profile;
  const EvIndex ev{static_cast<std::uint16_t>(random_.below(profile.size()))};
  core::EndpointProbe probe;
  probe.peer = end.rtr.remote;
  probe.port = profile.port(ev);
  probe.entropy = profile.entry(ev).entropy;
  probe.request_id = next_request_id_++;
  probe.timeout_ns = random_.duration(10 * kMicrosecondNs, 2 * kMillisecondNs);
  if (!host.engine().send_endpoint_probe(host.clock(), probe).ok()) return;
  probes_.insert({host.id(), probe.request_id});
  MRC_CHECK(!host.engine().send_endpoint_probe(host.clock(), probe).ok(),
            "two endpoint probes with one request id were accepted");
}

void ApiFaults::on_answer(Host& host, const core::Event& event) {
  MRC_CHECK(probes_.erase({host.id(), event.request_id}) == 1,
            "host %u: an answer to endpoint probe %u, which waits for none", host.id(),
            event.request_id);
  MRC_CHECK(!event.ok || event.rtt_ns >= 0, "an endpoint probe took %d ns",
            static_cast<int>(event.rtt_ns));
}

void ApiFaults::check_all_answered() {
  for (const auto& [host, id] : probes_) {
    if (world_.hosts[host]->events_lost() != 0 || world_.stage.swarm.on(Fault::kCrash)) continue;
    fail("host %u never heard of endpoint probe %u again", host, id);
  }
}

void ApiFaults::heal() {
  for (const EndRef ref : world_.model.ends()) {
    End& end = world_.model.end(ref);
    core::Endpoint& engine = world_.hosts[end.host]->engine();
    if (end.state == EndState::kGone) continue;
    const TimeNs now = world_.hosts[end.host]->clock();
    // Also of those that failed: they answer, and what was denied may be the only path left.
    for (const std::uint16_t ev : end.denied) {
      check_ok(engine.set_ev_denied(now, end.config.number, EvIndex{ev}, false), "set_ev_denied");
    }
    end.denied.clear();
    const bool live = in_rts(engine, end.config.number);
    if (!live || end.window_units == end.rtr.mpr_dest) continue;
    check_ok(engine.set_receive_window(end.config.number, end.rtr.mpr_dest), "set_receive_window");
    end.window_units = end.rtr.mpr_dest;
  }
}

}  // namespace mrc::dst
