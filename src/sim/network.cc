#include "sim/network.h"

#include "base/assert.h"
#include "base/prng.h"

namespace mrc::sim {
namespace {

using fabric::LinkId;
using fabric::LinkTier;
using fabric::NodeKind;

enum Policy : std::uint8_t { kUp, kDown, kToHost, kFromHost };

std::uint64_t probability_q32(double p) { return static_cast<std::uint64_t>(p * 4294967296.0); }

Policy policy_of(const fabric::Link& link) {
  if (link.to.kind == NodeKind::kHost) return kToHost;
  if (link.from.kind == NodeKind::kHost) return kFromHost;
  return link.to.kind > link.from.kind ? kUp : kDown;
}

}  // namespace

Network::Network(const fabric::Routing& routing, const NetworkConfig& config, EventQueue& events,
                 PacketPool& packets)
    : routing_(&routing), config_(config), events_(&events), packets_(&packets) {
  const fabric::Topology& topology = routing.topology();
  links_.resize(topology.link_count());
  for (std::uint32_t i = 0; i < links_.size(); ++i) {
    const fabric::Link link = topology.describe(LinkId{i});
    links_[i].to = link.to;
    links_[i].tier = static_cast<std::uint8_t>(link.tier);
    links_[i].policy = policy_of(link);
  }
  for (unsigned tier = 0; tier < fabric::kLinkTiers; ++tier) {
    const fabric::LinkClass& c = topology.link_class(static_cast<LinkTier>(tier));
    ps_per_byte_q8_[tier] = 8'000'000'000'000ull * 256 / c.bits_per_second;
    delay_[tier] = c.delay_ps;
  }
  const auto policy = [&](bool faces_host) {
    fabric::QueuePolicy p = fabric::make_queue_policy(config.queue_shares, config.plane_bdp_bytes,
                                                      config.trimming, faces_host);
    p.marks = p.marks || config.mark_last_hop;
    p.ecn_ramp_top_q32 = probability_q32(config.ecn_max_probability);
    return p;
  };
  policies_ = {policy(false), policy(false), policy(true), policy(false)};
  if (config.pfc.enabled) {
    held_.resize(links_.size());
    pause_sent_.resize(links_.size());
  }
}

std::uint32_t Network::draw(std::uint64_t a, std::uint64_t b) const {
  return static_cast<std::uint32_t>(mix64(config_.seed + a * 0x9E37'79B9'7F4A'7C15 + mix64(b)) >>
                                    32);
}

void Network::send(Time now, unsigned plane, PacketId packet) {
  PacketHead& head = packets_->head(packet);
  const fabric::Topology& topology = routing_->topology();
  head.hop = 0;
  ++sends_;
  if (config_.loss > 0) doom(head, topology.hops(head.source, head.destination));
  const LinkId up = topology.host_up(plane, head.source);
  MRC_ASSERT(links_[fabric::index(up)].busy_until <= now);
  start(now, up, packet);
  // A port sends until it is told; what it sends into a dead cable is lost when it leaves, not when
  // it would arrive.
  if (is_down(up)) [[unlikely]]
    faults_.lose_flight(up, head.arrives_at());
}

// Decides once per packet whether and where it gets lost.
void Network::doom(PacketHead& head, unsigned hops) {
  if (draw(0x10551, sends_) < probability_q32(config_.loss))
    head.doomed_at =
        static_cast<std::uint8_t>(1 + ((std::uint64_t{draw(0x10552, sends_)} * hops) >> 32));
}

bool Network::arrive(Time now, PacketId packet) {
  PacketHead& head = packets_->head(packet);
  const LinkId in = head.link;
  LinkState& l = links_[fabric::index(in)];
  ++counters_.packet_hops;
  land(l, packet);
  advance(now, in);
  ++head.hop;
  const fabric::LinkFaults* faults = l.faulty ? &faults_.of(in) : nullptr;
  if (faults != nullptr && !faults->delivers(now)) [[unlikely]] {
    drop(now, l, packet, LossCause::kLinkDown);
    return false;
  }
  if (head.doomed_at == head.hop || (faults != nullptr && !survives(faults->condition(), head)))
      [[unlikely]] {
    drop(now, l, packet, LossCause::kRandomLoss);
    return false;
  }
  if (faults != nullptr) l.faulty = faults->condition() != fabric::LinkCondition{};
  if (l.to.kind == NodeKind::kHost) {
    MRC_ASSERT(l.to.index == head.destination);
    return true;
  }
  const LinkId out = route(l, head);
  if (out == fabric::kNoLink) [[unlikely]] {
    drop(now, l, packet, LossCause::kNoRoute);
    return false;
  }
  enqueue(now, out, packet);
  return false;
}

// The switch that a packet reaches on its `hop`-th link finds its own uSID in front and that of the
// next hop behind it.
LinkId Network::next_by_usid(const fabric::Node& at, const PacketHead& head, unsigned hop) const {
  const fabric::UsidList usids = usids_of(*routing_, head);
  return routing_->next_by_usid(at, usids[hop - 1], usids[hop]);
}

LinkId Network::route(const LinkState& in, PacketHead& head) const {
  switch (config_.mode) {
    case fabric::ForwardingMode::kSrv6:
      return next_by_usid(in.to, head, head.hop);
    case fabric::ForwardingMode::kStructuredEv:
      return routing_->next_by_structured_ev(in.to, head.destination, head.entropy);
    case fabric::ForwardingMode::kEcmp:
      return routing_->next_by_hash(in.to, head.source, head.destination, head.entropy);
  }
  return fabric::kNoLink;
}

void Network::enqueue(Time now, LinkId link, PacketId packet) {
  LinkState& l = links_[fabric::index(link)];
  PacketHead& head = packets_->head(packet);
  if (is_down(link)) [[unlikely]] {
    drop(now, l, packet, LossCause::kLinkDown);
    return;
  }
  advance(now, link);
  const bool held_up = l.paused && head.priority != PacketClass::kControl;
  if (l.busy_until <= now && !held_up) {
    start(now, link, packet);
    return;
  }
  if (!admit(now, l, packet)) {
    drop(now, l, packet, LossCause::kQueueFull);
    return;
  }
  append(l, packet);
  if (watch_ != nullptr) [[unlikely]]
    watch_->on_queued(now, packet);
  if (config_.pfc.enabled) hold(now, head, true);
}

// Where the last one of the queue is to be cut in its stead, the packet takes its place, and its
// content.
void Network::choose_victim(Time now, LinkState& l, PacketId packet) {
  const fabric::TrimVictim victim = config_.trim_victim;
  if (victim == fabric::TrimVictim::kArrival || l.data_head == kNoPacket) return;
  const PacketHead& head = packets_->head(packet);
  const PacketHead& last = packets_->head(l.data_tail);
  if (last.priority != PacketClass::kData || last.bytes != head.bytes) return;
  const bool heads = (draw(fabric::index(head.link), l.trims) & 1) != 0;
  if (victim == fabric::TrimVictim::kEither && !heads) return;
  packets_->exchange(packet, l.data_tail);
  if (watch_ != nullptr) watch_->on_exchanged(now, packet, l.data_tail);
}

// False: no room. A packet that is cut to make it fit moves to the control class.
bool Network::admit(Time now, LinkState& l, PacketId packet) {
  const fabric::QueuePolicy& policy = policies_[l.policy];
  PacketHead& head = packets_->head(packet);
  if (head.priority != PacketClass::kControl) {
    const bool trimmable = head.priority == PacketClass::kData;
    switch (fabric::admit_data(policy, l.data_bytes, head.bytes, trimmable)) {
      case fabric::Admission::kEnqueue:
        return true;
      case fabric::Admission::kDrop:
        return false;
      case fabric::Admission::kTrim:
        choose_victim(now, l, packet);
        ++l.trims;
        ++counter_of(LossCause::kTrimmed);
        if (watch_ != nullptr) watch_->on_lost(now, packet, LossCause::kTrimmed);
        head.trim = policy.faces_host ? PacketTrim::kTrimmedLastHop : PacketTrim::kTrimmed;
        head.bytes = config_.trimmed_bytes;
        head.priority = PacketClass::kControl;
    }
  }
  return fabric::admit_control(policy, l.control_bytes, head.bytes) == fabric::Admission::kEnqueue;
}

void Network::append(LinkState& l, PacketId packet) {
  PacketHead& head = packets_->head(packet);
  head.next = kNoPacket;
  const bool control = head.priority == PacketClass::kControl;
  PacketId& first = control ? l.control_head : l.data_head;
  PacketId& last = control ? l.control_tail : l.data_tail;
  (control ? l.control_bytes : l.data_bytes) += head.bytes;
  if (first == kNoPacket)
    first = packet;
  else
    packets_->head(last).next = packet;
  last = packet;
}

void Network::advance(Time now, LinkId link) {
  LinkState& l = links_[fabric::index(link)];
  while (l.busy_until <= now) {
    const PacketId packet = pop(link);
    if (packet == kNoPacket) return;
    if (config_.pfc.enabled) hold(now, packets_->head(packet), false);
    start(l.busy_until, link, packet);
  }
}

PacketId Network::pop(LinkId link) {
  LinkState& l = links_[fabric::index(link)];
  PacketId packet = l.control_head;
  if (packet != kNoPacket) {
    l.control_head = packets_->head(packet).next;
    l.control_bytes -= packets_->head(packet).bytes;
    return packet;
  }
  packet = l.data_head;
  if (packet == kNoPacket || l.paused) return kNoPacket;
  PacketHead& head = packets_->head(packet);
  // The mark says how much stood behind this packet when it left.
  if (head.ecn_capable &&
      fabric::marks_ecn(policies_[l.policy], l.data_bytes, draw(fabric::index(link), l.packets))) {
    head.congestion_experienced = true;
    ++counters_.marks;
  }
  l.data_head = head.next;
  l.data_bytes -= head.bytes;
  return packet;
}

void Network::start(Time at, LinkId link, PacketId packet) {
  LinkState& l = links_[fabric::index(link)];
  PacketHead& head = packets_->head(packet);
  head.link = link;
  ++l.packets;
  if (l.tapped) [[unlikely]]
    tap_->on_packet(at, link, head, packets_->body(packet));
  if (watch_ != nullptr) [[unlikely]]
    watch_->on_started(at, link, packet);
  l.busy_until = at + transmission_time(l, link, head.bytes);
  const Time host_delay = l.policy == kToHost ? config_.host_delay_ps : 0;
  head.set_arrives_at(l.busy_until + delay_[l.tier] + host_delay);
  head.next = kNoPacket;
  if (l.flying_head == kNoPacket) {
    l.flying_head = packet;
    expect(packet);
  } else {
    packets_->head(l.flying_tail).next = packet;
  }
  l.flying_tail = packet;
  if (config_.pfc.enabled && l.policy != kFromHost)
    events_->push(Event(l.busy_until, EventKind::kLinkFree, fabric::index(link)));
}

// The first packet on its link will arrive.
void Network::expect(PacketId packet) {
  const PacketHead& head = packets_->head(packet);
  events_->push(
      Event(head.arrives_at(), EventKind::kArrival, fabric::index(head.link), index(packet)));
}

// The first packet on its link has arrived; the next one becomes the first.
void Network::land(LinkState& l, PacketId packet) {
  MRC_ASSERT(l.flying_head == packet);
  l.flying_head = packets_->head(packet).next;
  if (l.flying_head != kNoPacket) expect(l.flying_head);
}

Time Network::transmission_time(const LinkState& l, LinkId link, std::uint32_t bytes) const {
  const std::uint64_t healthy = (bytes * ps_per_byte_q8_[l.tier]) >> 8;
  if (!l.faulty) return static_cast<Time>(healthy);
  return static_cast<Time>(static_cast<double>(healthy) / condition(link).rate_share);
}

void Network::on_link_free(Time now, LinkId link) { advance(now, link); }

bool Network::on_pause(Time now, LinkId link, bool paused) {
  LinkState& l = links_[fabric::index(link)];
  advance(now, link);
  l.paused = paused;
  if (l.policy == kFromHost) return true;
  if (!paused && l.busy_until <= now) {
    l.busy_until = now;
    advance(now, link);
  }
  return false;
}

// PFC accounting: bytes that came in on a link and wait in the switch behind it.
void Network::hold(Time now, const PacketHead& head, bool held) {
  if (head.priority == PacketClass::kControl) return;
  const std::uint32_t in = fabric::index(head.link);
  held_[in] += held ? head.bytes : 0u - head.bytes;
  const Time tell_at = now + delay_[links_[in].tier];
  if (!pause_sent_[in] && held_[in] > config_.pfc.pause_bytes) {
    pause_sent_[in] = true;
    ++counters_.pauses;
    events_->push(Event(tell_at, EventKind::kLinkPause, in));
  } else if (pause_sent_[in] && held_[in] <= config_.pfc.resume_bytes) {
    pause_sent_[in] = false;
    events_->push(Event(tell_at, EventKind::kLinkResume, in));
  }
}

bool Network::survives(const fabric::LinkCondition& condition, PacketHead& head) {
  if (condition.black_hole) return false;
  const std::uint32_t link = fabric::index(head.link);
  const std::uint64_t n = counters_.packet_hops;
  if (condition.loss > 0 && draw(link ^ 0x1055'0000u, n) < probability_q32(condition.loss))
    return false;
  if (condition.corrupt > 0 && draw(link ^ 0xC0DE'0000u, n) < probability_q32(condition.corrupt)) {
    head.corrupt = true;
    ++counters_.corrupted;
  }
  return true;
}

void Network::drop(Time now, LinkState& l, PacketId packet, LossCause cause) {
  if (watch_ != nullptr) watch_->on_lost(now, packet, cause);
  ++l.drops;
  ++counter_of(cause);
  packets_->give_back(packet);
}

std::uint64_t& Network::counter_of(LossCause cause) {
  switch (cause) {
    case LossCause::kTrimmed:
      return counters_.trims;
    case LossCause::kQueueFull:
      return counters_.dropped_full;
    case LossCause::kLinkDown:
      return counters_.dropped_down;
    case LossCause::kRandomLoss:
      return counters_.dropped_loss;
    case LossCause::kNoRoute:
      break;
  }
  return counters_.dropped_no_route;
}

void Network::flush(Time now, LinkId link) {
  LinkState& l = links_[fabric::index(link)];
  for (PacketId* queue : {&l.control_head, &l.data_head}) {
    while (*queue != kNoPacket) {
      const PacketId packet = *queue;
      *queue = packets_->head(packet).next;
      if (config_.pfc.enabled) hold(now, packets_->head(packet), false);
      drop(now, l, packet, LossCause::kLinkDown);
    }
  }
  l.control_bytes = 0;
  l.data_bytes = 0;
}

void Network::apply(Time now, const fabric::FaultAction& action) {
  advance(now, action.link);
  LinkState& l = links_[fabric::index(action.link)];
  l.faulty = true;
  if (!faults_.apply(action).down) return;
  faults_.lose_flight(action.link, l.busy_until + delay_[l.tier]);
  flush(now, action.link);
}

bool Network::path_is_dead(unsigned source, unsigned destination, const fabric::Path& path) const {
  const fabric::Routing::LinkList list = routing_->links(source, destination, path);
  for (unsigned i = 0; i < list.count; ++i)
    if (is_down(list.links[i])) return true;
  return false;
}

void Network::tap(LinkId link, PacketTap& tap) {
  tap_ = &tap;
  links_[fabric::index(link)].tapped = true;
}

std::uint32_t Network::queued_bytes(Time now, LinkId link) {
  advance(now, link);
  const LinkState& l = links_[fabric::index(link)];
  return l.data_bytes + l.control_bytes;
}

void Network::prefetch_next(const Event& arrival) const {
  if (config_.mode != fabric::ForwardingMode::kSrv6) return;
  const PacketHead& head = packets_->head(PacketId{arrival.payload});
  // The entropy leads the same way as the uSIDs, and is read faster.
  const LinkId out =
      routing_->next_by_structured_ev(links_[arrival.subject()].to, head.destination, head.entropy);
  if (out != fabric::kNoLink) __builtin_prefetch(&links_[fabric::index(out)]);
}

void Network::prefetch(const Event& arrival) const {
  __builtin_prefetch(&packets_->head(PacketId{arrival.payload}));
  __builtin_prefetch(&links_[arrival.subject()]);
}

}  // namespace mrc::sim
