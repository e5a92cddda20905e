// The receiving half of a queue pair: which packets have arrived, where their payload goes, which
// immediates are to be delivered, and what to tell the sender.
//
// Everything kept is bounded by what ready_to_receive() fixed: one bit triple per PSN of the window
// and one stash entry per immediate in flight. A packet is checked whole before it enters the
// window; one that fails changes nothing but a counter. What cannot be known then is whether an
// immediate finds a receive: that shows when the left edge reaches it, and fails the queue pair.
#pragma once

#include <array>
#include <cstdint>

#include "base/bit_window.h"
#include "base/fixed_array.h"
#include "base/ring.h"
#include "base/types.h"
#include "core/config.h"
#include "core/counters.h"
#include "core/memory_table.h"
#include "core/send_window.h"
#include "core/work.h"
#include "wire/drop_reason.h"
#include "wire/packet.h"

namespace mrc::core {

struct Arrival;
struct Placement;

// What the responder wants said. The queue pair turns it into a control packet.
enum class AnswerKind : std::uint8_t { kNothing, kSack, kNack, kNak };

struct Answer {
  AnswerKind kind = AnswerKind::kNothing;
  Psn psn{};                 // the packet the answer is about
  bool acknowledge = false;  // also (re)send the transport ACK
  wire::PathMark mark = wire::PathMark::kNone;
  wire::NackReason reason = wire::NackReason::kTrimmed;
  std::uint8_t syndrome = 0;
  bool fatal = false;         // our queue pair fails with `status`
  bool spares_sends = false;  // which is about a receive; our sends are flushed
  CompletionStatus status = CompletionStatus::kSuccess;
};

class Responder {
 public:
  Responder(std::uint32_t max_receives, bool allow_sends)
      : receives_(max_receives), allow_sends_(allow_sends) {}

  // RTR. Allocates the window and the stash. Both must stay valid until reset().
  // `strict`: see EndpointConfig.
  void start(const QpReadyToReceive& rtr, bool strict, QpCounters& counters);
  // Error: posted receives are flushed.
  void stop();
  void reset();

  Status post(const ReceiveRequest& request);
  bool pop_completion(Completion& out);
  bool has_completion() const { return flushing_ ? !receives_.empty() : delivered_ > 0; }
  std::uint32_t outstanding() const { return static_cast<std::uint32_t>(receives_.size()); }

  // A write packet for this queue pair from its peer.
  DropReason on_write(TimeNs now, const Arrival& arrival, const wire::Packet& packet,
                      const MemoryTable& memory, ProtectionDomain domain, Placement& placement,
                      Answer& answer);
  // How many of the next `most` packets of the run that `first`, taken just now, belongs to are
  // taken without a word: new, allowed, in the window, and closing no gap in it.
  unsigned continue_run(const Arrival& arrival, const wire::Packet& first, unsigned most,
                        const MemoryTable& memory, ProtectionDomain domain);
  // The id of the receive that a packet of a send would land in.
  Result<std::uint64_t> receive_of(const wire::Packet& packet) const;
  // A packet of this queue pair came in damaged; true when its path deserves ALWAYS_SKIP.
  bool on_corrupt(std::uint32_t entropy);

  // Fills in what a SACK tells about the receive side. `trigger` is the PSN being answered.
  void fill_sack(Psn trigger, wire::Sack& sack);

  bool started() const { return started_; }
  Psn cumulative() const { return psn_of(expected_ - 1); }
  Psn expected() const { return psn_of(expected_); }
  // For a SACK that answers no packet in particular: further back than any window reaches. A
  // trimmed packet travels with the control packets, so that naming it would say of a path that
  // everything sent on it before has arrived or is lost; and of a damaged one nothing is known.
  Psn no_packet() const { return psn_of(expected_ - 1 - kFarthestTrigger); }
  std::uint64_t messages_closed() const { return messages_closed_; }
  Status set_window(std::uint8_t units, const ReceiverPenalty& penalty);
  std::size_t memory_bytes() const;

 private:
  static constexpr Sequence kFarthestTrigger = 0x8000;  // the offset has 16 bits, with a sign
  static_assert(kFarthestTrigger > std::uint64_t{0xFF} * kWindowUnitPsns);

