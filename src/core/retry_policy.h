// The last resort of a queue pair whose work does not move: when to send again what got no answer,
// and when to give up (docs/adr/0008).
//
// Owns the retry counter and the clock of the retry timer. An interval begins with progress or with
// the expiry of the one before, and anew with the first that is sent in it. With timeout 8 (262
// us), 7 linear and 3 exponential tries it lasts 262 us seven times, then 524 us, 1.05 ms and 2.1
// ms; 5.8 ms without progress end a queue pair. Only an interval in which something was sent and
// that brought no progress counts as a try; what was under way when progress began an interval was
// sent in it, what was under way when one expired was not. So nobody is given up while all its
// ports are down. A queue pair that waits for its turn asks less and less often while the peer
// answers: with 4,096 of them and 262 us each, all asking every time would be 15
// million packets a second. In a doubled interval the work keeps its room in the congestion window
// for the time of a linear one only: queue pairs to one peer share that window, and one whose peer
// is gone and which tries for ever, 32 s apart, must not keep the others from sending.
//
// A peer that is not ready, since it has posted no receive, is asked by one packet after a round
// trip, then after 2, 4, 8... of them up to 10 ms or a linear interval, and nothing else is sent
// while it says so. A question without an answer in two round trips was lost: all goes on as usual.
// Before, a receive that came 1 s late cost 22,000 packets and a hundredth of the rate was left for
// all others to that peer. Never sends, never looks at packets.
#pragma once

#include <algorithm>
#include <cstdint>
#include <utility>

#include "base/planted_bug.h"
#include "base/types.h"
#include "core/config.h"

namespace mrc::core {

class RetryPolicy {
 public:
  // What the queue pair knows about the time an answer takes, and how it stands at an expiry.
  struct Pace {
    DurationNs round_trip_ns = 0;  // what a whole answer may take; RttEstimator::patience()
    DurationNs jitter_ns = 0;      // of the ends; see EndpointConfig
    bool in_doubt = false;         // RttEstimator::in_doubt()
  };
  struct Standing {
    TimeNs heard_at = 0;       // last feedback
    bool waits = false;        // something is ready to be sent and waits for the window
    bool under_way = false;    // some of its data is, also from before the interval, or its ACK
    bool nothing_out = false;  // nothing of its own is sent and unanswered
    bool line_moves = false;   // the peer answers those who have their turn
  };
  enum class Outcome : std::uint8_t {
    kNoTry,   // nothing was asked, or the peer is there and it is our turn that has not come
    kAgain,   // send again what got no answer; nothing was sent meanwhile, so it was no try
    kTry,     // send again what got no answer
    kGiveUp,  // all tries are used up
  };

  RetryPolicy() = default;
  explicit RetryPolicy(const QpReadyToSend& rts)
      : timeout_(rts.timeout), linear_(rts.linear_retries), exponential_(rts.exponential_retries) {}

  // What was sent before is no try of what is still to be done, unless it is under way.
  void note_progress(TimeNs now) {
    not_ready_ = questioned_ = held_ = false;
    begin_anew(now);
  }
  // The peer is there and has nothing to put it in. `round_trip`: until the first question.
  // `is_progress`: it is waited for as long as it says so. What was sent before the question, and
  // is refused with it, says nothing new.
  void note_not_ready(TimeNs now, DurationNs round_trip, bool is_progress) {
    if (is_progress) begin_anew(now);
    if (not_ready_ && !questioned_) return;
    patience_ = not_ready_ ? 2 * patience_ : round_trip;
    patience_ = std::min({patience_, kMostPatienceNs, shortest_ns()});
    answer_takes_ = 2 * round_trip;
    not_ready_ = true;
    questioned_ = false;
    hold(now + patience_);
  }
  // A question about the work in hand has left, or data. The first of an interval begins it: what
  // left 1 us before its end, since a port came up then, would otherwise have that long for its
  // answer. So does the first data when the question was answered: it was our turn that was waited
  // for. That turn has come, and with it the usual interval.
  void note_question(TimeNs now) {
    if (!asked_) begin(now);
    asked_ = true;
  }
  void note_data(TimeNs now) {
    if (not_ready_) {
      questioned_ = true;
      hold(now + answer_takes_);
    }
    if (!asked_ || (!sent_data_ && answered_)) begin(now);
    asked_ = sent_data_ = true;
    if (waits_ == 0 || MRC_BUG(kWaitOutlivesTheTurn)) return;
    waits_ = 0;
    interval_began_ = room_since_ = now;
  }
  // The peer is there: what is to be sent again need not wait for the end of the interval.
  void note_heard() {
    gave_room_ = false;
    answered_ = asked_;
  }

  std::uint8_t tries() const { return tries_; }

  // When the room in the window goes to others; nothing may be sent from then on until the interval
  // is over or the peer is heard. What leaves later than that, since a port was down or it is one
  // of many that wait for their turn, holds the room for no time: of 480 queue pairs that back off
  // each would otherwise keep one that works from sending for an interval.
  TimeNs room_ends(const Pace& pace) const {
    const bool doubled = tries_ > 0 && tries_ >= linear_ && waits_ == 0;
    if (!doubled || gave_room_ || MRC_BUG(kBackoffHoldsTheWindow)) return kNever;
    return room_since_ + base_ns(pace);
  }
  void give_room() { gave_room_ = true; }
  // When the next question may be put to a peer that is not ready.
  TimeNs hold_ends() const { return held_ ? held_until_ : kNever; }
  void end_hold() {
    held_ = false;
    if (questioned_) not_ready_ = questioned_ = false;
  }
  bool sends_nothing() const { return gave_room_ || held_; }
  bool holds() const { return held_; }

