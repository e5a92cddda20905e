#include "capture/dialect_finder.h"

#include <algorithm>
#include <cstdlib>

#include "base/prng.h"
#include "wire/codec.h"
#include "wire/reader.h"

namespace mrc::capture {
namespace {

using wire::ByteReader;

constexpr std::size_t kMaxRemembered = 1 << 20;  // writes and probes; then it begins anew
constexpr std::size_t kMaxFlows = 1 << 16;
constexpr std::size_t kMostFlowsToOne = 64;
constexpr std::int32_t kNear = 1 << 16;        // PSNs; twice the widest window
constexpr unsigned kBeginning = 64;            // packets of a flow that may arrive before its first
constexpr std::uint64_t kFewestAlike = 8;      // packets that speak for a port without an ICRC
constexpr std::uint16_t kMostAdvanced = 8192;  // ticks: about a millisecond

std::uint64_t half(const wire::IpAddress& address, std::size_t from) {
  std::uint64_t value = 0;
  for (std::size_t i = 0; i < 8; ++i)
    value = value << 8 | address.bytes[from + i];
  return value;
}

ByteReader behind_bth(const SeenPacket& packet) {
  return ByteReader(packet.transport.subspan(wire::kBthLength));
}

std::uint32_t destination_of(const SeenPacket& packet) {
  return ByteReader(packet.transport.subspan(5)).u24();
}

std::uint32_t psn_of(const SeenPacket& packet) {
  return ByteReader(packet.transport.subspan(9)).u24();
}

std::uint16_t value_of(auto choice) { return static_cast<std::uint16_t>(choice); }

// By how much the first of two PSNs is ahead, as they count.
std::int32_t ahead(std::uint32_t psn, std::uint32_t of) {
  return static_cast<std::int32_t>((psn - of) << 8) >> 8;
}

}  // namespace

std::size_t DialectFinder::KeyHash::operator()(const PacketKey& key) const {
  const std::uint64_t ends = half(key.from, 0) ^ mix64(half(key.from, 8)) ^
                             mix64(half(key.to, 0) + 1) ^ mix64(half(key.to, 8) + 2);
  return mix64(ends ^ (std::uint64_t{key.number} << 1 | (key.probe ? 1 : 0)));
}

// --- Which ports ---

void DialectFinder::survey(const CapturedFrame& frame) {
  SeenPacket packet;
  const Seen seen = look_at(frame, packet);
  if (seen == Seen::kOther) return;
  PortCount& count = ports_[packet.destination_port];
  ++count.all;
  if (seen == Seen::kMrc) ++count.alike;
  if (packet.verified()) ++count.verified;
}

// One right ICRC in 2^32 is chance. Where no packet is whole, most at a port must look like MRC.
bool DialectFinder::speaks_mrc(std::uint16_t port) const {
  const auto found = ports_.find(port);
  if (found == ports_.end()) return false;
  const PortCount& count = found->second;
  return count.verified > 0 || (count.alike >= kFewestAlike && count.alike * 10 >= count.all * 9);
}

std::optional<std::uint16_t> DialectFinder::udp_port() const {
  if (traffic_.udp_ports.empty()) return std::nullopt;
  return traffic_.udp_ports.begin()->first;
}

// --- What packets say ---

void DialectFinder::study(const CapturedFrame& frame) {
  ++traffic_.frames;
  SeenPacket packet;
  if (look_at(frame, packet) != Seen::kMrc || !speaks_mrc(packet.destination_port)) {
    ++traffic_.other;
    return;
  }
  ++traffic_.mrc;
  ++(packet.verified() ? traffic_.verified : traffic_.unverified);
  ++traffic_.udp_ports[packet.destination_port];
  ++traffic_.opcodes[static_cast<std::uint8_t>(packet.opcode())];
  note_process(packet, destination_of(packet));
  note_tunnel(packet);
  // What has an ICRC and not the right one was damaged on the way.
  if (packet.whole && !packet.verified() && !packet.tunnel) return;
  note_bth(packet);
  switch (packet.opcode()) {
    case wire::Opcode::kAck:
      return on_ack(packet);
    case wire::Opcode::kSack:
      return on_sack(packet);
    case wire::Opcode::kNack:
      return on_nack(packet);
    case wire::Opcode::kProbe:
      return on_probe(packet);
    case wire::Opcode::kEndpointRequest:
      return on_request(packet);
    case wire::Opcode::kEndpointResponse:
      return on_response(packet);
    default:
      return on_write(packet);
  }
}

// A queue pair of process 0 goes to the first port either way.
void DialectFinder::note_process(const SeenPacket& packet, std::uint32_t destination) {
  const std::uint32_t process = destination >> 16;
  if (process == 0) return;
  if (!base_port_) {
    const auto speaking = [this](const auto& entry) { return speaks_mrc(entry.first); };
    base_port_ = std::find_if(ports_.begin(), ports_.end(), speaking)->first;
  }
  if (packet.destination_port == *base_port_ + process) {
    vote("processes", value_of(wire::Processes::kByUdpPort));
  } else if (packet.destination_port == *base_port_) {
    vote("processes", value_of(wire::Processes::kByQueuePair));
  }
}

void DialectFinder::note_bth(const SeenPacket& packet) {
  const auto bits = std::to_integer<unsigned>(packet.transport[1]) >> 6;
  const bool ends = wire::is_write(packet.opcode()) && wire::ends_message(packet.opcode());
  ++bth_bits_[ends ? 1 : 0][bits];
}

void DialectFinder::note_tunnel(const SeenPacket& packet) {
  if (!packet.tunnel || !packet.whole) return;
  if (packet.icrc_plain) vote("srv6_icrc", value_of(wire::Srv6Icrc::kInner));
  if (packet.icrc_outer) vote("srv6_icrc", value_of(wire::Srv6Icrc::kOuter));
  if (!packet.verified()) ++tunnels_of_unknown_icrc_;
}

void DialectFinder::remember(const PacketKey& key, const Sent& sent) {
  if (sent_.size() >= kMaxRemembered) sent_.clear();
  const auto [place, fresh] = sent_.emplace(key, sent);
  if (fresh) return;
  place->second = sent;
  place->second.again = true;
}

std::uint32_t DialectFinder::flow_of(std::uint32_t destination, std::uint32_t psn) {
  std::vector<std::uint32_t>& known = flows_to_[destination];
  for (const std::uint32_t index : known) {
    if (std::abs(ahead(psn, flows_[index].newest_psn)) < kNear) return index;
  }
  if (flows_.size() >= kMaxFlows || known.size() >= kMostFlowsToOne) return kNoFlow;
  flows_.emplace_back().newest_psn = psn;
  known.push_back(static_cast<std::uint32_t>(flows_.size() - 1));
  return known.back();
}

void DialectFinder::on_write(const SeenPacket& packet) {
  ByteReader reader = behind_bth(packet);
  const std::uint16_t rqmsn = reader.u16();
  Sent sent{.port = packet.source_port,
            .inner_label = packet.inner_label,
            .outer_label = packet.outer_label,
            .tunnel = packet.tunnel,
            .v4 = packet.source.is_v4,
            .ends_message = wire::ends_message(packet.opcode()),
            .msn = reader.u16()};
  if (reader.failed()) return;
  sent.stamped = (packet.transport[8] & std::byte{0x10}) != std::byte{0} && reader.left() >= 4;
  if (sent.stamped) sent.ticks = reader.u16();
  const std::uint32_t psn = psn_of(packet);
  sent.flow = flow_of(destination_of(packet), psn);
  remember({packet.source, packet.destination, psn, false}, sent);

  if (sent.flow == kNoFlow) return;
  Flow& flow = flows_[sent.flow];
  if (flow.packets == 0 || ahead(psn, flow.newest_psn) > 0) flow.newest_psn = psn;
  if (flow.has_acknowledged) {
    const std::int32_t flight = ahead(psn, flow.acknowledged);
    if (flight > 0 && flight < 0x8000) {
      traffic_.widest_flight =
          std::max<std::uint64_t>(traffic_.widest_flight, static_cast<std::uint64_t>(flight));
    }
  }
  if (++flow.packets > kBeginning) return;
  const auto earlier = [](std::uint16_t number, const std::optional<std::uint16_t>& than) {
    return !than || static_cast<std::int16_t>(number - *than) < 0;
  };
  if (earlier(sent.msn, flow.first_msn)) flow.first_msn = sent.msn;
  const bool immediate = wire::has_immediate(packet.opcode());
  if (immediate && earlier(rqmsn, flow.first_rqmsn)) flow.first_rqmsn = rqmsn;
}

void DialectFinder::on_probe(const SeenPacket& packet) {
  ByteReader reader = behind_bth(packet);
  reader.skip(4);
  const std::uint16_t id = reader.u16();
  reader.skip(6);
  Sent sent{.port = packet.source_port,
            .inner_label = packet.inner_label,
            .outer_label = packet.outer_label,
            .tunnel = packet.tunnel,
            .v4 = packet.source.is_v4,
            .stamped = true,
            .ticks = reader.u16()};
  if (!reader.failed()) remember({packet.source, packet.destination, id, true}, sent);
}

const DialectFinder::Sent* DialectFinder::answered(const SeenPacket& answer, std::uint32_t number,
                                                   bool probe) const {
  const auto found = sent_.find({answer.destination, answer.source, number & 0xFF'FFFF, probe});
  return found == sent_.end() || found->second.again ? nullptr : &found->second;
}

void DialectFinder::on_ack(const SeenPacket& packet) {
  ByteReader reader = behind_bth(packet);
  const std::uint8_t syndrome = reader.u8() & 0x7F;
  const auto msn = static_cast<std::uint16_t>(reader.u24());
  if (reader.failed()) return;
  if (syndrome != wire::kSyndromeAck) {
    ++traffic_.nak_codes[syndrome];
    return;
  }
  const Sent* const write = answered(packet, psn_of(packet), false);
  if (write == nullptr || !write->ends_message) return;
  if (msn == write->msn) vote("ack_msn", value_of(wire::AckMsn::kLast));
  if (msn == static_cast<std::uint16_t>(write->msn + 1)) {
    vote("ack_msn", value_of(wire::AckMsn::kNext));
  }
}

// As an EV of 32 bits it is [label][port] or [port][label]. Halves that are alike tell nothing.
void DialectFinder::compare_echo(const Sent& sent, std::uint32_t echo) {
  const auto high = static_cast<std::uint16_t>(echo >> 16);
  const auto low = static_cast<std::uint16_t>(echo);
  const auto is_label = [&](std::uint16_t value) {
    return sent.v4 ? value == 0
                   : value == sent.inner_label || (sent.tunnel && value == sent.outer_label);
  };
  const bool low_in_port = low == sent.port && is_label(high);
  const bool high_in_port = high == sent.port && is_label(low);
  if (low_in_port == high_in_port) return;
  vote("ev_order", value_of(low_in_port ? wire::EvOrder::kLowInPort : wire::EvOrder::kHighInPort));
  if (!sent.tunnel || sent.inner_label == sent.outer_label) return;
  const std::uint16_t label = low_in_port ? high : low;
  vote("ev_label",
       value_of(label == sent.inner_label ? wire::EvLabel::kInner : wire::EvLabel::kOuter));
}

void DialectFinder::compare_stamp(const Sent& sent, std::uint16_t ticks) {
  if (!sent.stamped) return;
  const auto advanced = static_cast<std::uint16_t>(ticks - sent.ticks);
  if (advanced == 0) ++stamps_as_sent_;
  if (advanced > 0 && advanced < kMostAdvanced) ++stamps_advanced_;
}

void DialectFinder::on_sack(const SeenPacket& packet) {
  ByteReader reader = behind_bth(packet);
  const bool probe = (reader.u16() & 0x0002) != 0;
  const std::uint16_t offset = reader.u16();
  const std::uint32_t echo = reader.u32();
  reader.skip(5);
  const std::uint32_t cumulative = reader.u24();
  reader.skip(1);
  const std::uint8_t window = reader.u8();
  reader.skip(10);
  const std::uint16_t ticks = reader.u16();
  if (reader.failed()) return;
  if (window != 0) vote("window", window);
  const auto signed_offset = static_cast<std::int16_t>(offset);
  const std::uint32_t number =
      probe ? offset : cumulative + static_cast<std::uint32_t>(std::int32_t{signed_offset});
  const Sent* const sent = answered(packet, number, probe);
  if (sent == nullptr) return;
  compare_echo(*sent, echo);
  compare_stamp(*sent, ticks);
  if (sent->flow == kNoFlow) return;
  flows_[sent->flow].acknowledged = cumulative;
  flows_[sent->flow].has_acknowledged = true;
}

void DialectFinder::on_nack(const SeenPacket& packet) {
  ByteReader reader = behind_bth(packet);
  reader.skip(2);
  const std::uint8_t reason = reader.u8();
  reader.skip(1);
  const std::uint32_t echo = reader.u32();
  reader.skip(5);
  const std::uint32_t psn = reader.u24();
  if (reader.failed()) return;
  ++traffic_.nack_reasons[reason];
  if (const Sent* const sent = answered(packet, psn, false)) compare_echo(*sent, echo);
}

void DialectFinder::on_request(const SeenPacket& packet) {
  ByteReader reader = behind_bth(packet);
  const auto op = static_cast<wire::EndpointOp>(reader.u16() & 0x03);
  reader.skip(2);
  const std::uint32_t mask = reader.u32();
  if (!reader.failed() && op == wire::EndpointOp::kPortStatusUpdate) ++port_masks_[mask];
}

// A port status update has op 0, which tells nothing.
void DialectFinder::on_response(const SeenPacket& packet) {
  const std::uint16_t flags = behind_bth(packet).u16();
  constexpr auto kProbe = static_cast<unsigned>(wire::EndpointOp::kEvProbe);
  const bool at_2 = (flags >> 2 & 0x03) == kProbe;
  const bool at_4 = (flags >> 4 & 0x03) == kProbe;
  if (at_2 == at_4) return;
  vote("eeth_op", value_of(at_2 ? wire::EethOp::kBits32 : wire::EethOp::kBits54));
}

}  // namespace mrc::capture
