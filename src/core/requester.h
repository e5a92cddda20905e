// The sending half of a queue pair: messages into packets, packets into the network, feedback into
// completions.
//
// Data flow: post() queues a message; next_data() cuts it into packets within the PSN window (MPR)
// and the congestion window, retransmissions first and oldest first; on_sack / on_nack / on_ack
// settle packets and messages; on_timer() fires what is due of the timers below;
// pop_completion() reports in posting order.
//
// Why something is sent again: loss_detector.h (SACKs), NACKs, and the retry timer when nothing
// made progress for an interval (retry_policy.h). Then at first one packet asks, where the peer may
// be away (docs/adr/0013-jitter-of-the-ends.md).
//
// When the peer refuses a message, twice (refusal_doubt.h), and lives on (docs/adr/0005), the queue
// pair fails when all before it is complete. So what was posted before a faulty request is done,
// and the first completion with an error names the fault. When no feedback comes at all, a tail
// probe fetches a SACK so that these rules can speak.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "base/result.h"
#include "base/types.h"
#include "core/cc/congestion.h"
#include "core/config.h"
#include "core/counters.h"
#include "core/loss_detector.h"
#include "core/message_queue.h"
#include "core/path_set.h"
#include "core/probe_table.h"
#include "core/retry_policy.h"
#include "core/rtt.h"
#include "core/sack_reader.h"
#include "core/send_window.h"
#include "core/tx_packet.h"
#include "core/work.h"
#include "wire/drop_reason.h"
#include "wire/packet.h"

namespace mrc::core {

// Fixed for the life of the connection.
struct RequesterSetup {
  QpReadyToSend rts;
  std::uint32_t path_mtu = 4096;
  bool dynamic_mpr = false;
  bool network_trims = true;
  bool peer_tells_service_time = true;
  std::uint32_t sack_threshold_bytes = 0;
};

// Where the requester's decisions take effect; owned by the queue pair, or by the peer for `cc` and
// those who wait for its window.
struct RequesterLinks {
  PathSet* paths = nullptr;
  CongestionController* cc = nullptr;  // none before RTS, unless others send to that peer
  TimeNs* line_heard_at = nullptr;     // when the peer last answered data of anybody in that line
  QpCounters* counters = nullptr;
  bool probes = true;        // false: none but those of the retry timer
  DurationNs jitter_ns = 0;  // see EndpointConfig
};

enum class SendOutcome : std::uint8_t {
  kSent,
  kIdle,          // nothing to send, or the PSN window is closed
  kWindowClosed,  // the congestion window (or its pacing) does not admit the next packet
  kNoPath,        // none of the free ports has a usable path
};

class Requester {
 public:
  explicit Requester(std::uint32_t max_sends) : max_sends_(max_sends) {}

  // RTR. Nothing is sent yet but probes of the way our answers take. The links must stay valid
  // until stop().
  void start_probing(const RequesterLinks& links, DurationNs base_rtt_ns);
  // RTS. Allocates the window and the messages. The same holds for the links.
  void start(TimeNs now, const RequesterSetup& setup, const RequesterLinks& links);
  // In use: the controller is another one, or trims are (not) to be counted on, or paths are others
  // than before. What is under way on `replaced` ones, by EvIndex, is sent again elsewhere.
  void follow(TimeNs now, const RequesterLinks& links, bool network_trims,
              const std::vector<bool>& replaced);
  // Error: everything in flight leaves the controller's books; the oldest unfinished message gets
  // `status`, the others are flushed.
  void stop(CompletionStatus status);
  // RESET: forgets everything, posted work included.
  void reset();

  Status post(TimeNs now, const SendRequest& request);