  struct StashedImmediate {
    std::uint32_t immediate = 0;
    std::uint32_t length = 0;
    bool used = false;
    bool into_receive = false;
    bool has_immediate = true;
    bool solicited = false;
  };
  struct Receive {
    ReceiveRequest request;
    StashedImmediate filled_by;
    CompletionStatus unfilled = CompletionStatus::kFlushed;  // how it ends unless it is filled
  };
  // What every answer tells the sender to keep to.
  struct Limits {
    std::uint8_t window_units = 0;
    ReceiverPenalty penalty;
  };
  struct CorruptPath {
    std::uint32_t entropy = 0;
    std::uint8_t count = 0;
  };

  DropReason check_window(TimeNs now, Psn psn, Sequence& seq, Answer& answer);
  DropReason refuse(const Arrival& arrival, Answer& answer) const;
  bool number_fits(Sequence seq, const wire::Packet& packet) const;
  DropReason check_request(Sequence seq, const Arrival& arrival, const wire::Packet& packet,
                           const MemoryTable& memory, ProtectionDomain domain, Answer& answer);
  DropReason check_keyless(Sequence seq, const wire::Packet& packet, Answer& answer) const;
  DropReason check_send(const Arrival& arrival, const wire::Write& write, Answer& answer);
  std::uint32_t position_of(const wire::Write& send) const {
    return delivered_ + immediates_ahead(send.receive_msn);
  }
  bool is_send(const wire::Write& write) const { return allow_sends_ && is_send_key(write.key); }
  Placement place(const wire::Write& write, std::uint32_t length);
  bool headers_consistent(const wire::Packet& packet, std::uint32_t payload_length) const;
  std::uint16_t immediates_ahead(std::uint16_t receive_msn) const {
    return static_cast<std::uint16_t>(receive_msn - immediates_delivered_);
  }
  StashedImmediate& stash(std::uint16_t ahead);
  void accept(Sequence seq, const wire::Packet& packet, std::uint32_t payload_length);
  bool advance(Answer& answer);
  void pass(unsigned count, Answer& answer);
  std::uint8_t deliver_immediate();
  bool sack_due(const Arrival& arrival, const wire::Bth& bth);
  void forgive_path(std::uint32_t entropy);
  Sequence bitmap_base(Sequence trigger);

  const QpReadyToReceive* setup_ = nullptr;
  QpCounters* counters_ = nullptr;
  std::uint32_t window_psns_ = 0;
  Limits limits_;
  bool started_ = false;
  bool flushing_ = false;

  Sequence expected_ = 0;  // the left edge: everything before has arrived
  Sequence highest_ = 0;   // the highest PSN received, valid when it is >= expected_
  struct Numbers {
    std::uint16_t msn = 0;  // of the packet at highest_
    bool ends = false;      // which is the last of its message
    bool checked = true;
    bool within_message = false;  // at the left edge: the packet before it did not end one
  } numbers_;
  enum Lane : unsigned { kReceivedLane, kEndsMessageLane, kHasImmediateLane, kLanes };
  BitWindow<kLanes> bits_;
  std::uint64_t messages_closed_ = 0;
  std::uint64_t received_bytes_ = 0;  // nominal sizes of new packets
  std::uint32_t out_of_order_ = 0;    // received beyond the left edge

  FixedArray<StashedImmediate> stash_;      // by RQMSN modulo its size
  std::uint64_t immediates_delivered_ = 0;  // its low 16 bits are the RQMSN expected next

  Ring<Receive> receives_;
  std::uint32_t delivered_ = 0;  // receives at the front of the ring that are filled
  bool allow_sends_ = false;

  std::uint32_t bytes_since_sack_ = 0;
  struct Sweep {
    Sequence next = 0;  // where the next sweeping bitmap starts
    bool turn = false;
  } sweep_;
  TimeNs next_window_nack_at_ = 0;

  std::array<CorruptPath, 4> corrupt_paths_;
  bool any_corrupt_ = false;
};

}  // namespace mrc::core
