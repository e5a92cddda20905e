// Reliability probes: small packets that fetch a SACK (protocol.md 1.9). They serve three ends: to
// hear about the tail of a transfer, to bring an abandoned path back, and to check the way our
// answers take when we receive without sending.
#include <algorithm>

#include "base/planted_bug.h"
#include "core/requester.h"

namespace mrc::core {

EvIndex Requester::choose_probe_ev(TimeNs now, PortMask free_ports, bool& checks_path) {
  checks_path = true;
  if (tail_probe_due_) {
    const Sequence oldest = window_.earliest_sent();
    const EvIndex suspect = oldest == SendWindow::kEnd ? kNoEv : window_.record(oldest).ev;
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
  out.traffic_class = TrafficClass::kNoTrim;
  out.local_address = 0;
  out.payload_length = 0;
  out.packet.bth = {};
  out.packet.bth.opcode = wire::Opcode::kProbe;
  out.packet.bth.destination = ends.remote;
  out.packet.body = wire::Probe{.probe_id = next_probe_id_,
                                .source_context = static_cast<std::uint16_t>(ends.local),
                                .destination_context = static_cast<std::uint16_t>(ends.remote),
                                .timestamp = {.ticks = ticks_at(now)}};
  remember_probe(now, out.ev, checks_path);
  ++links_.counters->probes_sent;
  activity_at_ = now;
  sent_since_expiry_ = true;
  return SendOutcome::kSent;
}

// Takes a free place, or that of the oldest probe.
void Requester::remember_probe(TimeNs now, EvIndex ev, bool checks_path) {
  PendingProbe* place = &probes_[0];
  for (PendingProbe& probe : probes_) {
    if (probe.ev == kNoEv) {
      place = &probe;
      break;
    }
    if (probe.sent_at < place->sent_at) place = &probe;
  }
  *place = {.id = next_probe_id_++, .ev = ev, .sent_at = now, .checks_path = checks_path};
  probes_expire_at_ = std::min(probes_expire_at_, now + 2 * tail_probe_delay());
}

void Requester::expire_probes(TimeNs now) {
  if (now < probes_expire_at_) return;
  probes_expire_at_ = kNever;
  for (PendingProbe& probe : probes_) {
    if (probe.ev == kNoEv) continue;
    const TimeNs expires = probe.sent_at + 2 * tail_probe_delay();
    if (expires > now) {
      probes_expire_at_ = std::min(probes_expire_at_, expires);
      continue;
    }
    if (probe.checks_path) links_.paths->on_lost(probe.ev, now);
    probe.ev = kNoEv;
  }
}

DropReason Requester::on_probe_answer(TimeNs now, const wire::Sack& sack, AckSample& sample) {
  for (PendingProbe& probe : probes_) {
    if (probe.ev == kNoEv || probe.id != sack.offset_or_probe_id) continue;
    if (!links_.paths->profile().matches(probe.ev, sack.entropy)) break;
    const bool marked = sack.mark == wire::PathMark::kSkipOnce;
    add_rtt_sample(now, probe.sent_at, sack.timestamp_ticks, false, sample);
    if (sack.mark == wire::PathMark::kAlwaysSkip) {
      links_.paths->on_always_skip(probe.ev, now);
    } else {
      links_.paths->on_probe_answered(probe.ev, marked, now);
    }
    window_.overtake_until(probe.ev, probe.sent_at);
    newest_arrival_sent_at_ = std::max(newest_arrival_sent_at_, probe.sent_at);
    probe.ev = kNoEv;
    return DropReason::kNone;
  }
  return DropReason::kUnknownProbe;
}

// P1: while we receive but send nothing, a probe now and then checks a path that our SACKs may
// take; a silent one is not used for them any more. With data of our own on the way its feedback
// does this.
bool Requester::check_way_back() {
  if (!started_ || awaiting_feedback()) return false;
  reverse_check_due_ = true;
  return true;
}

}  // namespace mrc::core
