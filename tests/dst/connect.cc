// Setting connections up and taking them down; what a program and its peer agree on.
#include <algorithm>
#include <bit>

#include "dst/failure.h"
#include "dst/theme.h"
#include "dst/workload.h"
#include "dst/world.h"

namespace mrc::dst {
namespace {

// So many times a number is used again. Further, and PSNs of the first use would be near once more.
constexpr unsigned kMaxGeneration = 4;

void check_ok(const Status& status, const char* call) {
  MRC_CHECK(status.ok(), "%s refused good arguments: %s", call, status.what());
}

}  // namespace

std::uint32_t Workload::draw_path_mtu() {
  static constexpr std::uint32_t kMtus[] = {256, 256, 256, 512, 512, 1024, 1024, 2048, 4096, 8192};
  if (random_.one_in(6)) return 4 * random_.between(64, 512);
  return kMtus[random_.below(std::size(kMtus))];
}

// A timer that is longer than the network can take, now and then one that is too short.
std::uint8_t Workload::draw_timeout() {
  const auto transit_us =
      static_cast<std::uint64_t>(2 * world_.network.longest_transit_ns() / kMicrosecondNs);
  const auto needed = static_cast<std::uint32_t>(std::bit_width(transit_us));
  const std::uint32_t shorter = random_.one_in(8) ? random_.between(1, 3) : 0;
  const std::uint32_t timeout = needed + random_.below(2) - std::min(shorter, needed);
  return static_cast<std::uint8_t>(std::clamp<std::uint32_t>(timeout, 4, 13));
}

// Queue pairs between two hosts that agree on the profile are under one controller.
core::CcProfile Workload::cc_profile(unsigned host_a, unsigned host_b) {
  const Swarm& swarm = world_.stage.swarm;
  const std::uint64_t dice =
      mix64(swarm.seed ^ (std::min(host_a, host_b) * 64 + std::max(host_a, host_b) + 0xCC'0000));
  core::CcProfile profile;
  profile.network_trims = swarm.switches_trim;
  if (dice % 3 == 0) {
    profile.nscc.base_rtt_ns = static_cast<std::uint32_t>(2 * swarm.max_delay_ns);
  }
  profile.nscc.disable_qa = dice % 5 == 0;
  return profile;
}

Numbers Workload::draw_numbers() {
  Numbers numbers{};
  for (int side = 0; side < 2; ++side) {
    do {
      numbers.qp[side] = QpNumber{random_.between(3, kQpNumberMask)};
    } while (std::any_of(world_.hosts.begin(), world_.hosts.end(), [&](const auto& host) {
      return world_.model.find(host->id(), numbers.qp[side]).has_value();
    }));
    const std::uint32_t before_wrap = random_.below(world_.stage.swarm.psns_before_wrap);
    numbers.first_psn[side] = random_.one_in(2) ? Psn(Psn::kMask - before_wrap)
                                                : Psn(static_cast<std::uint32_t>(random_.bits()));
  }
  if (numbers.qp[0] == numbers.qp[1]) return draw_numbers();
  return numbers;
}

void Workload::connect_random_pair() { connect_to(random_.below(world_.stage.swarm.hosts)); }

void Workload::connect_to(unsigned host) {
  const unsigned hosts = world_.stage.swarm.hosts;
  if (!world_.hosts[host]->alive()) return;
  const unsigned start = random_.between(1, hosts - 1);
  for (unsigned i = 0; i + 1 < hosts; ++i) {
    const unsigned other = (host + 1 + (start + i) % (hosts - 1)) % hosts;
    if (!world_.hosts[other]->alive()) continue;
    connect(host, other, draw_numbers());
    return;
  }
}

void Workload::draw_end(Connection& connection, std::uint8_t side, Numbers numbers) {
  const Swarm& swarm = world_.stage.swarm;
  End& end = connection.ends[side];
  Host& host = *world_.hosts[end.host];
  end.config.number = numbers.qp[side];
  end.config.domain = ProtectionDomain{random_.between(1, 2)};
  const std::uint32_t fewest = swarm.many_tiny_messages ? 128 : 4;
  end.config.max_sends = random_.logarithmic(fewest, 128);
  end.config.max_receives = random_.logarithmic(fewest, 128);
  const auto profile = random_.below(static_cast<std::uint32_t>(host.profiles().size()));
  end.init.ev_profile = &host.profile(profile);
  const unsigned evs = end.init.ev_profile->size();
  const bool themed = theme_of_seed(swarm.seed) != Theme::kAny;
  if ((!swarm.heals() && !themed) || random_.one_in(3)) end.init.ev_min_active = 1;
  if (random_.one_in(3)) end.init.active_evs = static_cast<std::uint16_t>(random_.between(1, evs));
  end.rtr.max_wimm_dest = static_cast<std::uint16_t>(random_.logarithmic(1, 128));
  end.rtr.mpr_dest =
      static_cast<std::uint8_t>(random_.one_in(20) ? 255 : random_.logarithmic(1, 16));
  end.rtr.trim_nack = !random_.one_in(10);
  end.rtr.sack_threshold_bytes = random_.one_in(2) ? 0 : random_.below(16'384);
  end.rts.first_psn = numbers.first_psn[side];
  end.rts.timeout = draw_timeout();
  end.rts.linear_retries = static_cast<std::uint8_t>(random_.between(0, core::kMaxLinearRetries));
  end.rts.exponential_retries = swarm.retries_limited
                                    ? static_cast<std::uint8_t>(random_.between(1, 3))
                                    : core::kMaxExponentialRetries;
  end.window_units = end.rtr.mpr_dest;
}

// What the two ends exchange before they go to RTR and RTS.
void Workload::agree(End& from, End& to) {
  to.rtr.remote = world_.hosts[from.host]->address();
  to.rtr.remote_qp = from.config.number;
  to.rtr.first_psn = from.rts.first_psn;
  from.rts.max_wimm = to.rtr.max_wimm_dest;
  from.rts.mpr = to.rtr.mpr_dest;
}

std::uint32_t Workload::connect(unsigned host_a, unsigned host_b, const Numbers& numbers) {
  const std::uint32_t path_mtu = draw_path_mtu();
  Connection connection{
      .ends = {},
      .flows = {Flow(numbers.first_psn[0], path_mtu), Flow(numbers.first_psn[1], path_mtu)}};
  connection.generation = numbers.generation;
  connection.ends[0].host = host_a;
  connection.ends[1].host = host_b;
  if (world_.stage.swarm.retries_limited) connection.add_doom(Doom::kRetries);
  const bool dynamic = world_.stage.swarm.on(Fault::kWindowChange) || random_.one_in(4);
  core::CcProfile cc = cc_profile(host_a, host_b);
  if (random_.one_in(6)) cc.algorithm = core::CcAlgorithm::kNone;
  for (std::uint8_t side = 0; side < 2; ++side) {
    draw_end(connection, side, numbers);
    connection.ends[side].rtr.path_mtu = path_mtu;
    connection.ends[side].rtr.dynamic_mpr = dynamic;
    connection.ends[side].init.cc = cc;
  }
  agree(connection.ends[0], connection.ends[1]);
  agree(connection.ends[1], connection.ends[0]);
  for (End& end : connection.ends)
    add_region(end, 24 * path_mtu + random_.below(200'000));
  world_.checker.on_connect(host_a, host_b);
  const std::uint32_t uid = world_.model.add(std::move(connection)).uid;
  const std::uint64_t packets =
      world_.stage.swarm.packets / (2 * world_.stage.swarm.connections) + 1;
  const bool one_way = random_.one_in(3);
  programs_.push_back({draw_program({uid, 0}, one_way ? 2 * packets : packets),
                       draw_program({uid, 1}, one_way ? 0 : packets)});
  for (std::uint8_t side = 0; side < 2; ++side)
    bring_up({uid, side});
  return uid;
}

Workload::Program Workload::draw_program(EndRef sender, std::uint64_t packets) {
  Program drawn;
  const std::uint64_t room = reserve_begin(sender.peer());
  drawn.packets_left = packets;
  drawn.ring = TargetRing(room);
  drawn.immediate_percent = random_.pick(std::vector<std::uint32_t>{0, 10, 50, 100});
  drawn.signal_percent = random_.pick(std::vector<std::uint32_t>{20, 60, 100});
  drawn.most_outstanding = world_.model.end(sender).config.max_sends;
  drawn.largest = static_cast<std::uint32_t>(room / 3);
  drawn.think_ns = random_.one_in(2) ? 0 : random_.logarithmic(1'000, 200'000);
  const DurationNs longest = world_.stage.swarm.longest_think_ns;
  if (longest != 0) drawn.think_ns = random_.duration(kMillisecondNs, longest);
  if (world_.stage.swarm.many_tiny_messages) drawn.think_ns = 0;
  return drawn;
}

void Workload::add_region(End& end, std::uint32_t bytes) {
  Host& host = *world_.hosts[end.host];
  // Regions lie anywhere in the address space, also right below its end.
  const std::uint64_t slot = host.memory().size() + 1;
  std::uint64_t address = slot << 40 | random_.below(1 << 20);
  if (random_.one_in(8)) address = ~std::uint64_t{0} - (slot << 32) - bytes;
  const core::MemoryRegion region{address, bytes, end.config.domain, true};
  end.region = host.memory().add_region(region);
  const auto key = host.engine().register_memory(region, host.keys());
  MRC_CHECK(key.ok(), "register_memory refused a good region: %s", key.status().what());
  host.memory().set_key(end.region, key.value());
}

std::uint64_t Workload::reserve_begin(EndRef target) const {
  const End& end = world_.model.end(target);
  const auto& region = world_.hosts[end.host]->memory().region(end.region);
  return region.what.length - 4 * std::uint64_t{end.rtr.path_mtu};
}

void Workload::bring_up(EndRef ref) {
  End& end = world_.model.end(ref);
  Host& host = *world_.hosts[end.host];
  core::Endpoint& engine = host.engine();
  end.created = host.clock();
  check_ok(engine.create_qp(end.config), "create_qp");
  check_ok(engine.init_qp(end.config.number, end.init), "init_qp");
  check_ok(engine.ready_to_receive(end.config.number, end.rtr), "ready_to_receive");
  check_ok(engine.ready_to_send(host.clock(), end.config.number, end.rts), "ready_to_send");
  for (std::uint32_t i = 0; i < end.config.max_receives; ++i)
    post_receive(ref);
  schedule_post(ref, random_.duration(0, 20 * kMicrosecondNs));
}

void Workload::destroy(EndRef ref) {
  const End& end = world_.model.end(ref);
  Host& host = *world_.hosts[end.host];
  if (end.state == EndState::kGone || !host.alive()) return;
  check_ok(host.engine().destroy_qp(end.config.number), "destroy_qp");
  if (const auto key = host.memory().region(end.region).key) {
    check_ok(host.engine().invalidate_memory(*key), "invalidate_memory");
    host.memory().invalidate(end.region);
  }
  world_.model.remove(ref);
}

// The new connection has the old numbers; its PSNs start far away, as a careful program does.
bool Workload::reconnect(std::uint32_t connection) {
  const EndRef ends[2] = {{connection, 0}, {connection, 1}};
  Numbers numbers{};
  numbers.generation = world_.model.connection(connection).generation + 1;
  if (numbers.generation > kMaxGeneration) return false;
  for (int side = 0; side < 2; ++side) {
    const End& end = world_.model.end(ends[side]);
    if (end.state == EndState::kGone || !world_.hosts[end.host]->alive()) return false;
    if (!finished(ends[side])) return false;
    const Flow& flow = world_.model.outgoing(ends[side]);
    numbers.qp[side] = end.config.number;
    numbers.first_psn[side] = flow.psn(flow.sent_packets()) + random_.between(0x10'0000, 0x30'0000);
  }
  const unsigned host_a = world_.model.end(ends[0]).host;
  const unsigned host_b = world_.model.end(ends[1]).host;
  for (const EndRef ref : ends)
    destroy(ref);
  connect(host_a, host_b, numbers);
  world_.hosts[host_a]->pump();
  world_.hosts[host_b]->pump();
  return true;
}

}  // namespace mrc::dst