  // The next data packet. Fills in everything but addresses; `remote_qp` goes into the BTH. See
  // PathSet::choose for `quantum`.
  SendOutcome next_data(TimeNs now, PortMask free_ports, QpNumber remote_qp, unsigned quantum,
                        TxPacket& out);
  // How many of the next `most` packets continue `first`, the last one that was sent, as a run: new
  // ones that nothing goes before and no answer is asked for. They count as sent on its path.
  unsigned continue_run(TimeNs now, const TxPacket& first, unsigned most);
  // True when there is something that only needs a window and a path.
  bool wants_to_send() const;
  // A due probe: tail probe, path revival, or reverse path check. `endpoints` names both ends.
  struct Ends {
    QpNumber local{};
    QpNumber remote{};
  };
  SendOutcome next_probe(TimeNs now, PortMask free_ports, const Ends& ends, TxPacket& out);
  // A probe along this path, whatever is known of it and beside those that are due. False when none
  // is sent in this state.
  bool ask_path(TimeNs now, EvIndex ev, const Ends& ends, TxPacket& out) const;
  // Without probes only the retry timer asks, since nothing else would fetch a lost transport ACK.
  bool probe_wanted() const {
    const bool may_probe = links_.probes || retry_.tries() > 0;
    return may_probe && (tail_probe_due_ || revival_due_ || reverse_check_due_);
  }

  // Feedback. `drop` is kNone when the packet was of use.
  DropReason on_sack(TimeNs now, const wire::Sack& sack);
  // Which transmission of a packet has arrived.
  enum class Copy : std::uint8_t { kUnknown, kOfItsPath, kLast };
  struct Outcome {
    DropReason drop = DropReason::kNone;
    bool fatal = false;          // the queue pair must fail with `status`
    bool opened_window = false;  // on_timer(): the next of those that wait for it may try
    CompletionStatus status = CompletionStatus::kSuccess;
  };
  Outcome on_nack(TimeNs now, const wire::Nack& nack);
  Outcome on_ack(TimeNs now, Psn psn, const wire::Ack& ack);
  Outcome on_timer(TimeNs now);
  // The payload of a packet in flight could not be read, so that it has not left.
  Outcome refuse(TimeNs now, Psn psn);
  TimeNs deadline() const;

  // Those on their way, other than of abandoned paths.
  const ProbeTable& probes() const { return probes_; }
  // Data came in on this queue pair: asks for a probe of the reverse path, unless data of our own
  // does that anyway (false).
  bool check_reverse_path();

  bool has_completion() const { return messages_.has_completion(); }
  bool pop_completion(Completion& out) { return messages_.pop_completion(out); }

  bool started() const { return started_; }
  const MessageQueue& messages() const { return messages_; }
  std::uint32_t window_psns() const { return window_psns_; }
  const SendWindow& window() const { return *window_; }
  const RttEstimator& rtt() const { return rtt_; }
  std::size_t memory_bytes() const;

 private:
  static constexpr std::int64_t kPatienceInJitters = 32;

  // What may be due, in the order in which it is looked after.
  enum class Timer : std::uint8_t {
    kProbeAnswer,  // a probe of a path in use has waited long enough
    kPacing,       // the controller admits the next packet
    kRevival,      // a bad path is to be asked
    kSpeculation,  // a packet is unanswered for longer than others: sent again on another path
    kTail,         // all has been quiet for a few round trips: a probe asks
    kHold,         // a peer that is not ready may be asked
    kRoom,         // backing off: others may use the window
    kRetry,        // the last resort: the retry interval is over
  };
  static constexpr std::array kTimers = {Timer::kProbeAnswer, Timer::kPacing, Timer::kRevival,
                                         Timer::kSpeculation, Timer::kTail,   Timer::kHold,
                                         Timer::kRoom,        Timer::kRetry};
  TimeNs due(Timer timer) const;  // kNever: not set
  bool wakes(Timer timer) const;  // false: looked after when something else is due
  template <Timer... timers>
  TimeNs earliest() const;
  Outcome fire(Timer timer, TimeNs now);