  // The length of a linear interval: as agreed, but never less than an answer takes. Where only one
  // flight was ever answered, and far later than was expected, each try in silence halves what that
  // counts for: an end that had paused for 3 ms waited 12.5 ms between two tries and asked a peer
  // that was gone for 0.4 s (seed 1688849871698879).
  DurationNs base_ns(const Pace& pace) const {
    const bool halves = pace.in_doubt && !MRC_BUG(kDoubtLastsInSilence);
    const unsigned halvings = halves ? std::min<unsigned>(tries_, kMaxBackoffShift) : 0;
    return std::max({shortest_ns(), pace.round_trip_ns >> halvings, 4 * pace.jitter_ns});
  }
  DurationNs shortest_ns() const { return kTimeoutUnitNs << timeout_; }
  TimeNs earliest_expiry() const { return interval_began_ + shortest_ns(); }
  TimeNs expiry(const Pace& pace) const { return interval_began_ + interval_ns(pace); }

  bool covers(TimeNs at) const { return at > interval_began_; }

  // The interval is over; the next begins now.
  Outcome expire(TimeNs now, const Standing& standing) {
    const bool heard = standing.heard_at > interval_began_;
    const bool asked = std::exchange(asked_, false);
    const bool carried = std::exchange(carried_, false) || MRC_BUG(kPortsDownUseTries);
    const bool is_try = asked || (carried && standing.under_way);
    const bool sent_data = std::exchange(sent_data_, false);
    answered_ = false;
    interval_began_ = room_since_ = now;
    gave_room_ = false;
    if (!asked && standing.line_moves && waits_ < kMaxWaitShift) ++waits_;
    if (!asked && !standing.under_way) return Outcome::kNoTry;
    if (standing.waits && heard && !sent_data) {
      if (standing.nothing_out) tries_ = 0;
      if (waits_ < kMaxWaitShift) ++waits_;
      return Outcome::kNoTry;
    }
    waits_ = 0;
    if (!is_try) return Outcome::kAgain;
    if (tries_ < 0xFF) ++tries_;
    const bool for_ever = exponential_ >= kMaxExponentialRetries;
    return !for_ever && tries_ > linear_ + exponential_ ? Outcome::kGiveUp : Outcome::kTry;
  }

 private:
  static constexpr DurationNs kTimeoutUnitNs = 1024;
  static constexpr DurationNs kMaxIntervalNs = 32 * kSecondNs;
  static constexpr unsigned kMaxBackoffShift = 20;
  static constexpr std::uint8_t kMaxWaitShift = 8;

  static constexpr DurationNs kMostPatienceNs = 10 * kMillisecondNs;

  void begin_anew(TimeNs now) {
    interval_began_ = room_since_ = now;
    tries_ = waits_ = 0;
    gave_room_ = false;
    carried_ = true;
    if (!MRC_BUG(kOldWorkUsesATry)) asked_ = sent_data_ = answered_ = false;
  }
  void hold(TimeNs until) {
    held_until_ = until;
    held_ = true;
  }
  void begin(TimeNs now) {
    if (!MRC_BUG(kTriesBeginUnasked)) interval_began_ = now;
  }

  // As many waits of the base length as there are linear tries, then one doubling per exponential
  // try.
  DurationNs interval_ns(const Pace& pace) const {
    if (waits_ > 0) return std::min(base_ns(pace) << waits_, kMaxIntervalNs);
    if (tries_ < linear_ || MRC_BUG(kNoBackoff)) return base_ns(pace);
    const unsigned beyond_linear = tries_ - linear_ + 1U;
    const unsigned allowed = std::min<unsigned>(exponential_, kMaxBackoffShift);
    return std::min(base_ns(pace) << std::min(beyond_linear, allowed), kMaxIntervalNs);
  }

  TimeNs interval_began_ = 0;
  TimeNs room_since_ = 0;  // the same, but for what was sent in it
  TimeNs held_until_ = 0;
  DurationNs patience_ = 0;      // with a peer that is not ready
  DurationNs answer_takes_ = 0;  // to the question whether it is
  std::uint8_t timeout_ = 0;
  std::uint8_t linear_ = 0;
  std::uint8_t exponential_ = 0;
  std::uint8_t tries_ = 0;
  // Intervals of waiting while the peer answered, each longer than the last.
  std::uint8_t waits_ = 0;
  bool asked_ = false;
  bool carried_ = false;  // what is under way from before is part of this interval
  bool sent_data_ = false;
  bool answered_ = false;  // something came back since
  bool gave_room_ = false;
  bool not_ready_ = false;   // the peer, as it says
  bool questioned_ = false;  // since
  bool held_ = false;        // so that nothing is sent for a while
};

}  // namespace mrc::core
