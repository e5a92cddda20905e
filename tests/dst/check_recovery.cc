// Loss recovery as the protocol documents promise it: what is sent again, where, when, and why not.
#include <algorithm>
#include <bit>
#include <cinttypes>

#include "dst/checker.h"
#include "dst/failure.h"
#include "dst/world.h"

namespace mrc::dst {
namespace {

// So often something must have happened before its effect is asked for.
constexpr std::uint64_t kOftenEnough = 30;
// The same where something else may be quicker than what is asked for.
constexpr std::uint64_t kManyTimes = 100;

unsigned hex(QpNumber number) { return static_cast<unsigned>(number); }

DurationNs retry_interval(const End& end) { return DurationNs{1'024} << end.rts.timeout; }

}  // namespace

// --- What is sent again ---

void Checker::check_retransmission(EndRef from, std::uint64_t packet, PortMask free,
                                   const core::TxPacket& tx) {
  End& end = world_.model.end(from);
  MRC_CHECK(!end.history.told(packet),
            "queue pair %06x sends PSN %06x again although the peer has said that it has it",
            hex(tx.local_qp), tx.packet.bth.psn.value());
  check_other_path(from, packet, free, tx);
  ++end.repeats_overtaken.count;
  if (end.history.overtaken(packet)) ++end.repeats_overtaken.answered;
  const auto status = world_.hosts[end.host]->engine().query_qp(tx.local_qp);
  MRC_CHECK(status.ok(), "query_qp refused a live queue pair: %s", status.status().what());
  check_backoff(from, status.value());
  if (status.value().counters.timeouts == end.timeouts_seen) return;
  end.timeouts_seen = status.value().counters.timeouts;
  check_tail_probe(from, status.value());
}

// Never on the path that failed while there is another. Not looked at where backups are held in
// reserve or planes come and go, since the world does not know which paths are in use then.
void Checker::check_other_path(EndRef from, std::uint64_t packet, PortMask free,
                               const core::TxPacket& tx) const {
  const End& end = world_.model.end(from);
  if (end.history.last_ev(packet) != tx.ev || end.init.active_evs != 0) return;
  if (world_.stage.swarm.on(Fault::kPortDown) || world_.stage.swarm.on(Fault::kForgery)) return;
  const core::EvProfile& profile = *end.init.ev_profile;
  const core::Endpoint& engine = world_.hosts[end.host]->engine();
  for (std::uint16_t i = 0; i < profile.size(); ++i) {
    const EvIndex other{i};
    if (other == tx.ev || !free.contains(profile.port(other))) continue;
    const auto state = engine.query_ev(tx.local_qp, other);
    MRC_CHECK(!state.ok() || state.value() != core::EvState::kGood,
              "queue pair %06x sends PSN %06x again on EV %u although EV %u is good",
              hex(tx.local_qp), tx.packet.bth.psn.value(), static_cast<unsigned>(tx.ev), i);
  }
}

// Started and not yet acknowledged by the transport: at most what the peer can stash.
void Checker::check_immediates_in_flight(EndRef from, std::uint64_t packet) {
  const End& end = world_.model.end(from);
  const Flow& flow = world_.model.outgoing(from);
  const Message& message = flow.message_of(packet);
  if (!message.request.with_immediate || message.first_packet != packet) return;
  const auto& immediates = flow.immediates();
  const auto known = std::lower_bound(immediates.begin(), immediates.end(), end.known_messages);
  const auto acknowledged = static_cast<std::uint32_t>(known - immediates.begin());
  MRC_CHECK(message.immediate_number < acknowledged + end.rts.max_wimm,
            "queue pair %06x has %u immediates in flight, its peer can stash %u",
            hex(end.config.number), message.immediate_number - acknowledged + 1, end.rts.max_wimm);
}

// --- Timers ---

// Without progress the retry timer expires at its interval for the linear tries, then at doubling
// ones.
void Checker::check_backoff(EndRef from, const core::QpStatus& status) {
  End& end = world_.model.end(from);
  if (end.timeouts_since != end.tries_renewed) {
    end.timeouts_since = end.tries_renewed;
    end.timeouts_base = status.counters.timeouts;
  }
  const DurationNs silence = world_.hosts[end.host]->clock() - end.tries_renewed;
  const auto intervals = static_cast<std::uint64_t>(silence / retry_interval(end));
  const std::uint64_t most = end.rts.linear_retries + 2u + std::bit_width(intervals);
  MRC_CHECK(status.counters.timeouts - end.timeouts_base <= most,
            "the retry timer of queue pair %06x expired %" PRIu64 " times in %" PRId64
            " us without progress, at most %" PRIu64 " are due",
            hex(end.config.number), status.counters.timeouts - end.timeouts_base,
            silence / kMicrosecondNs, most);
}

// The retry timer is the last resort: a probe goes out long before, when all has been quiet for a
// few round trips. Looked at where timers are punctual and the interval is much longer than that.
void Checker::check_tail_probe(EndRef from, const core::QpStatus& status) const {
  const End& end = world_.model.end(from);
  const Host& host = *world_.hosts[end.host];
  const Swarm& swarm = world_.stage.swarm;
  if (swarm.on(Fault::kTimerLate) || swarm.on(Fault::kPause) || swarm.on(Fault::kClockJump)) return;
  const bool all_up = host.ports_up() == PortMask::first(swarm.ports);
  const DurationNs half = retry_interval(end) / 2;
  if (!all_up || status.good_evs < 2 || status.smoothed_rtt_ns == 0) return;
  // Something is unanswered and nothing was heard since. The delay of probes doubles, so one is
  // enough.
  if (end.last_heard >= end.last_data) return;
  // Where the only port was down, no probe could leave.
  const DurationNs quiet = std::min(host.clock() - end.last_data, host.ports_steady_ns());
  const DurationNs answer_ns = status.smoothed_rtt_ns + swarm.end_jitter_ns;
  if (half < 8 * answer_ns || quiet < half) return;
  MRC_CHECK(end.last_probe >= end.last_heard,
            "queue pair %06x was quiet for %" PRId64 " us and waited for its retry timer",
            hex(end.config.number), quiet / kMicrosecondNs);
}

void Checker::check_retries_used_up(EndRef ref) const {
  const End& end = world_.model.end(ref);
  const DurationNs interval = retry_interval(end);
  const DurationNs least =
      interval * (end.rts.linear_retries + (DurationNs{1} << end.rts.exponential_retries) - 1);
  const DurationNs silence = world_.hosts[end.host]->clock() - end.last_progress;
  MRC_CHECK(silence >= least,
            "queue pair %06x gave up %" PRId64
            " us after its last progress, its retries last %" PRId64,
            hex(end.config.number), silence / kMicrosecondNs, least / kMicrosecondNs);
}

// --- What feedback does ---

void Checker::before_arrival(const Host& host, const Flight& flight, const wire::Packet& packet) {
  before_.reset();
  const auto opcode = packet.bth.opcode;
  const bool tells = opcode == wire::Opcode::kSack || opcode == wire::Opcode::kAck;
  const bool wanted = opcode == wire::Opcode::kNack || flight.attack != Attack::kCount ||
                      (tells && world_.stage.swarm.fifo_paths);
  if (!wanted) return;
  const auto status = host.engine().query_qp(packet.bth.destination);
  if (status.ok()) before_ = status.value();
}

// Everything a SACK or transport ACK tells about the packets of a flow. True when any of it is
// news.
bool Checker::note_told(EndRef to, const wire::Packet& packet) {
  End& end = world_.model.end(to);
  const Flow& flow = world_.model.outgoing(to);
  const auto* sack = std::get_if<wire::Sack>(&packet.body);
  const auto* ack = std::get_if<wire::Ack>(&packet.body);
  if (sack == nullptr && (ack == nullptr || ack->syndrome != wire::kSyndromeAck)) return false;
  const std::int64_t last = flow.packet_number(sack != nullptr ? sack->cumulative : packet.bth.psn);
  const auto size = static_cast<std::int64_t>(end.history.size());
  const std::uint64_t given_up = before_ ? before_->packets_lost : 0;
  bool news = false;
  const std::int64_t contiguous = std::min(last + 1, size);
  while (static_cast<std::int64_t>(end.known_contiguous) < contiguous) {
    news = end.history.tell(end.known_contiguous++, given_up) || news;
  }
  if (ack != nullptr && ack->msn > end.known_messages && ack->msn <= flow.messages().size()) {
    end.known_messages = ack->msn;
    news = true;
  }
  if (sack == nullptr) return news;
  const std::int64_t trigger = last + sack->trigger_offset();
  if (!sack->probe_answer && trigger >= 0 && trigger < size) {
    news = end.history.tell(static_cast<std::uint64_t>(trigger), given_up) || news;
  }
  for (unsigned bit = 0; bit < 64; ++bit) {
    const std::int64_t number = last + sack->bitmap_offset + bit;
    if ((sack->bitmap >> bit & 1) == 0 || number < 0 || number >= size) continue;
    news = end.history.tell(static_cast<std::uint64_t>(number), given_up) || news;
  }
  return news;
}

void Checker::on_feedback(Host& host, EndRef to, const Received& received) {
  End& end = world_.model.end(to);
  if (received.packet.bth.opcode == wire::Opcode::kNack) check_nack_taken(host, to, received);
  // A refusal that is not believed yet is an answer all the same: its packet is asked for again,
  // and may wait for its turn like any that was lost.
  if (received.result.drop == DropReason::kUnproven) end.last_heard = host.clock();
  if (received.result.drop != DropReason::kNone) return;
  if (received.packet.bth.opcode == wire::Opcode::kProbe) {
    // Ends with jitter take an ACK that left just now for on its way.
    const DurationNs since_ack = world_.stage.now - end.last_ack;
    const bool has_ack = world_.model.incoming(to).first_message_done() &&
                         since_ack > 2 * world_.stage.swarm.end_jitter_ns;
    if (has_ack && world_.hosts[end.host]->can_answer(end)) {
      end.probes.on_cause(world_.stage.now);
    }
    return;
  }
  end.last_heard = host.clock();
  const bool news = note_told(to, received.packet);
  // A sender that has nothing under way and hears its peer may start its tries anew.
  const bool nothing_out = end.known_contiguous == end.history.size() &&
                           end.known_messages >= world_.model.outgoing(to).sent_messages();
  if (news) end.last_progress = host.clock();
  if (news || nothing_out) end.tries_renewed = host.clock();
}

// The first NACK for a packet that was sent once and is not given up yet is heard and counted.
void Checker::check_nack_taken(Host& host, EndRef to, const Received& received) {
  End& end = world_.model.end(to);
  const auto& nack = std::get<wire::Nack>(received.packet.body);
  const std::int64_t number = world_.model.outgoing(to).packet_number(nack.psn);
  const bool known = number >= 0 && number < static_cast<std::int64_t>(end.history.size());
  const bool live = before_ && before_->state == core::QpState::kReadyToSend;
  if (!known || !live || nack.reason == wire::NackReason::kUnexpectedEvent) return;
  const auto packet = static_cast<std::uint64_t>(number);
  const auto& entry = end.init.ev_profile->entry(end.history.last_ev(packet));
  const bool fresh = end.history.sent_once(packet) && !end.history.told(packet) &&
                     before_->packets_lost == 0 && entry.entropy == nack.entropy;
  const core::QpStatus after = host.engine().query_qp(end.config.number).value();
  const std::uint64_t counted = after.counters.trimmed + after.counters.refused -
                                before_->counters.trimmed - before_->counters.refused;
  MRC_CHECK(!fresh || (received.result.drop == DropReason::kNone && counted == 1),
            "queue pair %06x does not hear the NACK %#x for PSN %06x ('%s')",
            hex(end.config.number), static_cast<unsigned>(nack.reason), nack.psn.value(),
            drop_reason_name(received.result.drop));
  if (received.result.drop == DropReason::kNone) {
    end.history.refuse(packet);
    ++end.transmissions_allowed;  // what was trimmed has to be sent again, however often
  }
  const bool trimmed =
      nack.reason == wire::NackReason::kTrimmed || nack.reason == wire::NackReason::kTrimmedLastHop;
  if (trimmed && counted == 1) note_trim(to, after);
}

// All queue pairs between two hosts share a window, so their trims are counted together: one may
// see only those that come while the queue drains which the trims of another were answered for.
void Checker::note_trim(EndRef to, const core::QpStatus& after) {
  const End& end = world_.model.end(to);
  const std::int64_t roomy = 4 * std::int64_t{core::kMaxPathMtu};
  if (before_->window_bytes < roomy) return;
  if (end.init.cc.algorithm == core::CcAlgorithm::kNone) return;
  Tally& trims = trims_[{end.host, world_.model.end(to.peer()).host}];
  ++trims.count;
  if (after.window_bytes < before_->window_bytes) ++trims.answered;
}

// --- Effort ---

// What the sender does not know to have arrived may be sent three times, and a few packets more;
// also once for each NACK and for each packet that a queue dropped, or trimmed where the peer sends
// no NACKs for that, since queues are as short as they were.
void Checker::begin_drain() {
  for (const EndRef ref : world_.model.ends()) {
    End& end = world_.model.end(ref);
    const std::uint64_t open = world_.model.outgoing(ref).posted_packets() - end.known_contiguous;
    end.transmissions_allowed = end.history.transmissions() + 3 * open + kManyTimes;
  }
}

void Checker::check_drain_effort() const {
  if (!world_.stage.swarm.heals()) return;
  for (const EndRef ref : world_.model.ends()) {
    const End& end = world_.model.end(ref);
    const End& peer = world_.model.end(ref.peer());
    const bool healthy = end.state == EndState::kLive && peer.state == EndState::kLive;
    const auto found = world_.stage.quiet_losses.find({ref.connection, ref.side});
    const auto lost =
        found == world_.stage.quiet_losses.end() ? Stage::QueueLosses{} : found->second;
    const std::uint64_t untold = lost.dropped + (peer.rtr.trim_nack ? 0 : lost.trimmed);
    const std::uint64_t allowed = end.transmissions_allowed + untold;
    MRC_CHECK(!healthy || end.history.transmissions() <= allowed,
              "queue pair %06x sent %" PRIu64 " packets, %" PRIu64
              " would have been enough in a healthy network",
              hex(end.config.number), end.history.transmissions(), allowed);
  }
}

// --- At the end ---

void Checker::check_tallies(EndRef ref, const core::QpStatus& status) const {
  const End& end = world_.model.end(ref);
  const unsigned qp = hex(end.config.number);
  const auto ignored = [](const Tally& tally) {
    return tally.count >= kOftenEnough && tally.answered == 0;
  };
  const auto trims = trims_.find({end.host, world_.model.end(ref.peer()).host});
  MRC_CHECK(trims == trims_.end() || !ignored(trims->second),
            "no trimmed packet ever made the window of queue pair %06x and its like smaller", qp);
  MRC_CHECK(!ignored(end.duplicates), "queue pair %06x never acknowledges duplicates again", qp);
  MRC_CHECK(!ignored(end.probes), "queue pair %06x never acknowledges again when probed", qp);
  // Packets that were not waited for never get as far as a proof, nor do those whose time was up:
  // who comes back from a pause may look at the clock before it reads what was told meanwhile.
  const std::uint64_t unproven =
      status.counters.lost_by_timeout + end.history.overtaken_after_given_up();
  const bool enough =
      world_.stage.swarm.fifo_paths && end.repeats_overtaken.answered >= kManyTimes + unproven;
  const auto proofs = status.counters.lost_by_path_order + status.counters.hedged;
  MRC_CHECK(!enough || proofs != 0,
            "%" PRIu64
            " packets of queue pair %06x were overtaken on their path, which proved nothing",
            end.repeats_overtaken.answered, qp);
}

// On paths that keep the order, what was overtaken on its path is lost, without any false alarm.
void Checker::check_path_order(EndRef ref, const core::QpStatus& status) const {
  const Swarm& swarm = world_.stage.swarm;
  static constexpr Fault kBreakOrder[] = {
      Fault::kDuplicateNow, Fault::kDuplicateLate,   Fault::kDuplicateAfterCompletion,
      Fault::kStaleReplay,  Fault::kReorderSmall,    Fault::kReorderWindow,
      Fault::kSlowPath,     Fault::kReplayAfterReuse};
  const bool ordered = swarm.fifo_paths && !swarm.retransmissions_overtake &&
                       std::none_of(std::begin(kBreakOrder), std::end(kBreakOrder),
                                    [&](Fault f) { return swarm.on(f); });
  if (!ordered) return;
  const std::uint64_t gone = status.counters.data_sent -
                             world_.model.outgoing(ref).arrived_packets() -
                             world_.model.end(ref.peer()).duplicates_arrived;
  MRC_CHECK(status.counters.lost_by_path_order <= gone,
            "queue pair %06x says that path order proved %" PRIu64 " losses, but only %" PRIu64
            " packets were lost",
            hex(world_.model.end(ref).config.number), status.counters.lost_by_path_order, gone);
}

}  // namespace mrc::dst
