#include "demo/virtual_network.h"

#include <algorithm>

namespace mrc::demo {
namespace {

constexpr DurationNs kHostCableNs = 200;
constexpr DurationNs kTrunkCableNs = 500;
// Preamble, frame check sequence and gap between frames.
constexpr std::size_t kLinkOverheadBytes = 24;
constexpr std::uint64_t kPicosecondsPerByte = 8'000'000'000'000 / kPortBitsPerSecond;
// About one bandwidth-delay product of a plane; the last hop gets half as much again.
constexpr std::int64_t kQueueBytes = 64 * 1024;
constexpr std::int64_t kMarkFromBytes = kQueueBytes / 5;
constexpr std::int64_t kMarkAllBytes = kQueueBytes * 4 / 5;
// Packets that must not be trimmed are dropped only here.
constexpr std::int64_t kOverflowFactor = 4;

DurationNs wire_time(std::size_t bytes) {
  return static_cast<DurationNs>((bytes + kLinkOverheadBytes) * kPicosecondsPerByte + 999) / 1000;
}

std::int64_t bytes_in(DurationNs backlog_ns) {
  return backlog_ns * 1000 / static_cast<std::int64_t>(kPicosecondsPerByte);
}

std::span<std::byte> outer_header(Frame& frame) {
  return frame.bytes().subspan(wire::kEthernetHeaderLength, wire::kIpv6HeaderLength);
}

bool overtakes_data(const wire::DscpMap& dscp, std::uint8_t value) {
  return value == dscp.control || wire::trim_mark(dscp, value) != wire::TrimMark::kNone;
}

}  // namespace

VirtualNetwork::VirtualNetwork(const Topology& topology, unsigned faults, std::uint64_t seed)
    : topology_(topology), prng_(seed), links_(topology.links()), cuts_(faults) {
  lay_cables();
}

void VirtualNetwork::lay_cables() {
  for (unsigned p = 1; p <= topology_.planes(); ++p) {
    const PortId plane{static_cast<std::uint8_t>(p)};
    for (unsigned host = 0; host < topology_.hosts(); ++host) {
      at(topology_.host_to_leaf(host, plane)) = {
          .to = {NodeKind::kLeaf, plane, topology_.leaf_of(host)},
          .delay_ns = kHostCableNs,
          .room_bytes = kQueueBytes};
      at(topology_.leaf_to_host(host, plane)) = {.to = {NodeKind::kHost, plane, host},
                                                 .delay_ns = kHostCableNs,
                                                 .marks = false,
                                                 .room_bytes = kQueueBytes * 3 / 2};
    }
    for (unsigned leaf = 0; leaf < topology_.leaves(); ++leaf) {
      for (unsigned spine = 0; spine < topology_.spines(); ++spine) {
        const Trunk trunk{plane, leaf, spine};
        at(topology_.leaf_to_spine(trunk)) = {.to = {NodeKind::kSpine, plane, spine},
                                              .delay_ns = kTrunkCableNs,
                                              .room_bytes = kQueueBytes};
        at(topology_.spine_to_leaf(trunk)) = {.to = {NodeKind::kLeaf, plane, leaf},
                                              .delay_ns = kTrunkCableNs,
                                              .room_bytes = kQueueBytes};
      }
    }
  }
}

TimeNs VirtualNetwork::send(TimeNs now, unsigned host, PortId port, FrameId frame) {
  ++counters_.frames;
  counters_.bytes += frames_[frame].length;
  const TimeNs free_at = now + wire_time(frames_[frame].length);
  enter(now, topology_.host_to_leaf(host, port), frame);
  return free_at;
}

bool VirtualNetwork::step(Delivery& out) {
  const Flight flight = arrivals_.top();
  arrivals_.pop();
  Link& link = at(flight.link);
  if (link.cuts > 0) {
    lose(link, flight.frame);
    return false;
  }
  if (link.watched_for != kNoFault && frames_[flight.frame].kind == FrameKind::kData) {
    CutTrace& trace = cuts_[static_cast<std::size_t>(link.watched_for)].trace;
    trace.first_data_after_at = std::min(trace.first_data_after_at, flight.at);
    link.watched_for = kNoFault;
  }
  if (link.to.kind == NodeKind::kHost) {
    out = {.host = link.to.index, .port = link.to.plane, .frame = flight.frame};
    return true;
  }
  if (!forward(flight.at, link.to, flight.frame)) {
    ++counters_.unroutable;
    frames_.release(flight.frame);
  }
  return false;
}

// --- Switches

// What an SRv6 node does whose uSID is the active one: shift, look up the next, forward.
bool VirtualNetwork::forward(TimeNs now, const Node& node, FrameId frame) {
  const std::span<std::byte> bytes = outer_header(frames_[frame]);
  wire::IpHeader header;
  if (wire::parse_ip_header(bytes, header) != DropReason::kNone) return false;
  const wire::UsidPlan& plan = topology_.usid_plan();
  const wire::UsidRange& range = node.kind == NodeKind::kLeaf ? plan.t0 : plan.t1;
  const bool for_us =
      wire::carrier_block(header.destination) == wire::plane_block(plan, node.plane) &&
      wire::active_usid(header.destination) == wire::usid_in(range, node.index).value();
  if (!for_us || header.hop_limit == 0) return false;
  header.destination = wire::shift_carrier(header.destination);
  --header.hop_limit;
  LinkId next{};
  if (!route(node, header.destination, next)) return false;
  if (wire::build_ip_header(header, bytes) != bytes.size()) return false;
  enter(now, next, frame);
  return true;
}

bool VirtualNetwork::route(const Node& node, const wire::IpAddress& carrier, LinkId& next) const {
  const auto usid = static_cast<std::uint16_t>(wire::active_usid(carrier));
  const auto index_in = [usid](const wire::UsidRange& range, unsigned count, unsigned& index) {
    index = static_cast<unsigned>(usid) - range.first;
    return usid >= range.first && index < count;
  };
  const wire::UsidPlan& plan = topology_.usid_plan();
  unsigned index = 0;
  if (node.kind == NodeKind::kSpine) {
    if (!index_in(plan.t0, topology_.leaves(), index)) return false;
    next = topology_.spine_to_leaf({node.plane, index, node.index});
    return true;
  }
  if (index_in(plan.t1, topology_.spines(), index)) {
    next = topology_.leaf_to_spine({node.plane, node.index, index});
    return true;
  }
  if (!index_in(plan.host_port, topology_.hosts(), index)) return false;
  const unsigned host = topology_.host_at(node.index, index);
  if (host >= topology_.hosts()) return false;
  next = topology_.leaf_to_host(host, node.plane);
  return true;
}

// --- Queues

void VirtualNetwork::enter(TimeNs now, LinkId id, FrameId frame_id) {
  Link& link = at(id);
  if (link.cuts > 0) return lose(link, frame_id);
  Frame& frame = frames_[frame_id];
  wire::IpHeader header;
  const bool readable = wire::parse_ip_header(outer_header(frame), header) == DropReason::kNone;
  bool urgent = readable && overtakes_data(format_.dscp, header.dscp);
  if (!urgent) {
    const std::int64_t queued = bytes_in(std::max<DurationNs>(link.data_free_at - now, 0));
    if (queued > link.room_bytes) {
      urgent = trim(link, frame);
      if (!urgent && queued > kOverflowFactor * link.room_bytes) {
        ++counters_.overflowed;
        return frames_.release(frame_id);
      }
    } else if (link.marks && queued > kMarkFromBytes) {
      const auto span = static_cast<std::uint32_t>(kMarkAllBytes - kMarkFromBytes);
      if (queued > kMarkFromBytes + prng_.below(span)) mark(frame);
    }
  }
  const DurationNs duration = wire_time(frame.length);
  // What is urgent goes first, and data waits that much longer.
  TimeNs sent = link.data_free_at = std::max(link.data_free_at, now) + duration;
  if (urgent) sent = link.control_free_at = std::max(link.control_free_at, now) + duration;
  arrivals_.push({sent + link.delay_ns, next_order_++, id, frame_id});
}

// For a frame that found a full queue; false when it may not be trimmed.
bool VirtualNetwork::trim(const Link& link, Frame& frame) {
  const bool last_hop = link.to.kind == NodeKind::kHost;
  const std::size_t length = wire::trim_frame(format_, frame.bytes(), last_hop);
  if (length == 0) return false;
  frame.length = length;
  ++counters_.trimmed;
  return true;
}

void VirtualNetwork::mark(Frame& frame) {
  wire::IpHeader header;
  const std::span<std::byte> bytes = outer_header(frame);
  if (wire::parse_ip_header(bytes, header) != DropReason::kNone) return;
  if (header.ecn != wire::Ecn::kEct0 && header.ecn != wire::Ecn::kEct1) return;
  header.ecn = wire::Ecn::kCe;
  if (wire::build_ip_header(header, bytes) == bytes.size()) ++counters_.marked;
}

// --- Cuts

void VirtualNetwork::lose(const Link& link, FrameId id) {
  const Frame& frame = frames_[id];
  Cut& cut = cuts_[static_cast<std::size_t>(link.cut_by)];
  switch (frame.kind) {
    case FrameKind::kData:
      note_lost_data(cut, frame);
      break;
    case FrameKind::kProbe:
      ++cut.trace.probes_lost;
      break;
    case FrameKind::kControl:
      ++cut.trace.control_lost;
      break;
  }
  frames_.release(id);
}

void VirtualNetwork::note_lost_data(Cut& cut, const Frame& frame) {
  CutTrace& trace = cut.trace;
  ++trace.data_lost;
  const TimeNs sent_at = std::max(frame.sent_at, cut.at);  // nobody can know of a cut to come
  if (trace.last_data_sent_at == kNever || trace.last_data_sent_at < sent_at) {
    trace.last_data_sent_at = sent_at;
  }
  Cut::Loss& loss = cut.losses.try_emplace(frame.flow, Cut::Loss{sent_at, 0}).first->second;
  ++loss.packets;
  trace.flows_hit = cut.losses.size();
  trace.most_lost_by_flow = std::max(trace.most_lost_by_flow, loss.packets);
  trace.longest_use_ns = std::max(trace.longest_use_ns, sent_at - loss.first_sent_at);
}

void VirtualNetwork::cut(TimeNs now, FaultId fault, const std::vector<LinkId>& links) {
  cuts_[static_cast<std::size_t>(fault)].at = now;
  for (const LinkId id : links) {
    ++at(id).cuts;
    at(id).cut_by = fault;
    at(id).watched_for = kNoFault;
  }
}

void VirtualNetwork::repair(FaultId fault, const std::vector<LinkId>& links) {
  for (const LinkId id : links) {
    Link& link = at(id);
    --link.cuts;
    link.data_free_at = link.control_free_at = 0;
    if (link.cuts == 0) link.watched_for = fault;
  }
}

bool VirtualNetwork::path_works(const Flow& flow, const Path& path) const {
  const Trunk up{path.plane, topology_.leaf_of(flow.source), path.spine};
  const Trunk down{path.plane, topology_.leaf_of(flow.destination), path.spine};
  return !is_cut(topology_.host_to_leaf(flow.source, path.plane)) &&
         !is_cut(topology_.leaf_to_spine(up)) && !is_cut(topology_.spine_to_leaf(down)) &&
         !is_cut(topology_.leaf_to_host(flow.destination, path.plane));
}

}  // namespace mrc::demo
