#include "core/message_queue.h"

#include <algorithm>

#include "base/planted_bug.h"

namespace mrc::core {
namespace {

constexpr std::uint32_t kMessageCountMask = 0xFF'FFFF;

std::uint32_t packets_for(std::uint32_t length, std::uint32_t mtu) {
  return length == 0 ? 1 : (length - 1) / mtu + 1;
}

}  // namespace

bool MessageQueue::may_send(std::uint16_t most_immediates) const {
  if (all_segmented() || any_refused()) return false;
  if (open_ || !at(segmented_).request.uses_receive()) return true;
  const std::uint64_t in_flight = immediates_started_ - immediates_completed_;
  return in_flight < most_immediates || MRC_BUG(kIgnoresImmediateLimit);
}

void MessageQueue::open(Sequence first, std::uint32_t path_mtu) {
  if (open_) return;
  Message& m = slot(segmented_);
  m.first = first;
  m.packets = packets_for(m.request.length, path_mtu);
  if (m.request.uses_receive()) m.receive_msn = static_cast<std::uint16_t>(immediates_started_++);
  open_ = true;
}

void MessageQueue::note_sent(Sequence end) {
  if (end != at(segmented_).end()) return;
  ++segmented_;
  open_ = false;
  if (MRC_BUG(kCompletesWhenSent)) completed_ = segmented_;
}

// Messages follow each other in the sequence, so halving finds the last that starts at or before.
std::uint64_t MessageQueue::unfinished_with(Sequence seq, Sequence sent_end) const {
  std::uint64_t from = completed_;
  std::uint64_t end = segmented_ + (open_ ? 1 : 0);
  if (from == end || seq < at(from).first || seq >= sent_end) return kNone;
  while (end - from > 1) {
    const std::uint64_t middle = from + (end - from) / 2;
    (at(middle).first <= seq ? from : end) = middle;
  }
  return from;
}

// Both must name the same place: an ACK of an earlier connection would not.
std::uint64_t MessageQueue::acknowledged_by(std::uint32_t messages_done,
                                            Sequence cumulative) const {
  const std::uint64_t count = (messages_done - completed_) & kMessageCountMask;
  if (count > segmented_ - completed_) return kNone;
  if (count > 0 && at(completed_ + count - 1).end() - 1 > cumulative) return kNone;
  return count;
}

std::uint64_t MessageQueue::done_before(std::uint64_t number, std::uint32_t messages_done) const {
  const std::uint64_t count = (messages_done - completed_) & kMessageCountMask;
  if (number == kNone) return kNone;
  if (count <= number - completed_) return count;
  return MRC_BUG(kBelievesOldRefusals) ? 0 : kNone;
}

std::uint64_t MessageQueue::complete(std::uint64_t count) {
  count = std::min(count, refused_ - completed_);
  for (std::uint64_t m = completed_; m < completed_ + count; ++m) {
    if (at(m).request.uses_receive()) ++immediates_completed_;
  }
  completed_ += count;
  return count;
}

void MessageQueue::flush(CompletionStatus status) {
  for (std::uint64_t m = completed_; m < posted_; ++m) {
    slot(m).status = m == completed_ ? status : CompletionStatus::kFlushed;
    if (MRC_BUG(kFlushReportsSuccess)) slot(m).status = CompletionStatus::kSuccess;
  }
  if (MRC_BUG(kErrorForgetsFlush)) posted_ = std::max(reported_, completed_);
  completed_ = segmented_ = posted_;
  open_ = false;
  refused_ = kNone;
}

RefusalDoubt& MessageQueue::doubt(const SendWindow& window) {
  if (!doubt_.any()) return doubt_;
  doubt_.note_arrived(window.oldest());
  if (doubt_.any() && unfinished_with(doubt_.seq(), window.next()) == kNone) doubt_.clear();
  return doubt_;
}

void MessageQueue::refuse(std::uint64_t number, CompletionStatus status) {
  if (number >= refused_) return;
  refused_ = number;
  refused_for_ = status;
}

bool MessageQueue::pop_completion(Completion& out) {
  while (reported_ < completed_) {
    const Message& m = at(reported_);
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

}  // namespace mrc::core
