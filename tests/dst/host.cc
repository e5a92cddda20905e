#include "dst/host.h"

#include <algorithm>

#include "dst/alloc_guard.h"
#include "dst/carriage.h"
#include "dst/failure.h"
#include "dst/world.h"

namespace mrc::dst {
namespace {

Unpacked read_struct(const Flight& flight) {
  Unpacked read;
  read.corrupt = flight.corrupt;
  read.drop = flight.corrupt ? DropReason::kBadIcrc : DropReason::kNone;
  read.packet = flight.packet;
  read.arrival = {.source = flight.source,
                  .port = flight.port,
                  .entropy = flight.entropy,
                  .congestion_experienced = flight.marked,
                  .trim = flight.trim,
                  .refusal = core::CallerRefusal::kNone,
                  .payload_length = flight.payload_length};
  return read;
}

bool same_on_wire(wire::Packet a, wire::Packet b) {
  a.bth.pad = 0;
  b.bth.pad = 0;
  return test::as_carried(a) == test::as_carried(b);
}

}  // namespace

// Fails the seed if a call on the packet path allocated.
template <typename Call>
auto Host::run(const char* verb, Call&& call) {
  const std::uint64_t before = packet_path_allocations();
  const auto result = [&] {
    const PacketPathGuard guard;
    return call();
  }();
  MRC_CHECK(packet_path_allocations() == before, "%s allocated memory", verb);
  return result;
}

Host::Host(World& world, unsigned id)
    : world_(world),
      id_(id),
      random_(mix64(world.stage.swarm.seed + id), Stream::kHosts),
      memory_(mix64(world.stage.swarm.seed ^ (0x3E3'0000 + id))),
      keys_(random_.bits()),
      ports_up_(PortMask::first(world.stage.swarm.ports)) {
  const Swarm& swarm = world.stage.swarm;
  // Zero is wherever the caller puts it.
  if (random_.one_in(2)) clock_.jump(random_.duration(0, DurationNs{1} << 50));
  if (swarm.on(Fault::kClockDrift)) {
    clock_.set_drift_ppm(static_cast<int>(random_.below(401)) - 200);
    world.stage.count(Fault::kClockDrift);
  }
  make_profiles();
  config_.address = address();
  config_.port_count = swarm.ports;
  config_.port_bits_per_second = swarm.port_bits_per_second;
  config_.max_qps = 2 * swarm.connections + 64;
  config_.max_peers = 64;
  config_.max_regions = 512;
  config_.event_capacity = random_.logarithmic(16, 1024);
  config_.control_capacity = random_.logarithmic(64, 1024);
  config_.add_service_time = !random_.one_in(4);
  config_.jitter_ns = swarm.end_jitter_ns;
  config_.group_answers = swarm.group_answers;
  restart();
}

void Host::make_profiles() {
  const Swarm& swarm = world_.stage.swarm;
  const unsigned count = random_.between(1, 3);
  for (unsigned i = 0; i < count; ++i) {
    const std::uint32_t most = swarm.heals() ? swarm.most_evs : kMaxSearchedEvs;
    const std::uint32_t size = std::max(swarm.ports, random_.logarithmic(1, most));
    std::vector<core::EvEntry> entries(size);
    const auto salt = static_cast<std::uint32_t>(random_.bits());
    // A window of the ports, one of them at least.
    const unsigned first = swarm.narrow_profiles ? random_.below(swarm.ports) : 0;
    const unsigned ports = swarm.narrow_profiles ? random_.between(1, swarm.ports) : swarm.ports;
    for (std::uint32_t n = 0; n < size; ++n) {
      // Odd multiples of distinct numbers are distinct modulo 2^32.
      entries[n].entropy = (n + 1) * 0x9E37'79B1 + salt;
      const unsigned plane = (first + (n < ports ? n : random_.below(ports))) % swarm.ports;
      entries[n].port = PortId{static_cast<std::uint8_t>(plane + 1)};
    }
    // By the salt: a draw of its own would make other worlds of all seeds.
    const auto order = salt % 2 == 0 ? core::EvOrder::kDrawn : core::EvOrder::kAsListed;
    auto profile = core::EvProfile::create(entries, 0xFFFF'FFFF, order);
    MRC_CHECK(profile.ok(), "EvProfile::create refused a good profile: %s",
              profile.status().what());
    profiles_.push_back(std::make_unique<core::EvProfile>(std::move(profile).value()));
  }
}

bool Host::can_answer(const End& end) const {
  const core::EvProfile& profile = *end.init.ev_profile;
  for (unsigned i = 0; i < profile.size(); ++i) {
    const auto ev = static_cast<std::uint16_t>(i);
    const bool allowed = !end.denied.contains(ev);
    if (allowed && ports_up_.contains(profile.port(EvIndex{ev}))) return true;
  }
  return false;
}

DurationNs Host::longest_answer_queue_ns() const {
  wire::Packet sack;
  sack.bth.opcode = wire::Opcode::kSack;
  sack.body = wire::Sack{};
  const std::uint32_t size = wire::nominal_size(sack, 0);
  return config_.control_capacity *
         world_.network.serialization_ns(config_.port_bits_per_second, size);
}

TimeNs Host::clock() const { return clock_.read(world_.stage.now); }

void Host::restart() {
  config_.seed = random_.bits();
  const Status started = driver_.start(config_);
  MRC_CHECK(started.ok(), "Endpoint::create refused a good configuration: %s", started.what());
  engine().set_spray_quantum(world_.stage.swarm.spray_quantum);
  ports_up_ = PortMask::first(config_.port_count);
  port_masks_.insert(ports_up_.bits());
  MRC_CHECK(engine().ports_up() == ports_up_, "a new endpoint does not have all ports up");
  add_decoys();
}

// Regions that nobody may write to: of a domain without queue pairs, and without the right.
void Host::add_decoys() {
  static constexpr std::uint64_t kBytes = 16'384;
  for (std::uint32_t domain = 1; domain <= 3; ++domain) {
    const std::uint64_t address = (std::uint64_t{0xDEC0} << 40) + memory_.size() * 0x10'0000;
    const core::MemoryRegion region{address, kBytes, ProtectionDomain{domain}, domain == 3};
    const auto key = engine().register_memory(region, keys_);
    MRC_CHECK(key.ok(), "register_memory refused a good region: %s", key.status().what());
    memory_.set_key(memory_.add_region(region), key.value());
  }
}

void Host::crash() {
  driver_.stop();
  for (std::size_t i = 0; i < memory_.size(); ++i)
    memory_.invalidate(i);
  timer_deadline_ = kNever;
}

void Host::jump_clock(DurationNs ahead_ns) {
  clock_.jump(ahead_ns);
  timer_deadline_ = kNever;
  if (alive()) pump();
}

DurationNs Host::ports_steady_ns() const { return world_.stage.now - ports_changed_at_; }

void Host::set_port_up(PortId port, bool up) {
  const Status status = engine().set_port_up(clock(), port, up);
  MRC_CHECK(status.ok(), "set_port_up(%u, %d) failed: %s", static_cast<unsigned>(port), up,
            status.what());
  if (up && ports_up_.empty()) first_port_up_at_ = world_.stage.now;
  ports_changed_at_ = world_.stage.now;
  ports_up_ = up ? ports_up_.with(port) : ports_up_.without(port);
  port_masks_.insert(ports_up_.bits());
  MRC_CHECK(engine().ports_up() == ports_up_, "ports_up() does not show what set_port_up said");
  pump();
}

// --- Receiving ---

void Host::on_deliver(std::uint32_t slot) {
  Flight& flight = world_.network.flights()[slot];
  // A packet for another host passes only the driver's own address check.
  const bool for_endpoint = flight.packet.bth.destination == kEndpointQp;
  if (alive() && !(flight.misdirected && for_endpoint)) receive(flight);
  world_.network.flights().release(slot);
}

void Host::refuse(const Flight& flight, DropReason reason) {
  world_.stage.trace.arrived(world_.stage.now, flight, {reason, {}});
  engine().count_drop(reason);
}

void Host::receive(Flight& flight) {
  const bool bytes = world_.stage.swarm.carries_bytes;
  Unpacked read = bytes ? unpack(flight, world_.stage.swarm.dialect) : read_struct(flight);
  if (read.drop != DropReason::kNone && !read.corrupt) return refuse(flight, read.drop);
  if (read.corrupt) {
    world_.stage.trace.arrived(world_.stage.now, flight, {DropReason::kBadIcrc, {}});
    world_.checker.on_corrupt_arrival(*this, read.arrival, read.packet);
    driver_.deliver_corrupt(clock(), read.arrival, read.packet);
    return pump();
  }
  if (bytes && read.arrival.trim == core::TrimState::kWhole) {
    MRC_CHECK(same_on_wire(read.packet, flight.packet),
              "a frame was altered and still parsed: %s, sent %s", describe(read.packet).c_str(),
              describe(flight.packet).c_str());
  }
  const bool forged = flight.attack != Attack::kCount;  // nothing else may stop it
  if (flight.is_write() && !forged && world_.host_faults.out_of_buffers()) {
    read.arrival.refusal =
        random_.one_in(2) ? core::CallerRefusal::kNoPacketBuffer : core::CallerRefusal::kNoResource;
  }
  world_.checker.before_arrival(*this, flight, read.packet);
  driver_.deliver(clock(), read.arrival, read.packet, [&](const core::RxResult& result) {
    world_.stage.trace.arrived(world_.stage.now, flight, result);
    world_.checker.on_arrival(*this, {flight, read.arrival, read.packet, result});
    place(result.placement, flight, read.payload);
  });
  pump();
}

void Host::place(const core::Placement& placement, const Flight& flight,
                 std::span<const std::byte> payload) {
  if (placement.length == 0) return;
  const std::span<std::byte> target = memory_.placement(placement.address, placement.length);
  if (world_.stage.swarm.carries_bytes) {
    std::copy(payload.begin(), payload.end(), target.begin());
  } else {
    fetch_payload(world_.stage.swarm.seed, flight.payload_address, target);
  }
}

// --- Programs ---

Status Host::post_send(QpNumber qp, const core::SendRequest& request) {
  return run("post_send", [&] { return engine().post_send(clock(), qp, request); });
}

Status Host::post_receive(QpNumber qp, const core::ReceiveRequest& request) {
  return run("post_receive", [&] { return engine().post_receive(qp, request); });
}

void Host::on_poll() {
  poll_scheduled_ = false;
  if (!alive()) return;
  driver_.drain();
  pump();
}

// A slow program looks later.
bool Host::polls_results() {
  if (!world_.stage.active(Fault::kSlowConsumer)) return true;
  if (!poll_scheduled_) {
    poll_scheduled_ = true;
    world_.stage.count(Fault::kSlowConsumer);
    const DurationNs delay_ns = random_.duration(kMicrosecondNs, 300 * kMicrosecondNs);
    world_.stage.queue.push(world_.stage.now + delay_ns, Happening::kPoll, id_);
  }
  return false;
}

void Host::on_completion(const core::Completion& completion) {
  world_.stage.trace.completed(world_.stage.now, id_, completion);
  world_.checker.on_completion(*this, completion);
}

void Host::on_event(const core::Event& event) {
  world_.stage.trace.event(world_.stage.now, id_, event);
  world_.checker.on_event(*this, event);
}

// --- Sending and timers ---

void Host::pump() {
  if (world_.host_faults.early_timer()) driver_.fire(clock());
  driver_.pump(clock());
}

void Host::after_pump() {
  arm_port_wake();
  arm_timer();
}

// Ports that are down are offered all the same: it is the engine that must not use them.
PortMask Host::free_ports() const {
  PortMask free;
  for (unsigned i = 0; i < config_.port_count; ++i) {
    const PortId port{static_cast<std::uint8_t>(i + 1)};
    if (busy_until_[i] <= world_.stage.now) free = free.with(port);
  }
  return free;
}

void Host::on_idle(PortMask free) {
  world_.checker.on_idle(*this, free == PortMask::first(config_.port_count));
}

void Host::fail(const char* what, const core::TxPacket* packet) const {
  const std::string said = packet == nullptr ? "" : ": " + describe(packet->packet);
  dst::fail("host %u: %s%s", id_, what, said.c_str());
}

void Host::send(const core::TxPacket& packet, PortMask free) {
  const EndRef origin = world_.checker.on_transmit(*this, free, packet);
  const std::uint32_t size = wire::nominal_size(packet.packet, packet.payload_length);
  busy_until_[static_cast<std::size_t>(packet.port) - 1] =
      world_.stage.now + world_.network.serialization_ns(config_.port_bits_per_second, size);
  // Answers to forged addresses lead nowhere.
  if (packet.destination.low == 0 || packet.destination.low > world_.hosts.size()) return;
  const std::uint32_t slot = world_.network.flights().take();
  Flight& flight = world_.network.flights()[slot];
  flight.packet = packet.packet;
  flight.source = address();
  flight.from = id_;
  flight.to = static_cast<unsigned>(packet.destination.low - 1);
  flight.port = packet.port;
  flight.entropy = packet.entropy;
  flight.traffic_class = packet.traffic_class;
  flight.payload_address = packet.local_address;
  flight.payload_length = packet.payload_length;
  flight.marked = false;
  flight.trim = core::TrimState::kWhole;
  flight.corrupt = false;
  flight.misdirected = false;
  flight.provenance = Provenance::kGenuine;
  flight.attack = Attack::kCount;
  flight.origin = origin;
  world_.stage.trace.sent(world_.stage.now, flight);
  world_.packet_faults.launch(slot);
}

void Host::arm_port_wake() {
  TimeNs first = kNever;
  for (unsigned i = 0; i < config_.port_count; ++i) {
    if (busy_until_[i] > world_.stage.now) first = std::min(first, busy_until_[i]);
  }
  if (first == kNever || port_wake_ <= first) return;
  port_wake_ = first;
  world_.stage.queue.push(first, Happening::kPortFree, id_);
}

void Host::on_port_free() {
  if (port_wake_ <= world_.stage.now) port_wake_ = kNever;
  if (alive()) pump();
}

void Host::arm_timer() {
  const TimeNs deadline = engine().next_deadline();
  if (deadline == kNever || deadline >= timer_deadline_) return;
  const TimeNs now = world_.stage.now;
  TimeNs at = clock_.moment_of(deadline);
  if (at <= now) {
    // A deadline that waits only for a busy port is served when the port is free.
    if (free_ports() != PortMask::first(config_.port_count)) return;
    at = now;
  }
  timer_deadline_ = deadline;
  world_.stage.queue.push(at + world_.host_faults.timer_delay(), Happening::kHostTimer, id_,
                          ++timer_generation_);
}

void Host::on_timer_event(std::uint32_t generation) {
  if (!alive() || generation != timer_generation_) return;
  timer_deadline_ = kNever;
  driver_.fire(clock());
  pump();
}

}  // namespace mrc::dst
