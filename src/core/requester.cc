#include "core/requester.h"

#include <algorithm>
#include <utility>

#include "base/planted_bug.h"

namespace mrc::core {
namespace {

constexpr DurationNs kTimeoutUnitNs = 1024;
constexpr DurationNs kMaxRetryIntervalNs = 32 * kSecondNs;
constexpr DurationNs kMaxTailProbeDelayNs = 10 * kMillisecondNs;
constexpr unsigned kMaxBackoffShift = 20;

std::uint32_t packets_for(std::uint32_t length, std::uint32_t mtu) {
  return length == 0 ? 1 : (length - 1) / mtu + 1;
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
  messages_ = FixedArray<Message>(max_sends_);
  start_probing(links, links.cc->base_rtt_ns());
  progress_at_ = activity_at_ = now;
  const wire::Packet full{.bth = {.has_timestamp = true}, .body = wire::Write{}};
  full_packet_bytes_ = wire::nominal_size(full, setup.path_mtu);
  started_ = true;
}

void Requester::stop(CompletionStatus status, Sequence culprit) {
  std::uint64_t blamed = unfinished_message_with(culprit);
  if (blamed == kNoMessage && culprit != kNobody) blamed = completed_;
  if (started_) links_.cc->on_left_network(window_->in_flight_bytes());
  for (std::uint64_t m = completed_; m < posted_; ++m) {
    message(m).status = m == blamed ? status : CompletionStatus::kFlushed;
    if (MRC_BUG(kFlushReportsSuccess)) message(m).status = CompletionStatus::kSuccess;
  }
  if (MRC_BUG(kErrorForgetsFlush)) posted_ = std::max(reported_, completed_);
  completed_ = segmented_ = posted_;
  message_open_ = started_ = probing_ = false;
  condemned_ = kNoMessage;
  hedged_since_feedback_ = tail_probe_due_ = revival_due_ = reverse_check_due_ = false;
}

void Requester::reset() {
  if (probing_) stop(CompletionStatus::kFlushed);
  *this = Requester(max_sends_);
}

Status Requester::post(TimeNs now, const SendRequest& request) {
  if (!started_) return {ErrorCode::kWrongState, "queue pair is not ready to send"};
  if (outstanding() >= messages_.size()) return {ErrorCode::kNoSpace, "send queue is full"};
  if (request.length > kMaxMessageBytes) {
    return {ErrorCode::kTooLong, "message is longer than 2 GiB"};
  }
  if (!request.into_receive && request.remote_address + request.length < request.remote_address) {
    return {ErrorCode::kInvalidArgument, "remote range wraps around the address space"};
  }
  if (request.uses_receive() && setup_.rts.max_wimm == 0) {
    return {ErrorCode::kUnsupported, "peer accepts no immediates"};
  }
  if (!work_outstanding()) {
    progress_at_ = now;
    retries_ = 0;
  }
  message(posted_) = {.request = request};
  ++posted_;
  return {};
}

// --- Sending
// ---------------------------------------------------------------------------------------

bool Requester::may_send_new() const {
  const Sequence end = window_end() + (MRC_BUG(kWindowOneTooLong) ? 1 : 0);
  if (segmented_ == posted_ || window_->next() >= end || window_->free_records() == 0) return false;
  if (condemned_ != kNoMessage) return false;
  if (message_open_ || !message(segmented_).request.uses_receive()) return true;
  const std::uint64_t in_flight = immediates_started_ - immediates_completed_;
  return in_flight < setup_.rts.max_wimm || MRC_BUG(kIgnoresImmediateLimit);
}

bool Requester::wants_to_send() const {
  if (!started_) return false;
  const Sequence end = resend_end();
  return window_->first_lost(end) < end || may_send_new();
}

Sequence Requester::resend_end() const {
  const Sequence end = std::min(window_->next(), window_end());
  if (condemned_ == kNoMessage) return end;
  return std::clamp(message(condemned_).first, window_->oldest(), end);
}

// A packet may be SACKed and its operation refused later, so its message decides.
Requester::Verdict Requester::condemn(TimeNs now, Sequence refused, CompletionStatus status) {
  const std::uint64_t number = unfinished_message_with(refused);
  if (number == kNoMessage) return {.drop = DropReason::kStaleFeedback};
  const bool in_flight =
      window_->contains(refused) && window_->record(refused).state == PacketState::kInFlight;
  if (in_flight) declare_lost(now, refused, LossCause::kDenied);
  if (number < condemned_) {
    condemned_ = number;
    condemned_for_ = status;
  }
  return sentence();
}

Requester::Verdict Requester::refuse(TimeNs now, Psn psn) {
  if (!started_) return {.drop = DropReason::kQpNotReady};
  return condemn(now, sequence_near(window_->oldest(), psn), CompletionStatus::kLocalProtection);
}

Requester::Verdict Requester::sentence() const {
  if (condemned_ != completed_) return {};
  return {.fatal = true, .status = condemned_for_, .culprit = message(condemned_).first};
}

// Messages follow each other in the sequence, so halving finds the last that starts at or before.
std::uint64_t Requester::unfinished_message_with(Sequence seq) const {
  std::uint64_t from = completed_;
  std::uint64_t end = segmented_ + (message_open_ ? 1 : 0);
  if (!started_ || from == end || seq < message(from).first || seq >= window_->next()) {
    return kNoMessage;
  }
  while (end - from > 1) {
    const std::uint64_t middle = from + (end - from) / 2;
    (message(middle).first <= seq ? from : end) = middle;
  }
  return from;
}

void Requester::begin_message(Message& m) {
  m.first = window_->next();
  m.packets = packets_for(m.request.length, setup_.path_mtu);
  if (m.request.uses_receive()) {
    m.receive_msn = static_cast<std::uint16_t>(immediates_started_);
    ++immediates_started_;
  }
  message_open_ = true;
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

// AckReq (protocol.md section 4): set where the sender would otherwise wait for an answer that the
// byte counter of the responder may not produce.
bool Requester::wants_answer(Sequence seq, std::int64_t nominal_bytes) const {
  const Message& m = message(segmented_);
  const bool ends_backlog = segmented_ + 1 == posted_ && seq + 1 == m.first + m.packets;
  if (ends_backlog || seq + 1 >= window_end() || window_->free_records() == 1) return true;
  const std::int64_t in_flight = links_.cc->in_flight_bytes() + nominal_bytes;
  const std::int64_t window = links_.cc->window_bytes();
  return in_flight + nominal_bytes > window || window < setup_.sack_threshold_bytes;
}

void Requester::commit_new(TimeNs now, EvIndex ev, std::uint32_t nominal_bytes) {
  const Message& m = message(segmented_);
  window_->append(now, ev, nominal_bytes);
  if (window_->next() == m.first + m.packets) {
    ++segmented_;
    message_open_ = false;
    if (MRC_BUG(kCompletesWhenSent)) completed_ = segmented_;
  }
}

SendOutcome Requester::next_data(TimeNs now, PortMask free_ports, QpNumber remote_qp,
                                 unsigned quantum, TxPacket& out) {
  if (!started_) return SendOutcome::kIdle;
  const Sequence end = resend_end();
  const Sequence lost = window_->first_lost(end);
  const bool again = lost < end;
  if (!again) {
    if (!may_send_new()) return SendOutcome::kIdle;
    if (!message_open_) begin_message(message(segmented_));
  }
  const Sequence seq = again ? lost : window_->next();
  const std::uint64_t number = again ? unfinished_message_with(seq) : segmented_;
  MRC_ASSERT(number != kNoMessage);
  build_write(message(number), number, seq, out);
  const std::uint32_t nominal = wire::nominal_size(out.packet, out.payload_length);
  if (!links_.cc->may_send(now, nominal)) {
    paced_until_ = links_.cc->next_send() > now ? links_.cc->next_send() : kNever;
    return SendOutcome::kWindowClosed;
  }
  out.ev = links_.paths->choose(free_ports, again ? window_->record(seq).ev : kNoEv, quantum);
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
    window_->resend(seq, now, out.ev);
    ++links_.counters->retransmitted;
  } else {
    commit_new(now, out.ev, nominal);
  }
  count_data(now, out.payload_length, nominal);
  return SendOutcome::kSent;
}

void Requester::count_data(TimeNs now, std::uint32_t payload_length, std::uint32_t nominal) {
  links_.cc->on_sent(nominal);
  links_.cc->on_packet_sent(now, nominal);
  ++links_.counters->data_sent;
  links_.counters->bytes_sent += payload_length;
  activity_at_ = now;
  sent_since_expiry_ = data_sent_since_expiry_ = true;
}

// --- Timers
// ----------------------------------------------------------------------------------------

DurationNs Requester::shortest_retry() const { return kTimeoutUnitNs << setup_.rts.timeout; }

DurationNs Requester::retry_base() const {
  return std::max(
      {shortest_retry(), 2 * rtt_.smoothed() + 4 * rtt_.variation(), 4 * links_.jitter_ns});
}

// As many waits of the base length as there are linear tries, then one doubling per exponential
// try.
DurationNs Requester::retry_interval() const {
  const QpReadyToSend& rts = setup_.rts;
  if (retries_ < rts.linear_retries || MRC_BUG(kNoBackoff)) return retry_base();
  const unsigned beyond_linear = retries_ - rts.linear_retries + 1U;
  const unsigned allowed = std::min<unsigned>(rts.exponential_retries, kMaxBackoffShift);
  return std::min(retry_base() << std::min(beyond_linear, allowed), kMaxRetryIntervalNs);
}

// The variation of a few samples is a guess, and an early question costs little: two round trips
// at most, and what the ends add.
DurationNs Requester::tail_probe_delay() const {
  const DurationNs varied = std::min(4 * rtt_.variation(), rtt_.smoothed());
  const DurationNs once = rtt_.smoothed() + varied + rtt_.minimum() / 4 + links_.jitter_ns;
  return std::min(once << std::min<unsigned>(tail_probes_, kMaxBackoffShift), kMaxTailProbeDelayNs);
}

TimeNs Requester::deadline() const {
  if (!probing_) return kNever;
  TimeNs at = std::min({paced_until_, probes_expire_at_, hedge_time()});
  if (links_.probes) {
    if (awaiting_feedback() && !tail_probe_due_ && !MRC_BUG(kNoTailProbe)) {
      at = std::min(at, activity_at_ + tail_probe_delay());
    }
    if (!revival_due_) at = std::min(at, links_.paths->next_probe_time());
  }
  if (!work_outstanding() || MRC_BUG(kNoRetryTimer)) return at;
  // Mostly something else is due long before, and the interval need not be known.
  if (at <= progress_at_ + shortest_retry()) return at;
  return std::min(at, progress_at_ + retry_interval());
}

Requester::Verdict Requester::on_timer(TimeNs now) {
  if (!probing_) return {};
  expire_probes(now);
  if (paced_until_ <= now) paced_until_ = kNever;
  if (links_.paths->next_probe_time() <= now) revival_due_ = true;
  if (hedge_time() <= now) hedge_by_clock(now);
  if (awaiting_feedback() && !tail_probe_due_ && now >= activity_at_ + tail_probe_delay()) {
    tail_probe_due_ = true;
    ++tail_probes_;
  }
  const bool expired = work_outstanding() && now >= progress_at_ + retry_interval();
  if (expired && !MRC_BUG(kNoRetryTimer)) return expire_retry(now);
  return {};
}

// Only an interval in which something was sent and nothing came back counts as a try: a queue pair
// whose ports are all down waits for them. One that waits for the window, which others towards the
// same peer may hold for as long as they try themselves, asks with a probe: 40 queue pairs to a
// peer that is gone find out together and not one after the other, and while the peer answers none
// of them gives up for want of a turn.
Requester::Verdict Requester::expire_retry(TimeNs now) {
  const TimeNs sent_before = now - retry_base();
  const bool heard = heard_at_ > progress_at_;
  const bool waits = wants_to_send() && !MRC_BUG(kWaitingNeverAsks);
  const bool asked = std::exchange(sent_since_expiry_, false);
  const bool sent_data = std::exchange(data_sent_since_expiry_, false);
  progress_at_ = now;
  if (waits && !awaiting_feedback()) tail_probe_due_ = true;
  if (!asked || (waits && heard && !sent_data)) return {};
  ++links_.counters->timeouts;
  if (retries_ < 0xFF) ++retries_;
  const unsigned allowed = setup_.rts.linear_retries + setup_.rts.exponential_retries;
  if (setup_.rts.exponential_retries < kMaxExponentialRetries && retries_ > allowed) {
    return {.fatal = true, .status = CompletionStatus::kRetryExceeded};
  }
  give_up_unanswered(now, sent_before);
  return {};
}

// While the peer may be away one packet asks, on another path, and what comes back says what was
// lost.
void Requester::give_up_unanswered(TimeNs now, TimeNs sent_before) {
  const bool asks = may_be_away(retries_ * retry_base());
  const LossCause cause = asks ? LossCause::kUnanswered : LossCause::kTimeout;
  for (Sequence seq = window_->earliest_sent(); seq != SendWindow::kEnd;) {
    const Sequence following = window_->sent_after(seq);
    if (window_->record(seq).sent_at > sent_before) break;
    declare_lost(now, seq, cause);
    if (asks) break;
    seq = following;
  }
}

// --- Completions
// -----------------------------------------------------------------------------------

bool Requester::pop_completion(Completion& out) {
  while (reported_ < completed_) {
    const Message& m = message(reported_);
    ++reported_;
    if (m.status == CompletionStatus::kSuccess && !m.request.signaled) continue;
    out.kind = CompletionKind::kSend;
    out.status = m.status;
    out.id = m.request.id;
    out.length = m.request.length;
    out.immediate = 0;
    return true;
  }
  return false;
}

std::size_t Requester::memory_bytes() const {
  return messages_.memory_bytes() + (window_ ? sizeof(*window_) + window_->memory_bytes() : 0);
}

}  // namespace mrc::core
