// What SACKs, NACKs and transport acknowledgements do to the requester's records.
#include <algorithm>
#include <bit>

#include "base/planted_bug.h"
#include "core/requester.h"

namespace mrc::core {
namespace {

constexpr DurationNs kFastestAnswerNs = 4 * kTickNs;

// Refused is one message; the peer goes on with the others.
bool peer_lives_on(CompletionStatus status) {
  return status == CompletionStatus::kRemoteAccess ||
         status == CompletionStatus::kRemoteInvalidRequest;
}

bool status_of_nak(std::uint8_t syndrome, CompletionStatus& status) {
  using enum CompletionStatus;
  switch (syndrome) {
    case wire::kSyndromeNakInvalidRequest:
      status = kRemoteInvalidRequest;
      return true;
    case wire::kSyndromeNakRemoteAccess:
      status = kRemoteAccess;
      return true;
    case wire::kSyndromeNakRemoteOperation:
      status = kRemoteOperation;
      return true;
    case wire::kSyndromeNakImmediateLimit:
      status = kImmediateLimit;
      return true;
    case wire::kSyndromeNakReceiveQueueEmpty:
      status = kReceiveMissing;
      return true;
    default:
      return false;
  }
}

using Copy = Requester::Copy;

Copy only_copy(const PacketRecord& packet) {
  return packet.transmissions == 1 ? Copy::kLast : Copy::kUnknown;
}

// A stamp comes back with the time its answer waited at the peer, so that it tells when the answer
// left and not when the packet did: one that a peer kept back while it was away fits all copies
// before that. Of two copies the path tells which one is meant.
Copy copy_by_stamp(const PacketRecord& packet) {
  const bool known = packet.transmissions < kSeveralTransmissions || MRC_BUG(kStampNamesAnyCopy);
  return known ? Copy::kLast : Copy::kOfItsPath;
}

// What was sent last, for answers to be held against.
struct Sent {
  const EvProfile& profile;
  const SendWindow& window;
  const ProbeTable& probes;
};

// Whether path and stamp of a NACK are those of the packet `seq` or of a probe. What an earlier
// connection of the same numbers was told, or a stranger makes up, knows neither: with 64 paths and
// an answer 10 us after its packet, 80 of 65,536 ticks fit, one guess in 50,000.
bool answers_us(TimeNs now, Sequence seq, const wire::Nack& nack, const Sent& sent) {
  if (MRC_BUG(kBelievesOldRefusals)) return true;
  const auto echoes = [&](EvIndex ev, TimeNs sent_at) {
    return sent.profile.matches(ev, nack.entropy) &&
           round_trip(now, sent_at, nack.timestamp_ticks) > 0;
  };
  if (sent.window.contains(seq)) {
    const PacketRecord packet = sent.window.record(seq);
    if (packet.state == PacketState::kInFlight && echoes(packet.ev, packet.sent_at)) return true;
  }
  return sent.probes.any_waits(
      [&](const ProbeTable::Probe& probe) { return echoes(probe.ev, probe.sent_at); });
}

}  // namespace

DropReason Requester::on_sack(TimeNs now, const wire::Sack& sack) {
  if (!started_) {  // of all that a SACK may tell, only the answer to a probe can be meant for us
    AckSample unused;
    return probing_ && sack.probe_answer ? on_probe_answer(now, sack, unused)
                                         : DropReason::kQpNotReady;
  }
  SackView view;
  if (!sack_reader_.read(sack, *window_, window_psns_, view)) return DropReason::kStaleFeedback;
  ++links_.counters->sacks_received;
  AckSample sample{
      .now = now, .window_penalty = sack.window_penalty, .restore_window = sack.restore_window};
  settled_bytes_ = 0;
  if (sack.probe_answer) {
    const DropReason drop = on_probe_answer(now, sack, sample);
    if (drop != DropReason::kNone) return drop;
    sample.marked = sack.mark == wire::PathMark::kSkipOnce;
  } else {
    const Sequence trigger =
        view.cumulative + static_cast<Sequence>(std::int64_t{sack.trigger_offset()});
    apply_path_mark(now, sack, answered_ev(sack, trigger));
    sample.marked = sack.mark == wire::PathMark::kSkipOnce;
    if (window_->contains(trigger)) settle_trigger(now, sack, trigger, sample);
  }
  settle_up_to(now, view.cumulative);
  if (MRC_BUG(kCumulativeOneTooMany) && window_->contains(view.cumulative + 1)) {
    settle_up_to(now, view.cumulative + 1);
  }
  settle_bitmap(now, view);
  if (setup_.dynamic_mpr && view.fresh && sack.window_units != 0) {
    window_psns_ = std::min(sack.window_units, setup_.rts.mpr) * kWindowUnitPsns;
  }
  sample.acked_bytes = settled_bytes_;
  links_.cc->on_ack(sample);
  // What we hear about abandoned paths, or have heard before, does not put off the question about
  // the work in hand: a peer that repeated itself every 30 us did so for 500.
  const bool aside =
      sack.probe_answer ? answers_revival(sack) : !MRC_BUG(kOldNewsPutOffTheQuestion);
  if (aside && settled_bytes_ == 0) {
    note_life(now);
  } else {
    note_feedback(now);
  }
  detect_losses(now, view);
  return DropReason::kNone;
}

// The path of the packet that was answered. The echoed entropy decides; the record saves the
// search.
EvIndex Requester::answered_ev(const wire::Sack& sack, Sequence trigger) const {
  const EvProfile& profile = links_.paths->profile();
  if (window_->contains(trigger)) {
    const EvIndex ev = window_->record(trigger).ev;
    if (ev != kNoEv && profile.matches(ev, sack.entropy)) return ev;
  }
  return sack.mark == wire::PathMark::kNone ? kNoEv : profile.find(sack.entropy);
}

// How many packets left in the time by which this one, of which we hear now, took longer than the
// average and more than paths usually differ.
std::uint32_t Requester::late_packets(TimeNs now, Sequence seq, TimeNs sent_at) const {
  const DurationNs taken = now - sent_at;
  if (taken <= rtt_.smoothed() + std::max(rtt_.minimum() / 2, links_.jitter_ns)) return 0;
  const auto since = static_cast<std::int64_t>(window_->next() - seq);
  return static_cast<std::uint32_t>(since * (taken - rtt_.smoothed()) / taken);
}

void Requester::apply_path_mark(TimeNs now, const wire::Sack& sack, EvIndex ev) {
  if (ev == kNoEv) return;
  if (sack.mark == wire::PathMark::kSkipOnce) {
    ++links_.counters->marked;
    links_.paths->on_marked(ev);
  } else if (sack.mark == wire::PathMark::kAlwaysSkip) {
    links_.paths->on_always_skip(ev, now);
  }
}

// The controller's base round trip is that of a full packet; a short one is faster by its
// serialisation at every hop and must not lower it.
bool Requester::add_rtt_sample(TimeNs now, TimeNs sent_at, std::uint16_t reflected, bool full_size,
                               AckSample& sample) {
  const bool as_sent = reflected == ticks_at(sent_at);
  if (!setup_.peer_tells_service_time && !as_sent) return false;  // of another transmission
  const DurationNs rtt = round_trip(now, sent_at, reflected);
  if (rtt == 0) return false;
  rtt_.add(now, sent_at, rtt);
  const bool as_measured = full_size || links_.cc == nullptr;
  sample.rtt_ns = as_measured ? rtt : std::max(rtt, links_.cc->base_rtt_ns());
  return true;
}

void Requester::settle_trigger(TimeNs now, const wire::Sack& sack, Sequence trigger,
                               AckSample& sample) {
  const PacketRecord packet = window_->record(trigger);
  Copy copy = only_copy(packet);
  const bool on_its_way = packet.state == PacketState::kInFlight ||
                          (packet.state == PacketState::kToResend && copy == Copy::kLast);
  if (on_its_way && links_.paths->profile().matches(packet.ev, sack.entropy)) {
    // The clock of the stamps turns round in 8.4 ms: what seems to be an answer to a copy sent just
    // now may be one to a copy sent a turn before.
    const bool wrapped = copy != Copy::kLast &&
                         round_trip(now, packet.sent_at, sack.timestamp_ticks) < rtt_.minimum() / 2;
    const bool full_size = packet.nominal_bytes >= full_packet_bytes_;
    const bool stamp_fits =
        !wrapped && add_rtt_sample(now, packet.sent_at, sack.timestamp_ticks, full_size, sample);
    if (stamp_fits && copy != Copy::kLast) copy = copy_by_stamp(packet);
  }
  // What answers a packet that is acknowledged may be a copy, and have stood in a queue for 4 ms.
  const bool is_news = packet.state != PacketState::kAcknowledged || MRC_BUG(kOldNewsTellTheTime);
  if (is_news && copy == Copy::kUnknown && !MRC_BUG(kOldCopiesSayNothing))
    rtt_.add_at_least(now, stamp_age(now, sack.timestamp_ticks));
  settle(now, trigger, packet, copy);
}

// One packet has arrived.
void Requester::settle(TimeNs now, Sequence seq, const PacketRecord& packet, Copy copy) {
  if (packet.state == PacketState::kAcknowledged) return;
  const std::uint32_t late = copy == Copy::kLast ? late_packets(now, seq, packet.sent_at) : 0;
  if (packet.state == PacketState::kToResend) {
    note_spurious(packet, now);
  } else {
    const bool too_early = now - packet.sent_at < rtt_.minimum() / 2;
    if (copy == Copy::kLast) {
      if (!MRC_BUG(kNoPathOrderRule)) window_->overtake_before(seq);
      losses_.note_arrival(packet.sent_at);
    }
    if (copy != Copy::kUnknown) {
      links_.paths->on_delivered(packet.ev);
      window_->note_life(packet.ev, now);
    } else if (too_early) {
      note_spurious(packet, now);
    }
    if (packet.counted && !MRC_BUG(kInFlightLeaks)) {
      links_.cc->on_left_network(packet.nominal_bytes);
    }
    settled_bytes_ += packet.nominal_bytes;
  }
  // After the blame for a loss was taken off the path: a packet that comes late was not lost, but
  // its path is a slow one.
  if (late > 0) links_.paths->on_late(packet.ev, late);
  window_->acknowledge(seq);
  losses_.note_acknowledged();
  retry_.note_progress(now);
}

void Requester::settle_up_to(TimeNs now, Sequence last) {
  for (Sequence seq = window_->oldest(); seq <= last; ++seq) {
    const PacketRecord packet = window_->record(seq);
    settle(now, seq, packet, only_copy(packet));
  }
  if (last >= window_->oldest()) window_->advance_to(last + 1);
}

void Requester::settle_bitmap(TimeNs now, const SackView& view) {
  std::uint64_t bits = view.bitmap;
  Sequence base = view.base;
  if (base < window_->oldest()) {  // an old SACK, or a base at or below the cumulative PSN
    const Sequence behind = window_->oldest() - base;
    bits = behind < 64 ? bits >> behind : 0;
    base = window_->oldest();
  }
  if (base >= window_->next()) return;
  if (window_->next() - base < 64) bits &= (std::uint64_t{1} << (window_->next() - base)) - 1;
  for (bits &= ~window_->acknowledged_bits(base); bits != 0; bits &= bits - 1) {
    const Sequence seq = base + static_cast<unsigned>(std::countr_zero(bits));
    const PacketRecord packet = window_->record(seq);
    settle(now, seq, packet, only_copy(packet));
  }
}

// The peer is there, so that it may be asked without backing off.
void Requester::note_life(TimeNs now) {
  heard_at_ = now;
  tail_probes_ = 0;
  retry_.note_heard();
}

void Requester::note_feedback(TimeNs now) {
  note_life(now);
  *links_.line_heard_at = now;
  activity_at_ = now;
  tail_probe_due_ = speculated_since_feedback_ = false;
}

Requester::Outcome Requester::on_nack(TimeNs now, const wire::Nack& nack) {
  if (!started_) return {.drop = DropReason::kQpNotReady};
  const Sequence seq = sequence_near(window_->oldest(), nack.psn);
  const bool outstanding = window_->contains(seq);
  if (nack.reason == wire::NackReason::kUnexpectedEvent) {
    // The peer has failed. A probe is refused with the cumulative PSN, at most just below the
    // window.
    const bool known = outstanding || seq + 1 == window_->oldest();
    if (!known) return {.drop = DropReason::kStaleFeedback};
    // The clock of the stamps turns round in 8.4 ms, so that after a while any stamp fits; but of
    // 2^32 entropies only those of our paths come back.
    const bool on_our_path =
        links_.paths->profile().find(nack.entropy) != kNoEv || MRC_BUG(kRefusalNeedsNoPath);
    if (!answers_us(now, seq, nack, {links_.paths->profile(), *window_, probes_}) &&
        !(on_our_path && probes_.believes_refusal(now, stamp_age(now, nack.timestamp_ticks)))) {
      tail_probe_due_ = tail_probe_due_ || awaiting_feedback();
      return {.drop = DropReason::kStaleFeedback};
    }
    return {.fatal = true,
            .status = messages_.why_lost(*window_, CompletionStatus::kRemoteOperation)};
  }
  if (!outstanding || MRC_BUG(kIgnoresNacks)) return {.drop = DropReason::kStaleFeedback};
  const PacketRecord packet = window_->record(seq);
  if (packet.state != PacketState::kInFlight) return {.drop = DropReason::kStaleFeedback};
  // A NACK about an earlier transmission says nothing about the one on its way. Where one path is
  // left both took the same; the stamp tells them apart.
  const bool of_this_copy = packet.transmissions == 1 || MRC_BUG(kNackOfAnyCopy) ||
                            round_trip(now, packet.sent_at, nack.timestamp_ticks) > 0;
  if (!of_this_copy || !links_.paths->profile().matches(packet.ev, nack.entropy)) {
    return {.drop = DropReason::kStaleFeedback};
  }
  note_feedback(now);
  const bool trimmed = nack.reason == wire::NackReason::kTrimmed;
  if (trimmed) links_.paths->on_marked(packet.ev);
  if (trimmed || nack.reason == wire::NackReason::kTrimmedLastHop) {
    window_->note_life(packet.ev, now);
    queue_resend(now, seq, ResendReason::kTrimmed);
    const bool is_nothing = MRC_BUG(kUncountedTrimsAreEmpty) && !packet.counted;
    links_.cc->on_trim(now, is_nothing ? 0 : packet.nominal_bytes, !trimmed);
  } else if (nack.reason == wire::NackReason::kNoResource && !MRC_BUG(kNotReadyIsALoss)) {
    queue_resend(now, seq, ResendReason::kNotReady);
    retry_.note_not_ready(now, std::max(rtt_.smoothed(), links_.jitter_ns),
                          setup_.rts.waits_for_resources);
  } else {
    queue_resend(now, seq, ResendReason::kNotTaken);
  }
  return {};
}

Requester::Outcome Requester::on_ack(TimeNs now, Psn psn, const wire::Ack& ack) {
  if (!started_) return {.drop = DropReason::kQpNotReady};
  if (ack.syndrome == wire::kSyndromeAck) {
    const DropReason drop = acknowledge(now, psn, ack.msn);
    return drop == DropReason::kNone ? check_refused() : Outcome{.drop = drop};
  }
  Outcome result{.fatal = true};
  const Sequence at_fault = sequence_near(window_->oldest(), psn);
  if (!status_of_nak(ack.syndrome, result.status)) return {.drop = DropReason::kBadHeaderField};
  const bool lives_on = peer_lives_on(result.status);
  const std::uint64_t number = unfinished_message_with(at_fault);
  const std::uint64_t done = messages_.done_before(number, ack.msn);
  const bool any_count = lives_on && number != MessageQueue::kNone && MRC_BUG(kNakNamesAnyCount);
  if (done == MessageQueue::kNone && !any_count) return {.drop = DropReason::kStaleFeedback};
  if (!lives_on) {
    if (MRC_BUG(kNakCompletesNothing)) return result;
    links_.counters->messages_completed += messages_.complete(done);
    return result;
  }
  // Everything goes on being sent until it is believed.
  RefusalDoubt::Refused packet{.seq = at_fault, .patience_ns = tail_probe_delay(0)};
  bool in_flight = false;
  if (window_->contains(at_fault)) {
    const PacketRecord record = window_->record(at_fault);
    in_flight = record.state == PacketState::kInFlight;
    packet.open = record.state != PacketState::kAcknowledged;
    packet.sent_at = record.sent_at;
    // Before the first answer nothing is known about how fast one can be.
    packet.fastest_ns = rtt_.has_sample() ? rtt_.minimum() / 2 : kFastestAnswerNs;
  }
  bool ask = false;
  if (messages_.doubt(*window_).weigh(now, packet, result.status, ask)) {
    note_feedback(now);
    return refuse_message(now, at_fault, result.status);
  }
  if (ask && in_flight) queue_resend(now, at_fault, ResendReason::kAccessRefused);
  if (ask && !packet.open) tail_probe_due_ = true;
  return {.drop = DropReason::kUnproven};
}

// A transport ACK says how many messages are complete and up to which PSN everything has arrived.
DropReason Requester::acknowledge(TimeNs now, Psn psn, std::uint32_t messages_done) {
  const Sequence cumulative = sequence_near(window_->oldest() - 1, psn);
  if (cumulative + window_psns_ < window_->oldest() || cumulative >= window_->next()) {
    return DropReason::kStaleFeedback;
  }
  const std::uint64_t count = messages_.acknowledged_by(messages_done, cumulative);
  if (count == MessageQueue::kNone) return DropReason::kStaleFeedback;
  const bool news = count > 0 || window_->contains(cumulative);
  if (!news) return DropReason::kStaleFeedback;
  if (count > 0) retry_.note_progress(now);
  settled_bytes_ = 0;
  settle_up_to(now, cumulative);
  links_.counters->messages_completed += messages_.complete(count);
  if (settled_bytes_ > 0) links_.cc->on_ack({.now = now, .acked_bytes = settled_bytes_});
  note_feedback(now);
  return DropReason::kNone;
}

}  // namespace mrc::core
