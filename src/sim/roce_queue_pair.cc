#include "sim/roce_queue_pair.h"

#include <algorithm>

#include "base/assert.h"

namespace mrc::sim {

void RoceRequester::post(const RoceSegmentation& segmentation, const Message& message) {
  const std::uint64_t packets = std::max<std::uint64_t>(
      1, (message.bytes + segmentation.path_mtu - 1) / segmentation.path_mtu);
  MRC_ASSERT(packets + (posted_ - unacked_) < 0x8000'0000);
  const std::uint32_t first = posted_;
  posted_ += static_cast<std::uint32_t>(packets);
  entries_.push_back({message.bytes, first, posted_, message.task, message.notify});
}

RoceRequester::Segment RoceRequester::next_segment(const RoceSegmentation& segmentation) {
  MRC_ASSERT(has_unsent());
  const Entry& entry = entries_[current_];
  const std::uint64_t offset = std::uint64_t{next_ - entry.first_psn} * segmentation.path_mtu;
  Segment segment;
  segment.psn = next_;
  segment.address = task_address(entry.task) + offset;
  segment.bytes = static_cast<std::uint32_t>(
      std::min<std::uint64_t>(segmentation.path_mtu, entry.bytes - offset));
  segment.first = next_ == entry.first_psn;
  segment.last = next_ + 1 == entry.end_psn;
  segment.immediate = segment.last && entry.notify;
  segment.ack_request = segment.last || (next_ + 1) % segmentation.ack_every == 0;
  segment.retransmission = distance(next_, highest_) > 0;
  ++next_;
  if (!segment.retransmission) highest_ = next_;
  if (segment.ack_request && distance(ack_requested_, next_) > 0) ack_requested_ = next_;
  if (segment.last) ++current_;
  return segment;
}

bool RoceRequester::acknowledge(std::uint32_t psn, std::vector<TaskId>& finished) {
  if (distance(unacked_, psn) <= 0 || distance(psn, highest_) < 0) return false;
  unacked_ = psn;
  while (done_ < entries_.size() && distance(entries_[done_].end_psn, psn) >= 0)
    finished.push_back(entries_[done_++].task);
  // The answer to a packet that was about to be sent again.
  if (distance(next_, psn) > 0) {
    next_ = psn;
    current_ = done_;
  }
  forget_finished();
  return true;
}

void RoceRequester::rewind() {
  next_ = unacked_;
  current_ = done_;
}

void RoceRequester::abandon(std::vector<TaskId>& unfinished) {
  for (; done_ < entries_.size(); ++done_)
    unfinished.push_back(entries_[done_].task);
  current_ = done_;
  unacked_ = next_ = highest_ = ack_requested_ = posted_;
  forget_finished();
}

void RoceRequester::forget_finished() {
  if (done_ * 2 < entries_.size()) return;
  entries_.erase(entries_.begin(), entries_.begin() + done_);
  current_ -= done_;
  done_ = 0;
}

RoceResponder::RxResult RoceResponder::on_data(const RocePacket& packet, std::uint64_t address) {
  RxResult result;
  const auto ahead = static_cast<std::int32_t>(packet.psn - expected_);
  if (ahead > 0) {
    result.nak = !gap_reported_;
    gap_reported_ = true;
    return result;
  }
  result.ack = packet.ack_request;
  if (ahead < 0) {
    result.duplicate = true;
    return result;
  }
  gap_reported_ = false;
  ++expected_;
  if (packet.first) address_ = address;
  result.accepted = true;
  result.address = address_;
  address_ += packet.payload_bytes;
  return result;
}

bool RoceResponder::on_mark(Time now, Time cnp_interval_ps) {
  if (now < next_cnp_) return false;
  next_cnp_ = now + cnp_interval_ps;
  return true;
}

}  // namespace mrc::sim
