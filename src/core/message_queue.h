// What a program has posted to a queue pair and not yet been told the end of.
//
// Messages are numbered from 0 in posting order and pass four marks, each never before the next:
//
//   reported <= completed <= segmented <= posted
//
// Segmented: every packet was sent at least once. Completed: acknowledged by the transport, or
// flushed. Reported: its completion was handed out. The message at `segmented` may be open, which
// means partly sent. One message may be refused (docs/adr/0005): nothing of it or behind it is sent
// any more, and it fails when all before it is complete. Of several refused the earliest counts.
//
// Owns the requests and their marks, and the NAK in doubt. Knows PSNs only as sequence numbers, of
// a window only its ends; sends nothing and reads no clock.
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/fixed_array.h"
#include "base/types.h"
#include "core/refusal_doubt.h"
#include "core/send_window.h"
#include "core/work.h"

namespace mrc::core {

struct Message {
  SendRequest request;
  Sequence first = 0;  // valid once it was begun
  std::uint32_t packets = 0;
  std::uint16_t receive_msn = 0;
  CompletionStatus status = CompletionStatus::kSuccess;

  Sequence end() const { return first + packets; }
};

class MessageQueue {
 public:
  static constexpr std::uint64_t kNone = ~std::uint64_t{0};

  MessageQueue() = default;
  // Room for so many that are posted and not reported.
  explicit MessageQueue(std::uint32_t capacity) : messages_(capacity) {}

  bool full() const { return outstanding() >= messages_.size(); }
  std::uint32_t outstanding() const { return static_cast<std::uint32_t>(posted_ - reported_); }
  void post(const SendRequest& request) { slot(posted_++) = {.request = request}; }

  const Message& at(std::uint64_t number) const { return messages_[number % messages_.size()]; }

  // --- Sending: the message at next() is the one new packets belong to.

  std::uint64_t next() const { return segmented_; }
  // A part of a message of at most so many bytes is sent, and the rest is not.
  bool is_within(std::uint32_t bytes) const {
    return open_ && at(segmented_).request.length <= bytes;
  }
  bool all_segmented() const { return segmented_ == posted_; }
  // Whether next() may send a packet, with at most so many immediates begun and not complete.
  bool may_send(std::uint16_t most_immediates) const;
  // Opens next() unless it is open: its first packet will be `first`.
  void open(Sequence first, std::uint32_t path_mtu);
  // Everything before `end` was sent: closes next() if that was its last packet.
  void note_sent(Sequence end);
  // The packet is the last one of all that is posted.
  bool ends_backlog(Sequence seq) const {
    return segmented_ + 1 == posted_ && seq + 1 == at(segmented_).end();
  }
  // How many packets there are to send at least, the next of them `first`.
  std::uint64_t packets_left(Sequence first) const {
    return at(segmented_).end() - first + (posted_ - segmented_ - 1);
  }
  // The message that holds a packet that was sent (before `sent_end`) and is not complete; kNone
  // when there is none.
  std::uint64_t unfinished_with(Sequence seq, Sequence sent_end) const;

  // --- Ends

  bool any_unfinished() const { return completed_ < posted_; }
  // Sent as a whole and not acknowledged by the transport.
  bool any_unacknowledged() const { return completed_ < segmented_; }
  // How many messages a transport ACK that says so many are done (in 24 bits) completes when
  // everything up to `cumulative` has arrived; kNone when it cannot be meant for us.
  std::uint64_t acknowledged_by(std::uint32_t messages_done, Sequence cumulative) const;
  // How many messages a peer completes that fails at message `number`, which is not complete
  // (kNone: no such message), and says that so many are done (in 24 bits): those before it at most,
  // and none of those less that it has acknowledged. kNone when it cannot be meant for us.
  std::uint64_t done_before(std::uint64_t number, std::uint32_t messages_done) const;
  // The next `count` are complete, except that what was refused stays so. How many that are.
  std::uint64_t complete(std::uint64_t count);
  // All that are not complete are flushed, but the oldest of them gets `status`: programs look for
  // the cause in the first completion that is no success.
  void flush(CompletionStatus status);

  // --- Refusal

  // A NAK that is not believed yet; none of what has arrived in the meantime or is complete.
  RefusalDoubt& doubt(const SendWindow& window);
  // The peer is lost. If it has refused something before, that is why: cards fail after their first
  // NAK.
  CompletionStatus why_lost(const SendWindow& window, CompletionStatus otherwise) {
    return doubt(window).any() ? doubt_.status() : otherwise;
  }
  void refuse(std::uint64_t number, CompletionStatus status);
  bool any_refused() const { return refused_ != kNone; }
  // Where sending ends for good; any_refused() only.
  Sequence refused_from() const { return at(refused_).first; }
  CompletionStatus refused_for() const { return refused_for_; }
  // All before the refused message is complete: now it fails.
  bool refused_is_due() const { return refused_ == completed_; }

  // --- Reports, in posting order

  bool has_completion() const { return reported_ < completed_; }
  // False when only silent completions were left.
  bool pop_completion(Completion& out);

  std::size_t memory_bytes() const { return messages_.memory_bytes(); }

 private:
  Message& slot(std::uint64_t number) { return messages_[number % messages_.size()]; }

  FixedArray<Message> messages_;
  std::uint64_t reported_ = 0;
  std::uint64_t completed_ = 0;
  std::uint64_t segmented_ = 0;
  std::uint64_t posted_ = 0;
  std::uint64_t immediates_started_ = 0;
  std::uint64_t immediates_completed_ = 0;
  bool open_ = false;  // next() is partly sent
  CompletionStatus refused_for_ = CompletionStatus::kSuccess;
  std::uint64_t refused_ = kNone;
  RefusalDoubt doubt_;
};

}  // namespace mrc::core