  // requester.cc
  bool may_send_new() const;
  Sequence window_end() const { return window_->oldest() + window_psns_; }
  void build_write(const Message& m, std::uint64_t number, Sequence seq, TxPacket& out) const;
  bool wants_answer(Sequence seq, std::int64_t nominal_bytes) const;
  void count_data(TimeNs now, std::uint32_t payload_length, std::uint32_t nominal);
  EvIndex choose_probe_ev(TimeNs now, PortMask free_ports, bool& checks_path);
  std::uint64_t unfinished_message_with(Sequence seq) const {
    return started_ ? messages_.unfinished_with(seq, window_->next()) : MessageQueue::kNone;
  }
  // What may be sent again ends here.
  Sequence resend_end() const;
  // The message of a packet that was refused ends the queue pair when its turn comes.
  Outcome refuse_message(TimeNs now, Sequence refused, CompletionStatus status);
  // Fatal once all before the refused message is complete.
  Outcome check_refused() const;
  bool awaiting_feedback() const {
    return started_ && (window_->in_flight() > 0 || messages_.any_unacknowledged());
  }
  RetryPolicy::Pace pace() const { return {rtt_.patience(), links_.jitter_ns, rtt_.in_doubt()}; }
  DurationNs tail_probe_delay(unsigned doublings) const;
  // An end that lost its processor is silent on all paths, and answers for all of them when it is
  // back. So for a while silence everywhere is held against no path.
  bool may_be_away(DurationNs silence) const {
    return silence < kPatienceInJitters * links_.jitter_ns;
  }
  Outcome expire_retry(TimeNs now);
  void give_up_unanswered(TimeNs now, TimeNs sent_before);

  // feedback.cc
  void settle(TimeNs now, Sequence seq, const PacketRecord& packet, Copy copy);
  void settle_bitmap(TimeNs now, const SackView& view);
  void settle_trigger(TimeNs now, const wire::Sack& sack, Sequence trigger, AckSample& sample);
  void settle_up_to(TimeNs now, Sequence last);
  void note_life(TimeNs now);
  void note_feedback(TimeNs now);
  DropReason acknowledge(TimeNs now, Psn psn, std::uint32_t messages_done);
  bool add_rtt_sample(TimeNs now, TimeNs sent_at, std::uint16_t reflected, bool full_size,
                      AckSample& sample);
  EvIndex answered_ev(const wire::Sack& sack, Sequence trigger) const;
  std::uint32_t late_packets(TimeNs now, Sequence seq, TimeNs sent_at) const;
  void apply_path_mark(TimeNs now, const wire::Sack& sack, EvIndex ev);
  DropReason on_probe_answer(TimeNs now, const wire::Sack& sack, AckSample& sample);

  // resend.cc
  void detect_losses(TimeNs now, const SackView& view);
  TimeNs speculation_time() const;
  void resend_speculatively(TimeNs now);
  void queue_resend(TimeNs now, Sequence seq, ResendReason reason);
  void note_spurious(const PacketRecord& packet, TimeNs now);

  // probes.cc
  static bool answers_revival(const wire::Sack& sack);
  void expire_probes(TimeNs now);
  DropReason on_revival_answer(TimeNs now, const wire::Sack& sack);
  void tell_path(TimeNs now, const wire::Sack& sack, EvIndex ev,
                 std::optional<std::uint16_t> stamp);

  RequesterSetup setup_;
  RequesterLinks links_;
  std::uint32_t max_sends_;
  std::uint32_t full_packet_bytes_ = 0;  // nominal
  std::unique_ptr<SendWindow> window_;   // from RTS on
  RttEstimator rtt_;

  MessageQueue messages_;  // from RTS on
  RetryPolicy retry_;
  LossDetector losses_;
  SackReader sack_reader_;
  ProbeTable probes_;

  // Timers.
  TimeNs activity_at_ = 0;          // last transmission or feedback
  TimeNs heard_at_ = 0;             // last feedback
  TimeNs paced_until_ = kNever;     // when the controller's pacing admits the next packet
  std::int64_t settled_bytes_ = 0;  // by the feedback being handled

  std::uint32_t window_psns_ = 0;
  std::uint32_t tail_probes_ = 0;
  bool probing_ = false;                    // RTR or RTS
  bool started_ = false;                    // RTS
  bool speculated_since_feedback_ = false;  // by the clock
  bool tail_probe_due_ = false;
  bool revival_due_ = false;
  bool reverse_check_due_ = false;
};

}  // namespace mrc::core
