// Reliability probes: small packets that fetch a SACK (docs/wire.md). They serve three ends: to
// hear about the tail of a transfer, to bring an abandoned path back, and to check the way our
// answers take when we receive without sending.
#include <algorithm>

#include "base/planted_bug.h"
#include "core/requester.h"

namespace mrc::core {
namespace {

// Probes that ask whether an abandoned path is back carry its EV in their id, so that any number of
// them can be on the way; the others carry a count and are kept in a small table.
constexpr std::uint16_t kRevivalProbe = 0x8000;
static_assert(kMaxEvsPerQp <= kRevivalProbe);

constexpr std::uint16_t revival_id(EvIndex ev) {
  return static_cast<std::uint16_t>(kRevivalProbe | static_cast<std::uint16_t>(ev));
}

void build_probe(TimeNs now, std::uint16_t id, const Requester::Ends& ends, TxPacket& out) {
  out.traffic_class = TrafficClass::kNoTrim;
  out.local_address = 0;
  out.payload_length = 0;
  out.packet.bth = {};
  out.packet.bth.opcode = wire::Opcode::kProbe;
  out.packet.bth.destination = ends.remote;
  out.packet.body = wire::Probe{.probe_id = id,
                                .source_context = static_cast<std::uint16_t>(ends.local),
                                .destination_context = static_cast<std::uint16_t>(ends.remote),
                                .timestamp = {.ticks = ticks_at(now)}};
}

}  // namespace

EvIndex Requester::choose_probe_ev(TimeNs now, PortMask free_ports, bool& checks_path) {
  checks_path = true;
  if (tail_probe_due_) {
    const Sequence oldest = window_->earliest_sent();
    // Every second probe may take any path: what was lost may be the answer, and the suspect path
    // the only one that works.
    const bool elsewhere = oldest != SendWindow::kEnd && tail_probes_ % 2 == 1;
    const EvIndex suspect = elsewhere ? window_->record(oldest).ev : kNoEv;
    const EvIndex ev = links_.paths->choose(free_ports, suspect);
    if (ev != kNoEv) {
      tail_probe_due_ = reverse_check_due_ = false;
      return ev;
    }
  }
  if (revival_due_) {
    const EvIndex ev = links_.paths->due_probe(now, free_ports);
    if (ev != kNoEv) {
      checks_path = false;
      links_.paths->on_probe_sent(ev, now);
      revival_due_ = links_.paths->next_probe_time() <= now;
      return ev;
    }
    revival_due_ = links_.paths->next_probe_time() <= now;
  }
  if (reverse_check_due_) {
    const EvIndex ev = links_.paths->choose(free_ports, kNoEv);
    if (ev != kNoEv) reverse_check_due_ = false;
    return ev;
  }
  return kNoEv;
}

SendOutcome Requester::next_probe(TimeNs now, PortMask free_ports, const Ends& ends,
                                  TxPacket& out) {
  if (!probe_wanted()) return SendOutcome::kIdle;
  bool checks_path = false;
  out.ev = choose_probe_ev(now, free_ports, checks_path);
  if (out.ev == kNoEv) return probe_wanted() ? SendOutcome::kNoPath : SendOutcome::kIdle;
  const DurationNs answer_takes = tail_probe_delay(probes_.before_answer(tail_probes_));
  build_probe(
      now,
      checks_path ? probes_.add(now, out.ev, 2 * answer_takes, kRevivalProbe) : revival_id(out.ev),
      ends, out);
  ++links_.counters->probes_sent;
  if (checks_path) {  // a question about an abandoned path says nothing about the work in hand
    activity_at_ = now;
    retry_.note_question(now);
  }
  return SendOutcome::kSent;
}

bool Requester::ask_path(TimeNs now, EvIndex ev, const Ends& ends, TxPacket& out) const {
  if (!probing_) return false;
  build_probe(now, revival_id(ev), ends, out);
  ++links_.counters->probes_sent;
  return true;
}

void Requester::expire_probes(TimeNs now) {
  const DurationNs answer_takes = tail_probe_delay(probes_.before_answer(tail_probes_));
  probes_.expire(now, [this, now, answer_takes](const ProbeTable::Probe& probe) {
    const TimeNs expires = probe.sent_at + 2 * answer_takes;
    if (expires > now) return expires;
    const bool silence = heard_at_ < probe.sent_at;
    if (silence && may_be_away(now - probe.sent_at)) return now + answer_takes;
    links_.paths->on_lost(probe.ev, now);
    return now;
  });
}

bool Requester::answers_revival(const wire::Sack& sack) {
  return sack.probe_answer && (sack.offset_or_probe_id & kRevivalProbe) != 0;
}

DropReason Requester::on_probe_answer(TimeNs now, const wire::Sack& sack, AckSample& sample) {
  if (answers_revival(sack)) return on_revival_answer(now, sack);
  const auto probe = probes_.find(sack.offset_or_probe_id);
  // A probe of an earlier connection with our numbers may wait in a queue for longer than that
  // lived. Its answer has our id and path, but not our stamp.
  const bool stamped = probe && (round_trip(now, probe->sent_at, sack.timestamp_ticks) > 0 ||
                                 MRC_BUG(kBelievesOldAnswers));
  if (!stamped || !links_.paths->profile().matches(probe->ev, sack.entropy)) {
    // Late, but the peer is there.
    if (!probe && probes_.on_unexpected(sack.offset_or_probe_id)) heard_at_ = now;
    return DropReason::kUnknownProbe;
  }
  add_rtt_sample(now, probe->sent_at, sack.timestamp_ticks, false, sample);
  tell_path(now, sack, probe->ev, {});
  if (started_) window_->overtake_until(probe->ev, probe->sent_at);
  losses_.note_arrival(probe->sent_at);
  probes_.on_answered(probe->id);
  heard_at_ = now;
  return DropReason::kNone;
}

// However late: it is the path that is being asked about, and PathSet takes one answer per probe.
DropReason Requester::on_revival_answer(TimeNs now, const wire::Sack& sack) {
  const EvIndex ev{static_cast<std::uint16_t>(sack.offset_or_probe_id & ~kRevivalProbe)};
  if (static_cast<unsigned>(ev) >= links_.paths->size() ||
      !links_.paths->profile().matches(ev, sack.entropy)) {
    return DropReason::kUnknownProbe;
  }
  tell_path(now, sack, ev, sack.timestamp_ticks);
  return DropReason::kNone;
}

void Requester::tell_path(TimeNs now, const wire::Sack& sack, EvIndex ev,
                          std::optional<std::uint16_t> stamp) {
  if (sack.mark == wire::PathMark::kAlwaysSkip) {
    links_.paths->on_always_skip(ev, now);
  } else {
    links_.paths->on_probe_answered(ev, sack.mark == wire::PathMark::kSkipOnce, now, stamp);
  }
}

// While we receive but send nothing, a probe now and then checks a path that our SACKs may take; a
// silent one is not used for them any more. With data of our own on the way its feedback does this.
bool Requester::check_reverse_path() {
  if (!probing_ || awaiting_feedback()) return false;
  reverse_check_due_ = true;
  return true;
}

}  // namespace mrc::core
