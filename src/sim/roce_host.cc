#include "sim/roce_host.h"

#include <algorithm>

#include "base/prng.h"
#include "sim/roce_network.h"

namespace mrc::sim {
namespace {

// Ethernet header and check sequence, IPv6, UDP, BTH, ICRC.
constexpr std::uint32_t kFrameBytes = 14 + 4 + 40 + 8 + 12 + 4;
constexpr std::uint32_t kRethBytes = 16;
constexpr std::uint32_t kImmediateBytes = 4;
constexpr std::uint32_t kAethBytes = 4;
constexpr std::uint32_t kCnpBytes = 16;
// Local ACK timeout of the InfiniBand specification: 4.096 us * 2^value.
constexpr Time kTimeoutUnit = 4'096'000;

std::uint64_t mix(std::uint64_t a, std::uint64_t b) { return mix64(a * 0x9E37'79B9'7F4A'7C15 + b); }

}  // namespace

std::uint32_t roce_frame_bytes(const SimConfig& config) { return kFrameBytes + config.path_mtu; }

RoceWorld::RoceWorld(const SimConfig& config, const fabric::Routing& fabric_routing,
                     PacketPool& packet_pool, HostListener& host_listener)
    : routing(&fabric_routing),
      packets(&packet_pool),
      listener(&host_listener),
      hosts(routing->topology().hosts()),
      segmentation{config.path_mtu, config.roce.ack_every},
      dcqcn(config.roce.rates.scaled_to(routing->topology().spec().host_link.bits_per_second)),
      dcqcn_on(config.roce.dcqcn),
      timeout_ps(kTimeoutUnit << config.roce.timeout),
      retries(config.roce.retries),
      chosen_paths(config.transport == Transport::kSplit),
      seed(config.seed) {}

RoceHost::RoceHost(RoceWorld& world, std::uint32_t host,
                   const std::vector<PlannedConnection>& planned)
    : world_(&world), host_(host), ports_(world.routing->topology().planes()) {
  connections_.reserve(planned.size());
  for (const PlannedConnection& plan : planned) {
    Connection& c = connections_.emplace_back(plan, world.dcqcn);
    if (world.chosen_paths) {
      choose_path(c);
    } else {
      hash_path(c);
    }
  }
}

// Ways in turn, over all that the host sends, so that each carries the same share of it; hosts of a
// rack begin at different ones. Ends that only answer have turns of their own.
void RoceHost::choose_path(Connection& c) {
  const fabric::Topology& topology = world_->routing->topology();
  const std::uint32_t ways = topology.paths_per_plane() * topology.planes();
  const std::uint32_t first = topology.place_at_t0(host_) * ways / topology.hosts_per_t0();
  const std::uint32_t way = (first + (c.plan.sends > 0 ? next_way_++ : c.plan.number)) % ways;
  const std::uint32_t in_plane = way / topology.planes();
  const unsigned t2 = topology.three_tier() ? topology.t2_per_group() : 1;
  c.path = {static_cast<std::uint8_t>(way % topology.planes()),
            static_cast<std::uint16_t>(in_plane / t2), static_cast<std::uint16_t>(in_plane % t2)};
  c.entropy = world_->routing->entropy_of(c.path);
}

// Both ends use the same plane; each direction has a source port of its own.
void RoceHost::hash_path(Connection& c) {
  const std::uint64_t pair = mix(std::min(host_, c.plan.peer), std::max(host_, c.plan.peer));
  const std::uint64_t own = mix(mix(host_, c.plan.peer), c.plan.number);
  const std::uint64_t plane = mix(world_->seed, mix(pair, c.plan.number)) % ports_.size();
  c.entropy = 0xC000 | static_cast<std::uint32_t>(mix(world_->seed, own) & 0x3FFF);
  PacketHead head;
  address(c, head);
  c.path = ecmp_path(*world_->routing, head, static_cast<unsigned>(plane));
}

void RoceHost::append(List& list, std::uint32_t Connection::*next, std::uint32_t connection) {
  connections_[connection].*next = kNone;
  if (list.empty())
    list.head = connection;
  else
    connections_[list.tail].*next = connection;
  list.tail = connection;
}

std::uint32_t RoceHost::take_first(List& list, std::uint32_t Connection::*next) {
  const std::uint32_t first = list.head;
  list.head = connections_[first].*next;
  return first;
}

void RoceHost::post(Time now, const Message& message) {
  Connection& c =
      connections_[find_connection(connections_, message.destination, message.connection)];
  if (c.failed) {
    world_->listener->on_sent(now, message.task, false);
    return;
  }
  c.requester.post(world_->segmentation, message);
  schedule(now, c);
  if (c.retry_at == kEndOfTime) restart_retry_timer(now, c);
}

void RoceHost::on_packet(Time now, PacketId id, unsigned plane) {
  const PacketHead& head = world_->packets->head(id);
  if (head.corrupt) return;
  const PacketBody body = world_->packets->body(id);
  const RocePacket& packet = std::get<RocePacket>(body.packet);
  Connection& c = connections_[packet.connection];
  if (packet.kind == RocePacket::Kind::kData)
    on_data(now, c, head, body, plane);
  else
    on_answer(now, c, packet);
}

void RoceHost::on_data(Time now, Connection& c, const PacketHead& head, const PacketBody& body,
                       unsigned plane) {
  const RocePacket& packet = std::get<RocePacket>(body.packet);
  if (head.congestion_experienced && world_->dcqcn_on &&
      c.responder.on_mark(now, world_->dcqcn.cnp_interval_ps))
    c.cnp_due = true;
  const RoceResponder::RxResult result = c.responder.on_data(packet, body.local_address);
  if (result.nak) c.nak_due = true;
  if (result.ack) c.ack_due = true;
  totals_.spurious += result.duplicate ? 1 : 0;
  queue_answer(c);
  if (!result.accepted) return;
  if (packet.payload_bytes > 0)
    world_->listener->on_placed(now, {.host = host_,
                                      .plane = plane,
                                      .from = body.local_address,
                                      .to = result.address,
                                      .bytes = packet.payload_bytes});
  if (packet.immediate) world_->listener->on_received(now, task_of_address(body.local_address));
}

void RoceHost::on_answer(Time now, Connection& c, const RocePacket& packet) {
  if (packet.kind == RocePacket::Kind::kCnp) {
    c.rate.on_cnp(now);
    return;
  }
  const bool nak = packet.kind == RocePacket::Kind::kNak;
  finished_.clear();
  const bool progress = c.requester.acknowledge(nak ? packet.psn : packet.psn + 1, finished_);
  if (progress) {
    c.retries = 0;
    restart_retry_timer(now, c);
  }
  if (nak) {
    c.requester.rewind();
    schedule(now, c);
  }
  for (const TaskId task : finished_)
    world_->listener->on_sent(now, task, true);
}

void RoceHost::on_timer(Time now) {
  const auto later = [](const Timer& a, const Timer& b) {
    return std::tie(a.at, a.connection) > std::tie(b.at, b.connection);
  };
  while (!timers_.empty() && timers_[0].at <= now) {
    std::pop_heap(timers_.begin(), timers_.end(), later);
    const Timer timer = timers_.back();
    timers_.pop_back();
    Connection& c = connections_[timer.connection];
    if (timer.at != c.timer_at) continue;
    c.timer_at = kEndOfTime;
    if (c.retry_at <= now) on_timeout(now, c);
    schedule(now, c);
    start_timer(c);
  }
}

void RoceHost::on_timeout(Time now, Connection& c) {
  ++totals_.timeouts;
  if (c.retries >= world_->retries) return fail(now, c);
  ++c.retries;
  c.requester.rewind();
  restart_retry_timer(now, c);
}

// The queue pair enters the error state for good.
void RoceHost::fail(Time now, Connection& c) {
  finished_.clear();
  c.requester.abandon(finished_);
  c.failed = true;
  c.retry_at = kEndOfTime;
  for (const TaskId task : finished_)
    world_->listener->on_sent(now, task, false);
}

void RoceHost::queue_answer(Connection& c) {
  if (c.in_answers || !(c.ack_due || c.nak_due || c.cnp_due)) return;
  c.in_answers = true;
  append(ports_[c.path.plane].answers, &Connection::next_answer, number_of(c));
}

void RoceHost::schedule(Time now, Connection& c) {
  if (c.in_ready || !c.requester.has_unsent()) return;
  if (c.send_at > now) return start_timer(c);
  c.in_ready = true;
  append(ports_[c.path.plane].ready, &Connection::next_ready, number_of(c));
}

void RoceHost::restart_retry_timer(Time now, Connection& c) {
  // A port without carrier sends nothing that could ask for an ACK; the wait goes on all the same.
  const bool stalled = !ports_[c.path.plane].up && c.requester.has_unfinished();
  c.retry_at = c.requester.awaits_ack() || stalled ? now + world_->timeout_ps : kEndOfTime;
  start_timer(c);
}

void RoceHost::start_timer(Connection& c) {
  Time at = c.retry_at;
  if (!c.in_ready && c.requester.has_unsent()) at = std::min(at, c.send_at);
  if (at >= c.timer_at) return;
  c.timer_at = at;
  timers_.push_back({at, number_of(c)});
  std::push_heap(timers_.begin(), timers_.end(), [](const Timer& a, const Timer& b) {
    return std::tie(a.at, a.connection) > std::tie(b.at, b.connection);
  });
}

bool RoceHost::wants_to_send() const {
  return std::any_of(ports_.begin(), ports_.end(), [](const Port& port) {
    return port.up && (!port.answers.empty() || (!port.ready.empty() && !port.paused));
  });
}

bool RoceHost::next_packet(Time now, PortMask free_ports, Outgoing& out) {
  for (unsigned plane = 0; plane < ports_.size(); ++plane) {
    Port& port = ports_[plane];
    if (!port.up || !free_ports.contains(PortId{static_cast<std::uint8_t>(plane + 1)})) continue;
    out = {};
    out.plane = plane;
    if (next_answer(port, out)) return true;
    if (!port.paused && next_data(now, port, out)) return true;
  }
  return false;
}

// An ACK or NAK says what is true when it leaves.
bool RoceHost::next_answer(Port& port, Outgoing& out) {
  if (port.answers.empty()) return false;
  Connection& c = connections_[take_first(port.answers, &Connection::next_answer)];
  c.in_answers = false;
  RocePacket packet;
  const std::uint32_t expected = c.responder.expected();
  std::uint32_t extra = kAethBytes;
  if (c.cnp_due) {
    c.cnp_due = false;
    packet.kind = RocePacket::Kind::kCnp;
    extra = kCnpBytes;
  } else {
    const bool nak = c.nak_due && c.responder.gap_reported();
    packet.kind = nak ? RocePacket::Kind::kNak : RocePacket::Kind::kAck;
    packet.psn = nak ? expected : expected - 1;
    c.nak_due = c.ack_due = false;
  }
  queue_answer(c);
  PacketHead& head = new_packet(c, packet, out);
  head.priority = PacketClass::kControl;
  head.bytes = kFrameBytes + extra;
  ++totals_.control_packets;
  return true;
}

bool RoceHost::next_data(Time now, Port& port, Outgoing& out) {
  while (!port.ready.empty()) {
    Connection& c = connections_[take_first(port.ready, &Connection::next_ready)];
    c.in_ready = false;
    if (!c.requester.has_unsent()) continue;
    const RoceRequester::Segment s = c.requester.next_segment(world_->segmentation);
    PacketHead& head = new_packet(c,
                                  {.kind = RocePacket::Kind::kData,
                                   .first = s.first,
                                   .last = s.last,
                                   .immediate = s.immediate,
                                   .ack_request = s.ack_request,
                                   .psn = s.psn,
                                   .payload_bytes = s.bytes},
                                  out, s.address);
    head.priority = PacketClass::kDataNoTrim;
    head.retransmission = s.retransmission;
    head.bytes = kFrameBytes + (s.first ? kRethBytes : 0) + (s.immediate ? kImmediateBytes : 0) +
                 ((s.bytes + 3) & ~3u);
    ++totals_.data_packets;
    totals_.retransmits += s.retransmission ? 1 : 0;
    c.rate.on_sent(now, head.bytes);
    c.send_at =
        c.rate.limited() ? now + fabric::transmission_ps(head.bytes, c.rate.rate_bps()) : now;
    schedule(now, c);
    if (s.ack_request && c.retry_at == kEndOfTime) restart_retry_timer(now, c);
    return true;
  }
  return false;
}

PacketHead& RoceHost::new_packet(Connection& c, RocePacket packet, Outgoing& out,
                                 std::uint64_t local_address) {
  if (c.at_peer == kNone)
    c.at_peer = find_connection(world_->hosts[c.plan.peer]->connections_, host_, c.plan.number);
  packet.connection = c.at_peer;
  out.packet = world_->packets->take({packet, local_address, packet.payload_bytes});
  out.path = c.path;
  PacketHead& head = world_->packets->head(out.packet);
  address(c, head);
  return head;
}

void RoceHost::address(const Connection& c, PacketHead& head) const {
  head.source = host_;
  head.destination = c.plan.peer;
  head.entropy = c.entropy;
}

void RoceHost::set_port_up(Time now, unsigned plane, bool up) {
  Port& port = ports_[plane];
  if (port.up == up) return;
  port.up = up;
  for (Connection& c : connections_)
    if (c.path.plane == plane && (up || c.retry_at == kEndOfTime)) restart_retry_timer(now, c);
}

void RoceHost::set_paused(Time, unsigned plane, bool paused) { ports_[plane].paused = paused; }

}  // namespace mrc::sim
