#include "core/responder.h"

#include <algorithm>
#include <bit>

#include "base/planted_bug.h"
#include "core/endpoint.h"

namespace mrc::core {
namespace {

// A sender that overruns the window hears of it, but not once per packet.
constexpr DurationNs kWindowNackPeriodNs = 2 * kMicrosecondNs;
// A small packet counts as this much towards the SACK threshold.
constexpr std::uint32_t kMinSackCredit = 1024;
constexpr std::uint8_t kCorruptBeforeSkip = 3;
constexpr std::uint32_t kMaxOutOfOrder = 0x7FFF;
constexpr unsigned kReceivedUnitShift = 8;

void fail(Answer& answer, std::uint8_t syndrome, CompletionStatus status) {
  answer.kind = AnswerKind::kNak;
  answer.syndrome = syndrome;
  answer.fatal = true;
  answer.status = status;
}

// Positions beyond the highest PSN may alias older ones in the ring; they have not arrived.
std::uint64_t bits_up_to(Sequence highest, Sequence base) {
  if (highest < base) return 0;
  const Sequence last = highest - base;
  return last >= 63 ? ~std::uint64_t{0} : (std::uint64_t{2} << last) - 1;
}

}  // namespace

void Responder::start(const QpReadyToReceive& rtr, bool strict, QpCounters& counters) {
  setup_ = &rtr;
  counters_ = &counters;
  limits_ = {.window_units = rtr.mpr_dest};
  window_psns_ = rtr.mpr_dest * kWindowUnitPsns;
  expected_ = highest_ = first_sequence(rtr.first_psn);
  --highest_;
  numbers_ = {.checked = strict};
  sweep_.next = expected_;
  bits_ = BitWindow<kLanes>(window_psns_);
  stash_ = FixedArray<StashedImmediate>(rtr.max_wimm_dest);
  started_ = true;
}

void Responder::stop() {
  started_ = false;
  flushing_ = true;
}

void Responder::reset() {
  const auto capacity = static_cast<std::uint32_t>(receives_.capacity());
  *this = Responder(capacity, allow_sends_);
}

Status Responder::post(const ReceiveRequest& request) {
  if (!receives_.push_back({.request = request})) {
    return {ErrorCode::kNoSpace, "receive queue is full"};
  }
  return {};
}

bool Responder::pop_completion(Completion& out) {
  if (!has_completion()) return false;
  const Receive& receive = receives_.front();
  const bool filled = delivered_ > 0;
  out.kind = CompletionKind::kReceive;
  out.status = filled ? CompletionStatus::kSuccess : receive.unfilled;
  out.id = receive.request.id;
  out.immediate = receive.filled_by.immediate;
  out.length = receive.filled_by.length;
  out.into_receive = receive.filled_by.into_receive;
  out.has_immediate = filled && receive.filled_by.has_immediate;
  out.solicited = filled && receive.filled_by.solicited;
  if (filled) --delivered_;
  receives_.pop_front();
  return true;
}

// --- Arrival ---

DropReason Responder::on_write(TimeNs now, const Arrival& arrival, const wire::Packet& packet,
                               const MemoryTable& memory, ProtectionDomain domain,
                               Placement& placement, Answer& answer) {
  const auto& write = *std::get_if<wire::Write>(&packet.body);
  answer.psn = packet.bth.psn;
  Sequence seq = 0;
  DropReason drop = check_window(now, packet.bth.psn, seq, answer);
  const bool trimmed = arrival.trim != TrimState::kWhole;
  if (drop == DropReason::kDuplicate && trimmed && !MRC_BUG(kTrimmedDuplicateNamed)) {
    answer.psn = no_packet();
  }
  if (drop != DropReason::kNone) return drop;
  drop = refuse(arrival, answer);
  if (drop != DropReason::kNone) return drop;
  if (numbers_.checked && !number_fits(seq, packet)) return DropReason::kWrongNumber;

  const std::uint32_t length = arrival.payload_length;
  drop = check_request(seq, arrival, packet, memory, domain, answer);
  if (drop != DropReason::kNone) return drop;
  placement = place(write, length);
  accept(seq, packet, length);
  if (arrival.congestion_experienced) answer.mark = wire::PathMark::kSkipOnce;
  if (any_corrupt_) forgive_path(arrival.entropy);
  if (!advance(answer)) {
    // The edge may have failed at a later immediate; this packet has arrived all the same.
    if (answer.psn != packet.bth.psn) return DropReason::kNone;
    placement = {};
    return DropReason::kReceiveQueueEmpty;
  }
  if (sack_due(arrival, packet.bth)) answer.kind = AnswerKind::kSack;
  return DropReason::kNone;
}

unsigned Responder::continue_run(const Arrival& arrival, const wire::Packet& first, unsigned most,
                                 const MemoryTable& memory, ProtectionDomain domain) {
  const auto& write = *std::get_if<wire::Write>(&first.body);
  const Sequence next = sequence_near(expected_, first.bth.psn) + 1;
  if (is_send(write) || next < expected_) return 0;
  const std::uint32_t length = arrival.payload_length;
  const std::uint32_t credit = std::max(length, kMinSackCredit);
  const std::uint64_t silent = (setup_->sack_threshold_bytes - bytes_since_sack_) / credit;
  const auto missing = static_cast<unsigned>(std::countr_zero(bits_.bits64(next, kReceivedLane)));
  if (missing == 0) return 0;
  const auto count = static_cast<unsigned>(std::min(
      {std::uint64_t{most}, silent, std::uint64_t{missing - 1}, expected_ + window_psns_ - next}));
  const bool allowed =
      memory.allows_write(domain, write.key, write.address + length, count * length);
  if (count == 0 || !allowed) return 0;
  if (next == expected_) {
    expected_ += count;
    numbers_.within_message = true;
  } else {
    bits_.set_run(next, count, kReceivedLane);
    out_of_order_ += count;
  }
  if (next + count - 1 > highest_) {
    highest_ = next + count - 1;
    numbers_.msn = write.msn;
    numbers_.ends = false;
  }
  received_bytes_ += std::uint64_t{count} * wire::nominal_size(first, length);
  bytes_since_sack_ += count * credit;
  counters_->data_received += count;
  counters_->bytes_received += std::uint64_t{count} * length;
  return count;
}

// The number of a message is how many end before it, and each packet ends one at most. So between
// the edge, the highest PSN that has arrived and this one there is room for so many and no more,
// whatever the order of arrival. Of the messages before, each has one immediate at most; a peer
// that has not numbered one rightly yet, and has the key, may count from elsewhere: it is told so.
bool Responder::number_fits(Sequence seq, const wire::Packet& packet) const {
  const auto& write = *std::get_if<wire::Write>(&packet.body);
  const bool ends = wire::ends_message(packet.bth.opcode);
  const auto closed = static_cast<std::uint16_t>(messages_closed_);
  const auto ahead = static_cast<std::uint16_t>(write.msn - closed);
  if (ahead > seq - expected_ && !MRC_BUG(kIgnoresMessageNumbers)) return false;
  const bool takes_receive =
      is_send(write) || (wire::has_immediate(packet.bth.opcode) && immediates_delivered_ > 0);
  if (takes_receive && immediates_ahead(write.receive_msn) > ahead &&
      !MRC_BUG(kIgnoresReceiveNumbers)) {
    return false;
  }
  if (highest_ < expected_) return true;
  const auto newest = static_cast<std::uint16_t>(numbers_.msn - closed);
  if (seq < highest_) return ahead + (ends ? 1 : 0) <= newest || MRC_BUG(kIgnoresOlderNumber);
  const int least = newest + (numbers_.ends ? 1 : 0);
  const bool fits = ahead >= least && static_cast<Sequence>(ahead - least) < seq - highest_;
  return fits || MRC_BUG(kIgnoresNewestNumber);
}

// What the packet asks for: consistent with itself, allowed, and within what was agreed.
DropReason Responder::check_request(Sequence seq, const Arrival& arrival,
                                    const wire::Packet& packet, const MemoryTable& memory,
                                    ProtectionDomain domain, Answer& answer) {
  const auto& write = *std::get_if<wire::Write>(&packet.body);
  const std::uint32_t length = arrival.payload_length;
  if (!headers_consistent(packet, length)) {
    answer.kind = AnswerKind::kNak;
    answer.syndrome = wire::kSyndromeNakInvalidRequest;
    return DropReason::kWrongMessage;
  }
  if (is_send(write)) {
    const DropReason drop = check_send(arrival, write, answer);
    if (drop != DropReason::kNone) return drop;
  } else if (arrival.refusal != CallerRefusal::kNoMemory && length == 0 &&
             !memory.allows_write(domain, write.key, write.address, length)) {
    const DropReason drop = check_keyless(seq, packet, answer);
    if (drop != DropReason::kNone) return drop;
  } else if (arrival.refusal == CallerRefusal::kNoMemory ||
             !memory.allows_write(domain, write.key, write.address, length)) {
    answer.kind = AnswerKind::kNak;
    answer.syndrome = wire::kSyndromeNakRemoteAccess;
    return DropReason::kAccessDenied;
  }
  if (!wire::has_immediate(packet.bth.opcode)) return DropReason::kNone;
  const std::uint16_t ahead = immediates_ahead(write.receive_msn);
  if (ahead >= stash_.size()) {
    fail(answer, wire::kSyndromeNakImmediateLimit, CompletionStatus::kImmediateLimit);
    return DropReason::kImmediateLimit;
  }
  if (stash(ahead).used) {
    answer.kind = AnswerKind::kNak;
    answer.syndrome = wire::kSyndromeNakInvalidRequest;
    return DropReason::kWrongMessage;
  }
  return DropReason::kNone;
}

// An empty write touches no memory, and InfiniBand asks for no key: doorbells have none. But
// whoever makes one up for a PSN ahead of the edge takes the place of the true packet, which is
// then a duplicate. So without a key it is taken at the edge only, where a message begins, and with
// the right number; before that it is to be sent again. The echo in that NACK is of the packet it
// refuses: if that was made up, it fits nothing at the sender.
DropReason Responder::check_keyless(Sequence seq, const wire::Packet& packet,
                                    Answer& answer) const {
  const auto& write = *std::get_if<wire::Write>(&packet.body);
  if (seq != expected_) {
    answer.kind = AnswerKind::kNack;
    answer.reason = wire::NackReason::kNoPacketBuffer;
    return DropReason::kNoBuffer;
  }
  if (numbers_.within_message && !MRC_BUG(kEmptyEndsMessages)) return DropReason::kWrongNumber;
  const bool expected = !wire::has_immediate(packet.bth.opcode) ||
                        immediates_ahead(write.receive_msn) == 0 || MRC_BUG(kEmptyImmediateKills);
  return expected ? DropReason::kNone : DropReason::kWrongNumber;
}

// The receive a send lands in follows from its number, so its packets may come in any order. A
// receive not posted yet is worth waiting for; one that is too small is not. One whose memory is
// gone is our own program's fault, and its queue pair fails.
DropReason Responder::check_send(const Arrival& arrival, const wire::Write& write, Answer& answer) {
  const std::uint32_t length = arrival.payload_length;
  const std::uint32_t position = position_of(write);
  if (position >= receives_.size()) {
    answer.kind = AnswerKind::kNack;
    answer.reason = wire::NackReason::kNoResource;
    return DropReason::kNoBuffer;
  }
  const bool in_message =
      write.address <= write.message_length && length <= write.message_length - write.address;
  if (!in_message || write.message_length > receives_.at(position).request.capacity) {
    answer.kind = AnswerKind::kNak;
    answer.syndrome = wire::kSyndromeNakInvalidRequest;
    return DropReason::kWrongMessage;
  }
  if (arrival.refusal != CallerRefusal::kNoMemory) return DropReason::kNone;
  fail(answer, wire::kSyndromeNakRemoteOperation, CompletionStatus::kLocalProtection);
  answer.spares_sends = true;
  receives_.at(position).unfilled = CompletionStatus::kLocalProtection;
  return DropReason::kAccessDenied;
}

Result<std::uint64_t> Responder::receive_of(const wire::Packet& packet) const {
  const auto* write = std::get_if<wire::Write>(&packet.body);
  if (write == nullptr || !is_send(*write) || position_of(*write) >= receives_.size()) {
    return Status(ErrorCode::kNotFound, "no receive for this packet");
  }
  return receives_.at(position_of(*write)).request.id;
}

Placement Responder::place(const wire::Write& write, std::uint32_t length) {
  if (!is_send(write)) return {.address = write.address, .length = length};
  return {.address = write.address,
          .length = length,
          .into_receive = true,
          .receive_id = receives_.at(position_of(write)).request.id};
}

// New in [cack+1, cack+MPR]; before that a duplicate; beyond it a NACK; far away nothing.
DropReason Responder::check_window(TimeNs now, Psn psn, Sequence& seq, Answer& answer) {
  seq = sequence_near(expected_, psn);
  const bool before = seq < expected_;
  // A sender that goes back to its oldest packet is a window behind at most.
  if (before && expected_ - seq > std::uint64_t{2} * window_psns_ &&
      !MRC_BUG(kAnswersAncientPackets)) {
    return DropReason::kFarOutOfWindow;
  }
  if (before || (seq - expected_ < window_psns_ && bits_.test(seq, kReceivedLane))) {
    if (MRC_BUG(kPlacesDuplicates) && !before) return DropReason::kNone;
    ++counters_->duplicates;
    answer.kind = AnswerKind::kSack;
    answer.acknowledge = messages_closed_ > 0 && !MRC_BUG(kDuplicateNotReacknowledged);
    return DropReason::kDuplicate;
  }
  const std::uint64_t ahead = seq - expected_;
  if (ahead < window_psns_ || MRC_BUG(kAcceptsBeyondWindow)) return DropReason::kNone;
  if (ahead >= std::uint64_t{2} * window_psns_) return DropReason::kFarOutOfWindow;
  if (now >= next_window_nack_at_) {
    next_window_nack_at_ = now + kWindowNackPeriodNs;
    answer.kind = AnswerKind::kNack;
    answer.reason = wire::NackReason::kPsnOutOfWindow;
  }
  return DropReason::kOutOfWindow;
}

DropReason Responder::refuse(const Arrival& arrival, Answer& answer) const {
  if (arrival.trim != TrimState::kWhole && !MRC_BUG(kTrimmedCountsAsReceived)) {
    if (setup_->trim_nack) {
      answer.kind = AnswerKind::kNack;
      answer.reason = arrival.trim == TrimState::kTrimmed ? wire::NackReason::kTrimmed
                                                          : wire::NackReason::kTrimmedLastHop;
    }
    return DropReason::kTrimmed;
  }
  const bool takes_it =
      arrival.refusal == CallerRefusal::kNone || arrival.refusal == CallerRefusal::kNoMemory;
  if (takes_it) return DropReason::kNone;  // whose memory it is, is checked later
  answer.kind = AnswerKind::kNack;
  answer.reason = arrival.refusal == CallerRefusal::kNoPacketBuffer
                      ? wire::NackReason::kNoPacketBuffer
                      : wire::NackReason::kNoResource;
  return DropReason::kNoBuffer;
}

// Each packet but the last of a message is full, and a message is never longer than its packets
// say.
bool Responder::headers_consistent(const wire::Packet& packet, std::uint32_t payload_length) const {
  const std::uint32_t whole = std::get_if<wire::Write>(&packet.body)->message_length;
  const std::uint32_t mtu = setup_->path_mtu;
  const wire::Opcode opcode = packet.bth.opcode;
  if (whole > kMaxMessageBytes || payload_length > mtu) return false;
  if (!wire::ends_message(opcode)) return payload_length == mtu && whole > mtu;
  if (wire::starts_message(opcode)) return payload_length == whole;
  return payload_length > 0 && whole > mtu && (whole - payload_length) % mtu == 0;
}

Responder::StashedImmediate& Responder::stash(std::uint16_t ahead) {
  MRC_ASSERT(ahead < stash_.size());
  return stash_[(immediates_delivered_ + ahead) % stash_.size()];
}

void Responder::accept(Sequence seq, const wire::Packet& packet, std::uint32_t payload_length) {
  const auto& write = *std::get_if<wire::Write>(&packet.body);
  bits_.set(seq, kReceivedLane);
  if (wire::ends_message(packet.bth.opcode)) bits_.set(seq, kEndsMessageLane);
  if (wire::has_immediate(packet.bth.opcode)) {
    bits_.set(seq, kHasImmediateLane);
    stash(immediates_ahead(write.receive_msn)) = {
        .immediate = write.immediate,
        .length = write.message_length,
        .used = true,
        .into_receive = is_send(write),
        .has_immediate = !is_send(write) || write.key == kSendImmediateKey,
        .solicited = packet.bth.solicited};
  }
  if (seq > highest_) {
    highest_ = seq;
    numbers_.msn = write.msn;
    numbers_.ends = wire::ends_message(packet.bth.opcode);
  }
  ++out_of_order_;
  received_bytes_ += wire::nominal_size(packet, payload_length);
  bytes_since_sack_ += std::max(payload_length, kMinSackCredit);
  ++counters_->data_received;
  counters_->bytes_received += payload_length;
}

// Moves the left edge over everything that has arrived, a run of up to 64 PSNs at a time. False
// when an immediate found no receive.
bool Responder::advance(Answer& answer) {
  for (;;) {
    auto run = static_cast<unsigned>(std::countr_one(bits_.bits64(expected_, kReceivedLane)));
    if (run == 0) return true;
    const std::uint64_t in_run = run == 64 ? ~std::uint64_t{0} : (std::uint64_t{1} << run) - 1;
    const std::uint64_t immediates = bits_.bits64(expected_, kHasImmediateLane) & in_run;
    if (immediates != 0) run = static_cast<unsigned>(std::countr_zero(immediates)) + 1;
    pass(immediates != 0 ? run - 1 : run, answer);
    if (immediates == 0) continue;
    const std::uint8_t refusal = deliver_immediate();
    if (refusal != 0) {
      answer.psn = psn_of(expected_);
      fail(answer, refusal, CompletionStatus::kReceiveMissing);
      return false;
    }
    pass(1, answer);
  }
}

// Moves the left edge over `count` (at most 64) packets.
void Responder::pass(unsigned count, Answer& answer) {
  if (count == 0) return;
  const std::uint64_t run = count == 64 ? ~std::uint64_t{0} : (std::uint64_t{1} << count) - 1;
  const std::uint64_t ends = bits_.bits64(expected_, kEndsMessageLane) & run;
  const auto ended = static_cast<unsigned>(std::popcount(ends));
  messages_closed_ += ended;
  numbers_.within_message = (ends >> (count - 1)) == 0;
  if (ended > 0) answer.acknowledge = true;
  bits_.clear_run(expected_, count);
  out_of_order_ -= count;
  expected_ += count;
}

// The syndrome to refuse it with, 0 when it was delivered.
std::uint8_t Responder::deliver_immediate() {
  StashedImmediate& early = stash(0);
  // A peer that numbers its immediates wrongly leaves none where this one should be.
  if (!early.used) return wire::kSyndromeNakInvalidRequest;
  if (delivered_ == receives_.size()) return wire::kSyndromeNakReceiveQueueEmpty;
  Receive& receive = receives_.at(delivered_);
  receive.filled_by = early;
  early.used = MRC_BUG(kStashNotReleased);
  ++delivered_;
  ++immediates_delivered_;
  ++counters_->immediates;
  return 0;
}

// --- SACK ---

bool Responder::sack_due(const Arrival& arrival, const wire::Bth& bth) {
  const bool due = bytes_since_sack_ > setup_->sack_threshold_bytes || bth.ack_request ||
                   arrival.congestion_experienced || bth.retransmission;
  if (due) bytes_since_sack_ = 0;
  return due;
}

// The trigger is named apart, so the 64 bits are free to tell something else. Where they cannot
// cover all that is open, they alternate between the neighbourhood of the trigger and a sweep over
// the whole range, so that the sender hears of every hole within a few SACKs.
Sequence Responder::bitmap_base(Sequence trigger) {
  if (highest_ < expected_ || highest_ - expected_ < 64) return expected_;
  sweep_.turn = !sweep_.turn;
  if (!sweep_.turn && trigger > expected_ + 63) return trigger - 63;
  if (sweep_.next < expected_ || sweep_.next > highest_) sweep_.next = expected_;
  const Sequence base = sweep_.next;
  sweep_.next += 64;
  return base;
}

void Responder::fill_sack(Psn trigger, wire::Sack& sack) {
  const Sequence trigger_seq = sequence_near(expected_, trigger);
  const Sequence base = bitmap_base(trigger_seq);
  const auto offset = static_cast<std::int64_t>(trigger_seq - (expected_ - 1));
  sack.cumulative = cumulative();
  if (!sack.probe_answer) {
    sack.offset_or_probe_id = static_cast<std::uint16_t>(std::max<std::int64_t>(offset, INT16_MIN));
  }
  sack.bitmap_offset = static_cast<std::int16_t>(base - (expected_ - 1));
  sack.bitmap = bits_.bits64(base, kReceivedLane) & bits_up_to(highest_, base);
  if (MRC_BUG(kSackBitmapOffByOne)) ++sack.bitmap_offset;
  sack.window_units = setup_->dynamic_mpr ? limits_.window_units : 0;
  sack.window_penalty = limits_.penalty.value;
  sack.restore_window = limits_.penalty.restore;
  sack.out_of_order_count = static_cast<std::uint16_t>(std::min(out_of_order_, kMaxOutOfOrder));
  const std::uint64_t round_up = (std::uint64_t{1} << kReceivedUnitShift) - 1;
  sack.received_units =
      static_cast<std::uint32_t>((received_bytes_ + round_up) >> kReceivedUnitShift) &
      wire::kReceivedUnitsMask;
}

Status Responder::set_window(std::uint8_t units, const ReceiverPenalty& penalty) {
  if (!started_ || (!setup_->dynamic_mpr && units != setup_->mpr_dest)) {
    return {ErrorCode::kWrongState, "dynamic MPR is not in use"};
  }
  if (units == 0 || units > setup_->mpr_dest) {
    return {ErrorCode::kInvalidArgument, "MPR must be between 1 and the value agreed at RTR"};
  }
  if (penalty.value > ReceiverPenalty::kMost) {
    return {ErrorCode::kInvalidArgument, "a penalty is at most 127"};
  }
  limits_ = {units, penalty};
  return {};
}

// --- Damaged packets ---

bool Responder::on_corrupt(std::uint32_t entropy) {
  CorruptPath* place = &corrupt_paths_[0];
  for (CorruptPath& path : corrupt_paths_) {
    if (path.count > 0 && path.entropy == entropy) {
      place = &path;
      break;
    }
    if (path.count < place->count) place = &path;
  }
  if (place->entropy != entropy || place->count == 0) *place = {entropy, 0};
  any_corrupt_ = true;
  if (++place->count < kCorruptBeforeSkip) return false;
  *place = {};
  return true;
}

void Responder::forgive_path(std::uint32_t entropy) {
  any_corrupt_ = false;
  for (CorruptPath& path : corrupt_paths_) {
    if (path.entropy == entropy) path = {};
    any_corrupt_ = any_corrupt_ || path.count > 0;
  }
}

std::size_t Responder::memory_bytes() const {
  return bits_.memory_bytes() + stash_.memory_bytes() + receives_.capacity() * sizeof(Receive);
}

}  // namespace mrc::core
