// Every packet an engine hands out is one that the contract allows at that moment.
#include <cinttypes>

#include "dst/checker.h"
#include "dst/failure.h"
#include "dst/world.h"

namespace mrc::dst {
namespace {

constexpr std::uint32_t kMsnMask = 0xFF'FFFF;
// An answer follows its cause within this time: there may be others in front of it.
constexpr DurationNs kAnswerNs = 20 * kMicrosecondNs;
// How often the congestion window is compared after a send.
constexpr std::uint32_t kWindowSampling = 16;

unsigned hex(QpNumber number) { return static_cast<unsigned>(number); }

}  // namespace

Checker::Checker(World& world) : world_(world), random_(world.stage.swarm.seed, Stream::kChecks) {}

EndRef Checker::on_transmit(const Host& host, PortMask free, const core::TxPacket& tx) {
  check_route(host, free, tx);
  if (tx.packet.bth.destination == kEndpointQp) {
    ++control_packets_;
    return {kNoConnection, 0};
  }
  const auto from = world_.model.find(host.id(), tx.local_qp);
  MRC_CHECK(from.has_value(), "host %u sends for queue pair %06x, which does not exist", host.id(),
            hex(tx.local_qp));
  const End& end = world_.model.end(*from);
  MRC_CHECK(tx.destination == end.rtr.remote, "queue pair %06x sends to the wrong address",
            hex(tx.local_qp));
  MRC_CHECK(tx.packet.bth.destination == end.rtr.remote_qp,
            "queue pair %06x sends to queue pair %06x instead of %06x", hex(tx.local_qp),
            hex(tx.packet.bth.destination), hex(end.rtr.remote_qp));
  if (wire::is_write(tx.packet.bth.opcode)) {
    check_write(*from, free, tx);
    if (random_.one_in(kWindowSampling)) check_congestion_window(host, *from, tx);
    return *from;
  }
  ++control_packets_;
  MRC_CHECK(tx.payload_length == 0, "a control packet has a payload");
  // Probes that ask after a bad path have ids with the top bit set.
  const auto* probe = std::get_if<wire::Probe>(&tx.packet.body);
  if (probe != nullptr && probe->probe_id < 0x8000) {
    End& asker = world_.model.end(*from);
    asker.last_probe = host.clock();
    asker.last_question = {probe->probe_id, tx.ev, host.clock()};
  }
  if (const auto* sack = std::get_if<wire::Sack>(&tx.packet.body)) check_sack(*from, *sack);
  if (const auto* ack = std::get_if<wire::Ack>(&tx.packet.body))
    check_ack(*from, tx.packet.bth.psn, *ack);
  if (const auto* nack = std::get_if<wire::Nack>(&tx.packet.body)) check_nack(*from, *nack);
  return *from;
}

void Checker::check_route(const Host& host, PortMask free, const core::TxPacket& tx) const {
  const auto port = static_cast<unsigned>(tx.port);
  MRC_CHECK(port >= 1 && port <= world_.stage.swarm.ports, "port %u does not exist", port);
  MRC_CHECK(free.contains(tx.port), "host %u sends on port %u, which is busy", host.id(), port);
  MRC_CHECK(host.ports_up().contains(tx.port), "host %u sends on port %u, which is down", host.id(),
            port);
  if (tx.ev == kNoEv) return;
  MRC_CHECK(tx.profile != nullptr, "a packet names EV %u of no profile",
            static_cast<unsigned>(tx.ev));
  MRC_CHECK(static_cast<unsigned>(tx.ev) < tx.profile->size(), "EV %u is not in the profile",
            static_cast<unsigned>(tx.ev));
  const core::EvEntry& entry = tx.profile->entry(tx.ev);
  MRC_CHECK(entry.port == tx.port && entry.entropy == tx.entropy,
            "EV %u is port %u entropy %08x, but the packet says port %u entropy %08x",
            static_cast<unsigned>(tx.ev), static_cast<unsigned>(entry.port), entry.entropy, port,
            tx.entropy);
}

void Checker::check_write(EndRef from, PortMask free, const core::TxPacket& tx) {
  End& end = world_.model.end(from);
  Flow& flow = world_.model.outgoing(from);
  const unsigned qp = hex(tx.local_qp);
  MRC_CHECK(end.state == EndState::kLive, "queue pair %06x sends data after it failed", qp);
  MRC_CHECK(tx.ev != kNoEv && tx.profile == end.init.ev_profile,
            "queue pair %06x sends data outside its EV profile", qp);
  MRC_CHECK(!end.denied.contains(static_cast<std::uint16_t>(tx.ev)),
            "queue pair %06x sends data on EV %u, which is denied", qp,
            static_cast<unsigned>(tx.ev));
  MRC_CHECK(tx.traffic_class != core::TrafficClass::kControl, "data travels as control");
  const std::int64_t number = flow.packet_number(tx.packet.bth.psn);
  MRC_CHECK(number >= 0 && number <= static_cast<std::int64_t>(flow.sent_packets()),
            "queue pair %06x sends PSN %06x, but the next new one is %06x", qp,
            tx.packet.bth.psn.value(), flow.psn(flow.sent_packets()).value());
  const auto packet = static_cast<std::uint64_t>(number);
  MRC_CHECK(packet < flow.posted_packets(), "queue pair %06x sends PSN %06x, nothing was posted",
            qp, tx.packet.bth.psn.value());
  check_write_fields(from, packet, tx);
  check_remote_port(from, tx);
  check_window(from, packet);
  ++data_packets_;
  payload_bytes_ += tx.payload_length;
  const bool is_new = packet == flow.sent_packets();
  MRC_CHECK(tx.packet.bth.retransmission != is_new, "PSN %06x of queue pair %06x: rtx is %d",
            tx.packet.bth.psn.value(), qp, tx.packet.bth.retransmission);
  if (is_new) {
    check_immediates_in_flight(from, packet);
    flow.on_sent_new();
  } else {
    ++retransmissions_;
    check_retransmission(from, packet, free, tx);
  }
  end.last_data = world_.hosts[end.host]->clock();
  end.history.on_sent(end.last_data, packet, tx.ev, tx.traffic_class);
}

void Checker::check_write_fields(EndRef from, std::uint64_t packet, const core::TxPacket& tx) {
  const Flow& flow = world_.model.outgoing(from);
  const PacketShape shape = flow.shape(packet);
  const core::SendRequest& request = flow.messages()[shape.message].request;
  const wire::Write& write = std::get<wire::Write>(tx.packet.body);
  const unsigned psn = tx.packet.bth.psn.value();
  MRC_CHECK(tx.packet.bth.opcode == shape.opcode, "PSN %06x has opcode %02x instead of %02x", psn,
            static_cast<unsigned>(tx.packet.bth.opcode), static_cast<unsigned>(shape.opcode));
  MRC_CHECK(tx.payload_length == shape.length, "PSN %06x carries %u bytes instead of %u", psn,
            tx.payload_length, shape.length);
  MRC_CHECK(tx.local_address == request.local_address + shape.offset,
            "PSN %06x takes its payload from %#" PRIx64 " instead of %#" PRIx64, psn,
            tx.local_address, request.local_address + shape.offset);
  MRC_CHECK(write.address == request.remote_address + shape.offset,
            "PSN %06x goes to %#" PRIx64 " instead of %#" PRIx64, psn, write.address,
            request.remote_address + shape.offset);
  MRC_CHECK(write.key == request.remote_key, "PSN %06x shows the wrong key", psn);
  MRC_CHECK(write.message_length == request.length, "PSN %06x says %u bytes instead of %u", psn,
            write.message_length, request.length);
  MRC_CHECK(write.msn == static_cast<std::uint16_t>(shape.message), "PSN %06x has MSN %u, not %u",
            psn, write.msn, shape.message);
  if (!request.with_immediate) return;
  const std::uint32_t receive_msn = flow.messages()[shape.message].immediate_number;
  MRC_CHECK(write.receive_msn == static_cast<std::uint16_t>(receive_msn),
            "PSN %06x has RQMSN %u, not %u", psn, write.receive_msn, receive_msn);
  MRC_CHECK(!wire::has_immediate(shape.opcode) || write.immediate == request.immediate,
            "PSN %06x has immediate %#x, not %#x", psn, write.immediate, request.immediate);
}

// No data goes to a port of which the peer has said that it is down, as long as another is left.
void Checker::check_remote_port(EndRef from, const core::TxPacket& tx) const {
  const End& end = world_.model.end(from);
  const Host& host = *world_.hosts[end.host];
  const auto entry = remote_ports_.find({end.host, static_cast<unsigned>(tx.destination.low - 1)});
  // The world knows what the engine knows only where events are read at once.
  const bool current = host.events_lost() == 0 && !world_.stage.swarm.on(Fault::kSlowConsumer);
  if (entry == remote_ports_.end() || !current) return;
  const PortMask usable = entry->second & host.ports_up() & end.init.ev_profile->ports();
  MRC_CHECK(usable.empty() || usable.contains(tx.port),
            "queue pair %06x sends data on port %u, which its peer has called down",
            hex(tx.local_qp), static_cast<unsigned>(tx.port));
}

// New PSNs stay in [cack + 1, cack + MPR], with cack as far as the peer's answers have told it.
void Checker::check_window(EndRef from, std::uint64_t packet) {
  const End& end = world_.model.end(from);
  const std::uint64_t window = std::uint64_t{end.rts.mpr} * core::kWindowUnitPsns;
  MRC_CHECK(packet < end.known_contiguous + window,
            "PSN %06x is beyond the window of %" PRIu64 " from %06x",
            world_.model.outgoing(from).psn(packet).value(), window,
            world_.model.outgoing(from).psn(end.known_contiguous).value());
}

// A packet that fits no window may go alone: when nothing that counts is in flight but itself.
void Checker::check_congestion_window(const Host& host, EndRef from, const core::TxPacket& tx) {
  const End& end = world_.model.end(from);
  if (end.init.cc.algorithm == core::CcAlgorithm::kNone) return;
  const auto status = host.engine().query_qp(end.config.number);
  MRC_CHECK(status.ok(), "query_qp refused a live queue pair: %s", status.status().what());
  const core::QpStatus& qp = status.value();
  const bool alone = qp.peer_bytes_in_flight == wire::nominal_size(tx.packet, tx.payload_length);
  MRC_CHECK(alone || qp.peer_bytes_in_flight <= qp.window_bytes,
            "sent with %" PRId64 " bytes in flight in a window of %" PRId64,
            qp.peer_bytes_in_flight, qp.window_bytes);
}

// --- Answers: they may lag behind, but they never claim what is not so ---

void Checker::check_sack(EndRef from, const wire::Sack& sack) {
  const End& end = world_.model.end(from);
  const Flow& flow = world_.model.incoming(from);
  const unsigned qp = hex(end.config.number);
  const std::int64_t cack = flow.packet_number(sack.cumulative);
  MRC_CHECK(cack >= -1 && cack < static_cast<std::int64_t>(flow.contiguous()),
            "queue pair %06x acknowledges up to %06x, but %06x has not arrived", qp,
            sack.cumulative.value(), flow.psn(flow.contiguous()).value());
  for (unsigned bit = 0; bit < 64; ++bit) {
    if ((sack.bitmap >> bit & 1) == 0) continue;
    const std::int64_t packet = cack + sack.bitmap_offset + bit;
    MRC_CHECK(packet < 0 || flow.has_arrived(static_cast<std::uint64_t>(packet)),
              "queue pair %06x says that PSN %06x has arrived, which is not so", qp,
              (sack.cumulative + static_cast<std::uint32_t>(sack.bitmap_offset) + bit).value());
  }
  const bool dynamic = end.rtr.dynamic_mpr;
  MRC_CHECK(dynamic ? sack.window_units >= 1 && sack.window_units <= end.rtr.mpr_dest
                    : sack.window_units == 0,
            "SACK of queue pair %06x announces a window of %u units", qp, sack.window_units);
  MRC_CHECK(end.entropies_seen.contains(sack.entropy),
            "SACK of queue pair %06x echoes entropy %08x, which never arrived", qp, sack.entropy);
  MRC_CHECK(sack.mark != wire::PathMark::kSkipOnce || end.entropies_marked.contains(sack.entropy),
            "SACK of queue pair %06x calls entropy %08x congested, which was never marked", qp,
            sack.entropy);
  MRC_CHECK(
      sack.mark != wire::PathMark::kAlwaysSkip || end.entropies_corrupted.contains(sack.entropy),
      "SACK of queue pair %06x calls entropy %08x bad, but nothing on it was corrupt", qp,
      sack.entropy);
  const std::uint64_t units = (end.nominal_bytes_arrived + 255) / 256;
  MRC_CHECK(((units - sack.received_units) & 0xFF'FFFF) < 0x80'0000,
            "SACK of queue pair %06x counts %u units received, %" PRIu64 " did", qp,
            sack.received_units, units);
}

void Checker::check_ack(EndRef from, Psn psn, const wire::Ack& ack) {
  End& end = world_.model.end(from);
  // Soon after the cause, or after the host could do anything at all again; and behind all answers
  // that may wait for a port.
  const Host& host = *world_.hosts[end.host];
  const DurationNs soon = kAnswerNs + host.longest_answer_queue_ns();
  for (Tally* tally : {&end.duplicates, &end.probes}) {
    const TimeNs since = std::max(tally->last, host.resumed_at());
    if (tally->last >= 0 && world_.stage.now - since <= soon) ++tally->answered;
  }
  end.last_ack = world_.stage.now;
  const Connection& connection = world_.model.connection(from.connection);
  const Flow& flow = world_.model.incoming(from);
  const unsigned qp = hex(end.config.number);
  if (ack.syndrome != wire::kSyndromeAck) {
    const bool provoked = end.provoked_psns.contains(psn.value());
    MRC_CHECK(connection.doomed() || provoked, "queue pair %06x sends NAK %#x without a cause", qp,
              ack.syndrome);
    return;
  }
  // All messages in front of the one that the first missing packet belongs to.
  const std::uint64_t done =
      flow.all_arrived() ? flow.messages().size() : flow.shape(flow.contiguous()).message;
  MRC_CHECK(((done - ack.msn) & kMsnMask) < 0x80'0000,
            "queue pair %06x acknowledges message %u, but only %" PRIu64 " have arrived", qp,
            ack.msn, done);
}

void Checker::check_nack(EndRef from, const wire::Nack& nack) {
  const End& end = world_.model.end(from);
  const unsigned qp = hex(end.config.number);
  const std::uint32_t psn = nack.psn.value();
  bool caused = false;
  switch (nack.reason) {
    case wire::NackReason::kTrimmed:
    case wire::NackReason::kTrimmedLastHop:
      caused = end.trimmed_psns.contains(psn);
      break;
    case wire::NackReason::kNoPacketBuffer:
    case wire::NackReason::kNoResource:
      caused = end.refused_psns.contains(psn);
      break;
    case wire::NackReason::kPsnOutOfWindow:
    case wire::NackReason::kNoBitmap:
      caused = end.outside_psns.contains(psn);
      break;
    case wire::NackReason::kUnexpectedEvent:
      caused = world_.model.connection(from.connection).doomed();
      break;
  }
  MRC_CHECK(caused, "queue pair %06x sends NACK %#x for PSN %06x without a cause", qp,
            static_cast<unsigned>(nack.reason), psn);
}

}  // namespace mrc::dst
