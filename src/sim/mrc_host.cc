#include "sim/mrc_host.h"

#include <algorithm>

#include "base/assert.h"
#include "wire/codec.h"

namespace mrc::sim {
namespace {

constexpr std::uint32_t kMaxSends = 32;
constexpr std::uint32_t kMaxReceives = 32;  // immediates in flight per connection
constexpr std::uint32_t kControlPerQp = 4;  // answers that wait for a port
// Packets of a queue pair that may be lost, or small, beside a congestion window of full ones.
constexpr std::uint32_t kMinOutstanding = 32;
constexpr std::uint64_t kMaxPart = std::uint64_t{1} << 30;
constexpr unsigned kWayBackEvsPerPlane = 4;
constexpr std::uint32_t kEthernetBytes = 14 + 4;  // header and check sequence
constexpr std::uint32_t kIpv6Bytes = 40;
constexpr std::uint32_t kUdpBytes = 8;
constexpr std::uint32_t kIcrcBytes = 4;

std::uint32_t receive_slots(const PlannedConnection& plan) {
  return std::clamp(plan.notifies, 1U, kMaxReceives);
}

TimeNs to_ns(Time time) { return time / fabric::kPicosecondsPerNs; }
std::uint32_t host_of(const Address& address) {
  return static_cast<std::uint32_t>(address.low - 1);
}

// Behind the payload: ICRC or tag.
std::uint32_t trailer_bytes(const SimConfig& config) {
  return config.mrc.seal.on ? SealCost::kTagBytes : kIcrcBytes;
}

// Ethernet header and check sequence, IP headers, UDP, what seals it, and ICRC or tag.
std::uint32_t frame_extra_bytes(const SimConfig& config) {
  const std::uint32_t tunnel = config.forwarding == fabric::ForwardingMode::kSrv6 ? kIpv6Bytes : 0;
  const std::uint32_t seal = config.mrc.seal.on ? SealCost::kHeaderBytes : 0;
  return kEthernetBytes + tunnel + kIpv6Bytes + kUdpBytes + seal + trailer_bytes(config);
}

// Of a packet with so much payload and its answer through an idle fabric; what hosts take is no
// part of it.
Time round_trip(const SimConfig& config, const fabric::Topology& topology, unsigned hops,
                std::uint32_t payload_bytes) {
  constexpr wire::Packet kSack{.bth = {.opcode = wire::Opcode::kSack}};
  const std::uint64_t answer = frame_extra_bytes(config) + wire::header_length(kSack);
  const std::uint64_t bytes = full_packet_bytes(config) - config.path_mtu + payload_bytes + answer;
  const auto one = [&](fabric::LinkTier tier) {
    const fabric::LinkClass& c = topology.link_class(tier);
    return 2 * c.delay_ps + fabric::transmission_ps(bytes, c.bits_per_second);
  };
  Time total = 2 * one(fabric::LinkTier::kHost);
  if (hops >= 4) total += 2 * one(fabric::LinkTier::kT0T1);
  if (hops >= 6) total += 2 * one(fabric::LinkTier::kT1T2);
  return total;
}

}  // namespace

std::uint32_t full_packet_bytes(const SimConfig& config) {
  constexpr wire::Packet kWrite{.bth = {.has_timestamp = true}};
  return frame_extra_bytes(config) + static_cast<std::uint32_t>(wire::header_length(kWrite)) +
         config.path_mtu;
}

std::uint32_t trimmed_packet_bytes(const SimConfig& config) {
  return frame_extra_bytes(config) - trailer_bytes(config) +
         static_cast<std::uint32_t>(wire::trimmed_length(/*has_timestamp=*/true));
}

Time longest_base_rtt(const SimConfig& config, const fabric::Topology& topology) {
  return round_trip(config, topology, topology.longest_hops(), config.path_mtu);
}

Time idle_rtt(const SimConfig& config, const fabric::Topology& topology,
              const PacketBetween& packet) {
  const unsigned hops = topology.hops(packet.source, packet.destination);
  return round_trip(config, topology, hops, packet.payload_bytes);
}

std::uint64_t plane_bdp_bytes(const SimConfig& config, const fabric::Topology& topology) {
  const auto rtt_ns =
      static_cast<std::uint64_t>(to_ns(longest_base_rtt(config, topology) + config.queue_slack_ps));
  return rtt_ns * (topology.spec().host_link.bits_per_second / 1'000'000) / 8'000;
}

MrcWorld::MrcWorld(const SimConfig& sim_config, const fabric::Routing& fabric_routing,
                   PacketPool& packet_pool, HostListener& host_listener)
    : config(&sim_config),
      routing(&fabric_routing),
      packets(&packet_pool),
      listener(&host_listener),
      extra_bytes(frame_extra_bytes(sim_config)) {
  const fabric::Topology& topology = routing->topology();
  const bool hashed = config->forwarding == fabric::ForwardingMode::kEcmp;
  const auto make = [&](unsigned evs, std::vector<core::EvProfile>& out) {
    if (hashed) {
      out.push_back(fabric::make_hashed_profile(topology, evs));
      return;
    }
    for (unsigned s = 0; s < topology.hosts_per_t0(); ++s)
      out.push_back(fabric::make_ev_profile(*routing, evs, s));
  };
  make(config->mrc.evs, profiles);
  make(kWayBackEvsPerPlane * topology.planes(), way_back);

  // More than twice the largest congestion window, so that a gap does not stop the sender.
  const std::uint64_t bdp = topology.planes() * plane_bdp_bytes(*config, topology);
  const std::uint64_t psns = 4 * bdp / config->path_mtu + 1;
  const std::uint64_t units = (psns + core::kWindowUnitPsns - 1) / core::kWindowUnitPsns;
  // The largest congestion window in full packets, and some for those that are lost.
  max_outstanding = static_cast<std::uint16_t>(
      std::min<std::uint64_t>(kMinOutstanding + 3 * bdp / (2 * config->path_mtu), 0xFFFF));
  window_units = config->mrc.window_units != 0
                     ? config->mrc.window_units
                     : static_cast<std::uint8_t>(units > 255 ? 255 : units);
}

DurationNs MrcWorld::base_rtt_ns(unsigned source, unsigned destination) const {
  const fabric::Topology& topology = routing->topology();
  return to_ns(idle_rtt(*config, topology, {source, destination, config->path_mtu}) +
               2 * config->host_delay_ps);
}

core::EndpointConfig MrcHost::endpoint_config(const MrcWorld& world, std::uint32_t host,
                                              unsigned qps) {
  core::EndpointConfig config;
  config.address = host_address(host);
  config.port_count = world.routing->topology().planes();
  config.port_bits_per_second = world.routing->topology().spec().host_link.bits_per_second;
  config.seed = world.config->seed * 0x9E37'79B9'7F4A'7C15 + host;
  config.max_qps = qps;
  config.max_peers = qps;
  config.max_regions = 1;
  config.event_capacity = 0;  // nobody reads them
  config.control_capacity = kControlPerQp * std::max(2U, qps);
  config.endpoint_request_capacity = 0;
  return config;
}

MrcHost::MrcHost(MrcWorld& world, std::uint32_t host, const std::vector<PlannedConnection>& planned)
    : world_(&world),
      host_(host),
      endpoint_(core::Endpoint::create(
                    endpoint_config(world, host,
                                    std::max<unsigned>(1, static_cast<unsigned>(planned.size()))))
                    .value()) {
  const core::MemoryRegion everything{.address = 0,
                                      .length = ~std::uint64_t{0},
                                      .domain = ProtectionDomain{1},
                                      .remote_write = true};
  MRC_ASSERT(endpoint_->register_memory(everything, kMemoryKey).ok());
  connections_.reserve(planned.size());
  for (const PlannedConnection& plan : planned)
    connections_.push_back(
        {plan, QpNumber{static_cast<std::uint32_t>(connections_.size()) + 3}, false});
}

void MrcHost::post(Time now, const Message& message) {
  const std::uint32_t connection =
      find_connection(connections_, message.destination, message.connection);
  if (!connections_[connection].open) open(now, connection);
  waiting_.push_back({connection, message});
  post_waiting(now);
}

void MrcHost::post_waiting(Time now) {
  while (next_waiting_ < waiting_.size() && post_part(now, waiting_[next_waiting_]))
    ++next_waiting_;
  if (next_waiting_ < waiting_.size()) return;
  waiting_ = {};
  next_waiting_ = 0;
}

// Posts what fits; true when the whole message is with the engine.
bool MrcHost::post_part(Time now, Waiting& waiting) {
  const Message& m = waiting.message;
  do {
    const std::uint64_t left = m.bytes - waiting.offset;
    const bool last = left <= kMaxPart;
    const core::SendRequest request{.id = m.task,
                                    .local_address = task_address(m.task) + waiting.offset,
                                    .length = static_cast<std::uint32_t>(last ? left : kMaxPart),
                                    .remote_address = task_address(m.task) + waiting.offset,
                                    .remote_key = kMemoryKey,
                                    .with_immediate = last && m.notify,
                                    .immediate = m.task,
                                    .signaled = last};
    const Status status =
        endpoint_->post_send(to_ns(now), connections_[waiting.connection].qp, request);
    if (status.code() == ErrorCode::kNoSpace) return false;
    if (!status.ok()) {
      world_->listener->on_sent(now, m.task, false);
      return true;
    }
    waiting.offset += request.length;
  } while (waiting.offset < m.bytes);
  return true;
}

// Both ends at once: how they agree on numbers is not part of the protocol.
void MrcHost::open(Time now, std::uint32_t connection) {
  Connection& mine = connections_[connection];
  MrcHost& peer = *world_->hosts[mine.plan.peer];
  Connection& theirs =
      peer.connections_[find_connection(peer.connections_, host_, mine.plan.number)];
  create_qp(mine);
  peer.create_qp(theirs);
  connect(now, mine, theirs);
  peer.connect(now, theirs, mine);
}

void MrcHost::create_qp(Connection& c) {
  const SimConfig& config = *world_->config;
  Status status = endpoint_->create_qp({.number = c.qp,
                                        .domain = ProtectionDomain{1},
                                        .max_sends = std::clamp(c.plan.sends, 1U, kMaxSends),
                                        .max_receives = receive_slots(c.plan)});
  MRC_ASSERT(status.ok());
  core::QpInit init;
  init.ev_profile = &profile_of(c);
  init.cc.algorithm = config.mrc.algorithm;
  init.cc.network_trims = config.trimming;
  init.cc.nscc = config.mrc.nscc;
  if (init.cc.nscc.base_rtt_ns == 0 && !config.mrc.learn_base_rtt)
    init.cc.nscc.base_rtt_ns = static_cast<std::uint32_t>(world_->base_rtt_ns(host_, c.plan.peer));
  init.oblivious = config.mrc.oblivious;
  init.probes = config.mrc.probes;
  init.ev_counters = false;  // nobody reads them
  if (config.mrc.hints) init.hints.remote_recv_peers = world_->incast_degree[c.plan.peer];
  status = endpoint_->init_qp(c.qp, init);
  MRC_ASSERT(status.ok());
  c.open = true;
}

void MrcHost::connect(Time now, Connection& mine, const Connection& theirs) {
  const core::QpReadyToReceive rtr{
      .remote = host_address(mine.plan.peer),
      .remote_qp = theirs.qp,
      .first_psn = Psn(mine.plan.peer * 7919 + 1),
      .path_mtu = world_->config->path_mtu,
      .max_wimm_dest = static_cast<std::uint16_t>(receive_slots(mine.plan)),
      .mpr_dest = theirs.plan.sends == 0 ? std::uint8_t{1} : world_->window_units,
      .trim_nack = true,
      .sack_threshold_bytes = world_->config->mrc.sack_each_packet ? 0u : 16'384u};
  Status status = endpoint_->ready_to_receive(mine.qp, rtr);
  MRC_ASSERT(status.ok());
  for (std::uint32_t i = 0; i < receive_slots(mine.plan); ++i) {
    status = endpoint_->post_receive(mine.qp, {});
    MRC_ASSERT(status.ok());
  }
  if (mine.plan.sends == 0) return;
  status =
      endpoint_->ready_to_send(to_ns(now), mine.qp,
                               {.first_psn = Psn(host_ * 7919 + 1),
                                .max_wimm = static_cast<std::uint16_t>(receive_slots(theirs.plan)),
                                .mpr = world_->window_units,
                                .max_outstanding = world_->max_outstanding,
                                .timeout = world_->config->mrc.timeout});
  MRC_ASSERT(status.ok());
}

void MrcHost::on_packet(Time now, PacketId packet, unsigned plane) {
  const PacketHead& head = world_->packets->head(packet);
  const PacketBody body = world_->packets->body(packet);
  const wire::Packet& transport = std::get<wire::Packet>(body.packet);
  core::Arrival arrival;
  arrival.source = host_address(head.source);
  arrival.port = PortId{static_cast<std::uint8_t>(plane + 1)};
  arrival.entropy = head.entropy;
  arrival.congestion_experienced = head.congestion_experienced;
  arrival.trim = static_cast<core::TrimState>(head.trim);
  arrival.payload_length = head.trim == PacketTrim::kWhole ? body.payload_bytes : 0;
  if (head.corrupt) {
    endpoint_->on_corrupt_packet(to_ns(now), arrival, transport);
    return;
  }
  const core::RxResult result = endpoint_->on_packet(to_ns(now), arrival, transport);
  if (result.placement.length > 0) {
    world_->listener->on_placed(now, {.host = host_,
                                      .plane = plane,
                                      .from = body.local_address,
                                      .to = result.placement.address,
                                      .bytes = result.placement.length});
  }
  drain_completions(now);
}

void MrcHost::on_timer(Time now) {
  endpoint_->on_timer(to_ns(now));
  drain_completions(now);
}

void MrcHost::drain_completions(Time now) {
  core::Completion completion;
  bool room = false;
  while (endpoint_->next_completion(completion)) {
    const bool ok = completion.status == core::CompletionStatus::kSuccess;
    if (completion.kind == core::CompletionKind::kSend) {
      room = true;
      world_->listener->on_sent(now, static_cast<TaskId>(completion.id), ok);
    } else if (ok) {
      const Status status = endpoint_->post_receive(completion.qp, {});
      MRC_ASSERT(status.ok());
      world_->listener->on_received(now, completion.immediate);
    }
  }
  if (room && !waiting_.empty()) post_waiting(now);
}

bool MrcHost::next_packet(Time now, PortMask free_ports, Outgoing& out) {
  core::TxPacket tx;
  if (!endpoint_->next_packet(to_ns(now), free_ports, tx)) return false;
  fill(tx, out);
  return true;
}

void MrcHost::fill(const core::TxPacket& tx, Outgoing& out) {
  out.packet = world_->packets->take(
      {.packet = tx.packet, .local_address = tx.local_address, .payload_bytes = tx.payload_length});
  out.plane = static_cast<unsigned>(tx.port) - 1;
  out.probe = tx.packet.bth.opcode == wire::Opcode::kProbe ||
              tx.packet.bth.opcode == wire::Opcode::kEndpointRequest;
  if (!world_->routing->path_of(tx.entropy, out.path)) {
    out.path = {};
    out.path.plane = static_cast<std::uint8_t>(out.plane);
  }
  PacketHead& head = world_->packets->head(out.packet);
  head.source = host_;
  head.destination = host_of(tx.destination);
  head.entropy = tx.entropy;
  head.bytes = world_->extra_bytes + static_cast<std::uint32_t>(wire::header_length(tx.packet)) +
               ((tx.payload_length + 3) & ~3u);
  switch (tx.traffic_class) {
    case core::TrafficClass::kControl:
      head.priority = PacketClass::kControl;
      ++control_packets_;
      break;
    case core::TrafficClass::kTrimmable:
    case core::TrafficClass::kTrimmableRetransmission:
      head.priority = PacketClass::kData;
      break;
    case core::TrafficClass::kNoTrim:
      head.priority = PacketClass::kDataNoTrim;
      break;
  }
  head.retransmission = tx.packet.bth.retransmission;
  probes_ += out.probe ? 1 : 0;
}

Time MrcHost::next_deadline() const {
  const TimeNs deadline = endpoint_->next_deadline();
  return deadline == kNever ? kEndOfTime : deadline * fabric::kPicosecondsPerNs;
}

void MrcHost::set_port_up(Time now, unsigned plane, bool up) {
  const Status status =
      endpoint_->set_port_up(to_ns(now), PortId{static_cast<std::uint8_t>(plane + 1)}, up);
  MRC_ASSERT(status.ok());
  drain_completions(now);
}

HostGauges MrcHost::gauges() const {
  HostGauges gauges;
  for (const Connection& c : connections_) {
    if (!c.open || c.plan.sends == 0) continue;
    const core::QpStatus status = endpoint_->query_qp(c.qp).value();
    if (status.sends_outstanding == 0) continue;
    ++gauges.connections;
    gauges.window_bytes +=
        static_cast<std::uint64_t>(std::max<std::int64_t>(0, status.window_bytes));
    gauges.in_flight_bytes +=
        static_cast<std::uint64_t>(std::max<std::int64_t>(0, status.bytes_in_flight));
    gauges.good_evs += status.good_evs;
    gauges.bad_evs += status.bad_evs;
  }
  return gauges;
}

const core::EvProfile& MrcHost::profile_of(const Connection& c) const {
  const auto& profiles = c.plan.sends > 0 ? world_->profiles : world_->way_back;
  return profiles[world_->routing->topology().place_at_t0(host_) % profiles.size()];
}

std::vector<SenderStatus> MrcHost::senders(std::size_t most) const {
  std::vector<std::pair<std::uint32_t, const Connection*>> found;  // by bad paths
  for (const Connection& c : connections_) {
    if (!c.open || c.plan.sends == 0) continue;
    const core::QpStatus status = endpoint_->query_qp(c.qp).value();
    if (status.sends_outstanding > 0) found.emplace_back(status.bad_evs, &c);
  }
  std::stable_sort(found.begin(), found.end(),
                   [](const auto& a, const auto& b) { return a.first > b.first; });
  std::vector<SenderStatus> senders;
  for (std::size_t i = 0; i < std::min(most, found.size()); ++i)
    senders.push_back(status_of(*found[i].second));
  return senders;
}

SenderStatus MrcHost::status_of(const Connection& c) const {
  const core::QpStatus status = endpoint_->query_qp(c.qp).value();
  SenderStatus told{
      .peer = c.plan.peer,
      .connection = c.plan.number,
      .window_bytes = static_cast<std::uint64_t>(std::max<std::int64_t>(0, status.window_bytes)),
      .in_flight_bytes =
          static_cast<std::uint64_t>(std::max<std::int64_t>(0, status.bytes_in_flight)),
      .round_trip_ns = status.smoothed_rtt_ns,
      .resent = status.counters.retransmitted,
      .timeouts = status.counters.timeouts};
  const core::EvProfile& profile = profile_of(c);
  for (unsigned i = 0; i < profile.size(); ++i) {
    const auto ev = static_cast<EvIndex>(i);
    told.paths.push_back({.plane = static_cast<unsigned>(profile.entry(ev).port) - 1,
                          .entropy = profile.entry(ev).entropy,
                          .state = endpoint_->query_ev(c.qp, ev).value()});
  }
  return told;
}

bool MrcHost::window_closed(std::uint32_t peer, std::uint32_t number) const {
  const Connection& c = connections_[find_connection(connections_, peer, number)];
  if (!c.open) return false;
  const core::QpStatus status = endpoint_->query_qp(c.qp).value();
  return status.peer_bytes_in_flight + world_->config->path_mtu > status.window_bytes;
}

HostTotals MrcHost::totals() const {
  HostTotals totals;
  for (const Connection& c : connections_) {
    if (!c.open) continue;
    const core::QpCounters counters = endpoint_->query_qp(c.qp).value().counters;
    totals.data_packets += counters.data_sent;
    totals.retransmits += counters.retransmitted;
    totals.timeouts += counters.timeouts;
    totals.spurious += counters.spurious;
    totals.hedged += counters.hedged;
    totals.trim_nacks += counters.trimmed;
    totals.lost_by_path_order += counters.lost_by_path_order;
    totals.lost_by_time += counters.lost_by_time;
    totals.lost_by_timeout += counters.lost_by_timeout;
  }
  totals.control_packets = control_packets_;
  totals.probes = probes_;
  return totals;
}

}  // namespace mrc::sim
