#include "core/requester.h"

#include <algorithm>
#include <utility>

#include "base/planted_bug.h"

namespace mrc::core {
namespace {

constexpr DurationNs kMaxTailProbeDelayNs = 10 * kMillisecondNs;
constexpr unsigned kMaxBackoffShift = 20;

// Up to an eighth of it, another part for each question and queue pair. Everything that is asked
// again and again comes to intervals of 10 ms; in step with the probe of somebody else, which has
// the port of the only plane that works at that very moment, the question would go by another plane
// each time, for ever.
DurationNs uneven(DurationNs delay, std::uint32_t question) {
  constexpr std::uint32_t kGolden = 0x9E37'79B1;  // neighbours come to lie far apart
  return (delay >> 6) * ((question * kGolden) >> 29);
}

wire::Opcode write_opcode(bool first, bool last, bool with_immediate) {
  using enum wire::Opcode;
  if (first && last) return with_immediate ? kWriteOnlyImm : kWriteOnly;
  if (last) return with_immediate ? kWriteLastImm : kWriteLast;
  return first ? kWriteFirst : kWriteMiddle;
}

std::uint64_t remote_base(const SendRequest& request) {
  return request.into_receive ? 0 : request.remote_address;
}

Rkey remote_key(const SendRequest& request) {
  if (!request.into_receive) return request.remote_key;
  return request.with_immediate ? kSendImmediateKey : kSendKey;
}

}  // namespace

void Requester::start_probing(const RequesterLinks& links, DurationNs base_rtt_ns) {
  links_ = links;
  rtt_ = RttEstimator(base_rtt_ns);
  probing_ = true;
}

void Requester::start(TimeNs now, const RequesterSetup& setup, const RequesterLinks& links) {
  setup_ = setup;
  window_psns_ = setup.rts.mpr * kWindowUnitPsns;
  window_ =
      std::make_unique<SendWindow>(window_psns_, links.paths->size(),
                                   first_sequence(setup.rts.first_psn), setup.rts.max_outstanding);
  messages_ = MessageQueue(max_sends_);
  retry_ = RetryPolicy(setup.rts);
  start_probing(links, links.cc->base_rtt_ns());
  retry_.note_progress(now);
  activity_at_ = now;
  const wire::Packet full{.bth = {.has_timestamp = true}, .body = wire::Write{}};
  full_packet_bytes_ = wire::nominal_size(full, setup.path_mtu);
  started_ = true;
}

void Requester::stop(CompletionStatus status) {
  if (started_) links_.cc->on_left_network(window_->in_flight_bytes());
  messages_.flush(status);
  started_ = probing_ = false;
  speculated_since_feedback_ = tail_probe_due_ = revival_due_ = reverse_check_due_ = false;
}

void Requester::reset() {
  if (probing_) stop(CompletionStatus::kFlushed);
  *this = Requester(max_sends_);
}

Status Requester::post(TimeNs now, const SendRequest& request) {
  if (!started_) return {ErrorCode::kWrongState, "queue pair is not ready to send"};
  if (messages_.full()) return {ErrorCode::kNoSpace, "send queue is full"};
  if (request.length > kMaxMessageBytes) {
    return {ErrorCode::kTooLong, "message is longer than 2 GiB"};
  }
  if (!request.into_receive && request.remote_address + request.length < request.remote_address) {
    return {ErrorCode::kInvalidArgument, "remote range wraps around the address space"};
  }
  if (request.uses_receive() && setup_.rts.max_wimm == 0) {
    return {ErrorCode::kUnsupported, "peer accepts no immediates"};
  }
  if (!messages_.any_unfinished()) retry_.note_progress(now);
  messages_.post(request);
  return {};
}

// --- Sending ---

bool Requester::may_send_new() const {
  const Sequence end = window_end() + (MRC_BUG(kWindowOneTooLong) ? 1 : 0);
  if (window_->next() >= end || window_->free_records() == 0) return false;
  return messages_.may_send(setup_.rts.max_wimm);
}

bool Requester::wants_to_send() const {
  if (!started_ || retry_.sends_nothing()) return false;
  const Sequence end = resend_end();
  return window_->first_to_resend(end) < end || may_send_new();
}

Sequence Requester::resend_end() const {
  const Sequence end = std::min(window_->next(), window_end());
  if (!messages_.any_refused()) return end;
  return std::clamp(messages_.refused_from(), window_->oldest(), end);
}

// A packet may be SACKed and its operation refused later, so its message decides.
Requester::Outcome Requester::refuse_message(TimeNs now, Sequence refused,
                                             CompletionStatus status) {
  const std::uint64_t number = unfinished_message_with(refused);
  if (number == MessageQueue::kNone) return {.drop = DropReason::kStaleFeedback};
  const bool in_flight =
      window_->contains(refused) && window_->record(refused).state == PacketState::kInFlight;
  if (in_flight) queue_resend(now, refused, ResendReason::kAccessRefused);
  messages_.refuse(number, status);
  return check_refused();
}

Requester::Outcome Requester::refuse(TimeNs now, Psn psn) {
  if (!started_) return {.drop = DropReason::kQpNotReady};
  return refuse_message(now, sequence_near(window_->oldest(), psn),
                        CompletionStatus::kLocalProtection);
}

Requester::Outcome Requester::check_refused() const {
  if (!messages_.refused_is_due()) return {};
  return {.fatal = true, .status = messages_.refused_for()};
}

void Requester::build_write(const Message& m, std::uint64_t number, Sequence seq,
                            TxPacket& out) const {
  const auto index = static_cast<std::uint32_t>(seq - m.first);
  const bool last = index + 1 == m.packets;
  const bool misplaced = MRC_BUG(kRetransmitsWrongBytes) && seq < window_->next() && index > 0;
  const std::uint32_t offset = (misplaced ? index - 1 : index) * setup_.path_mtu;
  out.payload_length = last ? m.request.length - index * setup_.path_mtu : setup_.path_mtu;
  out.local_address = m.request.local_address + offset;
  wire::Bth& bth = out.packet.bth;
  bth = {};
  bth.opcode = write_opcode(index == 0, last, m.request.uses_receive());
  bth.pad = static_cast<std::uint8_t>((4 - out.payload_length % 4) % 4);
  bth.solicited = last && m.request.solicited && m.request.uses_receive();
  bth.has_timestamp = true;
  bth.psn = psn_of(seq);
  out.packet.body = wire::Write{.receive_msn = m.receive_msn,
                                .msn = static_cast<std::uint16_t>(number),
                                .timestamp = {},
                                .address = remote_base(m.request) + index * setup_.path_mtu,
                                .key = remote_key(m.request),
                                .message_length = m.request.length,
                                .immediate = m.request.immediate};
}

// AckReq: set where the sender would otherwise wait for an answer that the byte counter of the
// responder may not produce.
bool Requester::wants_answer(Sequence seq, std::int64_t nominal_bytes) const {
  if (messages_.ends_backlog(seq)) return true;
  if (seq + 1 >= window_end() || window_->free_records() == 1) return true;
  const std::int64_t in_flight = links_.cc->in_flight_bytes() + nominal_bytes;
  const std::int64_t window = links_.cc->window_bytes();
  // The first packet into an idle network is the one whose round trip is that of no queue, not even
  // ours: on two ports of 50 Mb/s the fourth had waited as long as it travelled, and a program in
  // the rack of its receiver that took this for the length of its path left others a tenth.
  const bool learns = links_.jitter_ns > 0 && !rtt_.has_sample();
  if (learns && in_flight == nominal_bytes && !MRC_BUG(kFirstPacketAsksNothing)) return true;
  return in_flight + nominal_bytes > window || window < setup_.sack_threshold_bytes;
}

SendOutcome Requester::next_data(TimeNs now, PortMask free_ports, QpNumber remote_qp,
                                 unsigned quantum, TxPacket& out) {
  if (!started_ || retry_.sends_nothing()) return SendOutcome::kIdle;
  const Sequence end = resend_end();
  const Sequence lost = window_->first_to_resend(end);
  const bool again = lost < end;
  if (!again) {
    if (!may_send_new()) return SendOutcome::kIdle;
    messages_.open(window_->next(), setup_.path_mtu);
  }
  const Sequence seq = again ? lost : window_->next();
  const std::uint64_t number = again ? unfinished_message_with(seq) : messages_.next();
  MRC_ASSERT(number != MessageQueue::kNone);
  build_write(messages_.at(number), number, seq, out);
  const std::uint32_t nominal = wire::nominal_size(out.packet, out.payload_length);
  // What leaves with the packet on its path: all of a burst if it begins one.
  const bool begins_burst = !again && quantum > 1 && links_.paths->may_stay(free_ports) == 0;
  const Sequence burst =
      begins_burst ? std::min({Sequence{quantum}, window_end() - seq,
                               Sequence{window_->free_records()}, messages_.packets_left(seq)})
                   : 1;
  if (!links_.cc->may_begin(now, nominal, static_cast<std::int64_t>(burst * nominal))) {
    paced_until_ = links_.cc->next_send() > now ? links_.cc->next_send() : kNever;
    return SendOutcome::kWindowClosed;
  }
  const EvIndex last_ev = again ? window_->record(seq).ev : kNoEv;
  out.ev = links_.paths->choose(free_ports, last_ev, quantum);
  if (out.ev == kNoEv) return SendOutcome::kNoPath;

  wire::Bth& bth = out.packet.bth;
  bth.destination = remote_qp;
  bth.retransmission = again && !MRC_BUG(kRetransmissionUnflagged);
  bth.ack_request = again || wants_answer(seq, nominal);
  std::get_if<wire::Write>(&out.packet.body)->timestamp.ticks = ticks_at(now);
  out.traffic_class = !setup_.network_trims ? TrafficClass::kNoTrim
                      : again               ? TrafficClass::kTrimmableRetransmission
                                            : TrafficClass::kTrimmable;
  if (again) {
    window_->resend(seq, now, out.ev, nominal, links_.paths->profile().differ(last_ev, out.ev));
    ++links_.counters->retransmitted;
  } else {
    window_->append(now, out.ev, nominal);
    messages_.note_sent(window_->next());
  }
  count_data(now, out.payload_length, nominal);
  return SendOutcome::kSent;
}

unsigned Requester::continue_run(TimeNs now, const TxPacket& first, unsigned most) {
  const wire::Bth& bth = first.packet.bth;
  const bool plain = bth.opcode == wire::Opcode::kWriteMiddle && !bth.retransmission &&
                     !bth.ack_request && first.payload_length == setup_.path_mtu;
  if (!plain || probe_wanted() || window_->to_resend() > 0) return 0;
  CongestionController& cc = *links_.cc;
  const std::int64_t nominal = full_packet_bytes_;
  const std::int64_t room = cc.window_bytes() - cc.in_flight_bytes() - nominal;
  // The last of a message, of the window or of the records asks for an answer. A window that is
  // paced holds one packet and so no run.
  const Sequence end = std::min({messages_.at(messages_.next()).end(), window_end(),
                                 window_->next() + window_->free_records()}) -
                       1;
  if (room < nominal || window_->next() >= end) return 0;
  const std::uint64_t count = std::min(
      {std::uint64_t{most}, end - window_->next(), static_cast<std::uint64_t>(room / nominal)});
  // Not the EV that `first` names: who has given no profile is told none.
  const EvIndex ev = window_->record(window_->next() - 1).ev;
  for (std::uint64_t i = 0; i < count; ++i) {
    window_->append(now, ev, full_packet_bytes_);
    cc.on_sent(nominal);
    cc.on_packet_sent(now, nominal);
  }
  messages_.note_sent(window_->next());
  links_.counters->data_sent += count;
  links_.counters->bytes_sent += count * setup_.path_mtu;
  return static_cast<unsigned>(count);
}

void Requester::count_data(TimeNs now, std::uint32_t payload_length, std::uint32_t nominal) {
  links_.cc->on_sent(nominal);
  links_.cc->on_packet_sent(now, nominal);
  ++links_.counters->data_sent;
  links_.counters->bytes_sent += payload_length;
  activity_at_ = now;
  retry_.note_data(now);
}

// --- Timers ---

// The variation of a few samples is a guess, and an early question costs little: two round trips
// at most, and what the ends add.
DurationNs Requester::tail_probe_delay(unsigned doublings) const {
  const DurationNs varied = std::min(4 * rtt_.variation(), rtt_.smoothed());
  const DurationNs once = rtt_.smoothed() + varied + rtt_.minimum() / 4 + links_.jitter_ns;
  const DurationNs delay =
      std::min(once << std::min(doublings, kMaxBackoffShift), kMaxTailProbeDelayNs);
  if (doublings == 0 || MRC_BUG(kProbesKeepStep)) return delay;
  return delay + uneven(delay, setup_.rts.first_psn.value() + tail_probes_);
}

// Without probes the tail is asked about when the retry timer has expired, and no path is revived.
[[gnu::always_inline]] inline bool Requester::wakes(Timer timer) const {
  if (timer == Timer::kTail) return links_.probes && !MRC_BUG(kNoTailProbe);
  return timer != Timer::kRevival || links_.probes;
}

// Taken apart by the compiler where the timer is known: deadline() is asked for after every event.
[[gnu::always_inline]] inline TimeNs Requester::due(Timer timer) const {
  switch (timer) {
    case Timer::kProbeAnswer:
      return probes_.deadline();
    case Timer::kPacing:
      return paced_until_;
    case Timer::kRevival:
      return revival_due_ ? kNever : links_.paths->next_probe_time();
    case Timer::kSpeculation:
      return speculation_time();
    case Timer::kTail:
      if (!awaiting_feedback() || tail_probe_due_ || retry_.holds()) return kNever;
      return activity_at_ + tail_probe_delay(probes_.before_question(tail_probes_));
    case Timer::kHold:
      return retry_.hold_ends();
    case Timer::kRoom:
      if (!started_ || window_->in_flight_bytes() == 0) return kNever;
      return retry_.room_ends(pace());
    case Timer::kRetry:
      if (!messages_.any_unfinished() || MRC_BUG(kNoRetryTimer)) return kNever;
      return retry_.expiry(pace());
  }
  return kNever;
}

template <Requester::Timer... timers>
[[gnu::always_inline]] inline TimeNs Requester::earliest() const {
  TimeNs at = kNever;
  ((at = wakes(timers) ? std::min(at, due(timers)) : at), ...);
  return at;
}

TimeNs Requester::deadline() const {
  if (!probing_) return kNever;
  using enum Timer;
  const TimeNs at = earliest<kProbeAnswer, kPacing, kRevival, kSpeculation, kTail, kHold>();
  // Mostly something is due long before the retry timer, and its interval need not be known.
  if (at <= retry_.earliest_expiry()) return at;
  return std::min({at, due(kRoom), due(kRetry)});
}

Requester::Outcome Requester::on_timer(TimeNs now) {
  Outcome result;
  if (!probing_) return result;
  const std::int64_t in_flight = started_ ? window_->in_flight_bytes() : 0;
  const bool paced = paced_until_ <= now || retry_.hold_ends() <= now;
  for (const Timer timer : kTimers) {  // only the last may be fatal
    if (due(timer) <= now) result = fire(timer, now);
  }
  result.opened_window = paced || (started_ && window_->in_flight_bytes() < in_flight);
  return result;
}

Requester::Outcome Requester::fire(Timer timer, TimeNs now) {
  switch (timer) {
    case Timer::kProbeAnswer:
      expire_probes(now);
      return {};
    case Timer::kPacing:
      paced_until_ = kNever;
      return {};
    case Timer::kRevival:
      revival_due_ = true;
      return {};
    case Timer::kSpeculation:
      resend_speculatively(now);
      return {};
    case Timer::kTail:
      tail_probe_due_ = true;
      ++tail_probes_;
      return {};
    case Timer::kHold:
      retry_.end_hold();
      return {};
    case Timer::kRoom:
      retry_.give_room();
      links_.cc->on_left_network(window_->uncount_bytes());
      return {};
    case Timer::kRetry:
      return expire_retry(now);
  }
  return {};
}

// A queue pair whose ports are all down waits for them. One that waits for the window, which others
// towards the same peer may hold for as long as they try themselves, asks with a probe: 40 queue
// pairs to a peer that is gone find out together and not one after the other, and while the peer
// answers none of them gives up for want of a turn. While it answers others of the same line nobody
// asks: of 1,000 queue pairs each would put three questions from one turn to the next. Who is owed
// nothing but the transport ACK asks in every interval: a peer that is gone is given up in the time
// that was agreed, and not in that of tail probes, 2.1 ms and not 23.
Requester::Outcome Requester::expire_retry(TimeNs now) {
  const TimeNs sent_before = now - retry_.base_ns(pace());
  const bool under_way =
      window_->earliest_sent() != SendWindow::kEnd && !MRC_BUG(kOwnPacketIsATurn);
  const bool waits = wants_to_send() && !under_way && !MRC_BUG(kWaitingNeverAsks);
  const bool all_arrived = window_->oldest() == window_->next();
  const bool nothing_out = all_arrived && !messages_.any_unacknowledged();
  const bool line_moves =
      waits && nothing_out && retry_.covers(*links_.line_heard_at) && !MRC_BUG(kWaitersAlwaysAsk);
  const bool owed = all_arrived && !nothing_out && !wants_to_send() && !MRC_BUG(kOwedIsNoTry);
  if ((waits && !awaiting_feedback() && !line_moves) || owed) tail_probe_due_ = true;
  const RetryPolicy::Outcome outcome = retry_.expire(now, {.heard_at = heard_at_,
                                                           .waits = waits,
                                                           .under_way = under_way || owed,
                                                           .nothing_out = nothing_out,
                                                           .line_moves = line_moves});
  if (outcome == RetryPolicy::Outcome::kNoTry) return {};
  if (outcome != RetryPolicy::Outcome::kAgain) ++links_.counters->timeouts;
  if (outcome == RetryPolicy::Outcome::kGiveUp) {
    return {.fatal = true,
            .status = messages_.why_lost(*window_, CompletionStatus::kRetryExceeded)};
  }
  give_up_unanswered(now, sent_before);
  return {};
}

// While the peer may be away one packet asks, on another path, and what comes back says what was
// lost.
void Requester::give_up_unanswered(TimeNs now, TimeNs sent_before) {
  const bool asks = may_be_away(retry_.tries() * retry_.base_ns(pace()));
  const ResendReason reason = asks ? ResendReason::kUnanswered : ResendReason::kTimeout;
  for (Sequence seq = window_->earliest_sent(); seq != SendWindow::kEnd;) {
    const Sequence following = window_->sent_after(seq);
    if (window_->record(seq).sent_at > sent_before) break;
    queue_resend(now, seq, reason);
    if (asks) break;
    seq = following;
  }
}

std::size_t Requester::memory_bytes() const {
  return messages_.memory_bytes() + (window_ ? sizeof(*window_) + window_->memory_bytes() : 0);
}

}  // namespace mrc::core
