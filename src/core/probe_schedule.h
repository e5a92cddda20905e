// When to probe which bad EV of a queue pair.
//
// An EV is due one base period after it went bad, then after 2, 4, 8... base periods up to the cap.
// All together get at most four probes per round trip, earliest due first, so hundreds of bad EVs
// share that rate and none is forgotten: with 12 us and 100 dead EVs each is probed after 300 us at
// the latest, until its own period is longer.
//
// Queue pairs to one peer share a rate as well, 16 probes per round trip, and take turns: whoever
// has sent one has its next turn behind those of all others. Otherwise 1,000 queue pairs with two
// bad EVs each would ask 200,000 times a second, which software ends do not answer in time, so that
// no path ever comes back.
//
// The round trip is that of the answers, and at least the base period. No window limits probes, so
// nothing else makes them fewer where they are what fills a queue: EVs went bad because probes were
// lost, and probes were lost because 380 EVs that went bad in turn were probed at more than the
// rate of the only link (seed 1970324847419853).
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>

#include "base/fixed_array.h"
#include "base/planted_bug.h"
#include "base/types.h"
#include "core/ev_profile.h"

namespace mrc::core {

// The turns of all queue pairs to one peer.
class ProbeTurns {
 public:
  // The next free turn, at `now` or later; the one after it is `distance` behind.
  TimeNs take(TimeNs now, DurationNs distance) {
    const TimeNs turn = std::max(now, next_);
    next_ = turn + distance;
    return turn;
  }

  // How long answers take now, on average; 0 before the first. One that takes more than eight times
  // as long as expected counts as that: the peer may have paused. Probes without an answer bring it
  // down again, by half in 44 of them, since nothing else does where all paths are dead.
  DurationNs round_trip() const { return round_trip_; }
  void on_answered(DurationNs took, DurationNs at_least) {
    round_trip_ = std::max(round_trip_, at_least);
    round_trip_ += (std::min(took, 8 * round_trip_) - round_trip_) / 4;
  }
  void on_sent() { round_trip_ -= round_trip_ / 64; }

 private:
  TimeNs next_ = std::numeric_limits<TimeNs>::min();
  DurationNs round_trip_ = 0;
};

class ProbeSchedule {
 public:
  ProbeSchedule(const EvProfile& profile, DurationNs base_ns, DurationNs cap_ns);

  // The base period, and whom to take turns with, which must outlive this.
  void pace(DurationNs base_ns, ProbeTurns& turns) {
    base_ns_ = base_ns;
    turns_ = &turns;
  }

  // One base period from now, the first of its periods; or, `again`, with the period it had reached
  // when it was removed: what answers probes and loses data would otherwise come and go for ever.
  void add(EvIndex ev, TimeNs now, bool again = false);
  void remove(EvIndex ev);
  void on_sent(EvIndex ev, TimeNs now);         // the next one follows after twice the period
  void ask_again_soon(EvIndex ev, TimeNs now);  // within one base period
  void restart(PortId port, TimeNs now);        // all of the plane are due now, as if newly added
  // How long the answer to the last probe of this EV took that comes now with this stamp; 0 when it
  // belongs to another. The stamp alone would not do, since it turns round in 8.4 ms: where answers
  // take 400 ms, since the peer has 2 % of a processor, it says 4 ms on average, and 256 queue
  // pairs ask 1,000 times a second, which is all that processor can answer.
  DurationNs took(EvIndex ev, TimeNs now, std::uint16_t stamp) const;
  void note_round_trip(DurationNs took) {  // of an answer that was waited for
    if (turns_ != nullptr) turns_->on_answered(took, base_ns_);
  }

  // Of these ports, which all have an EV on the schedule: the EV whose probe is due, kNoEv when
  // none is; and when the next one will be, kNever without any port.
  EvIndex due(TimeNs now, PortMask ports) const;
  TimeNs next_time(PortMask ports) const;

  std::size_t memory_bytes() const;  // of what it owns

 private:
  static constexpr unsigned kMaxLevel = 15;
  static constexpr std::uint16_t kIndexMask = 0xFFF;

  struct Place {
    std::uint16_t index : 12 = 0;  // in the plane's heap
    std::uint16_t level : 4 = 0;   // the period is base * 2^level
  };
  static_assert(sizeof(Place) == 2 && kMaxEvsPerQp <= 1U << 12);
  struct Plane {
    std::uint16_t begin = 0;  // of its part of heap_
    std::uint16_t size = 0;
  };

  static constexpr std::size_t index(EvIndex ev) { return static_cast<std::size_t>(ev); }
  DurationNs period(unsigned level) const;
  DurationNs round_trip() const {
    const bool known = turns_ != nullptr && !MRC_BUG(kLateAnswersSayNothing);
    return known ? std::max(base_ns_, turns_->round_trip()) : base_ns_;
  }
  EvIndex first(PortId port) const { return EvIndex{heap_[planes_[profile_->plane(port)].begin]}; }
  void move_to(EvIndex ev, TimeNs due);
  void put(const Plane& plane, unsigned at, std::uint16_t ev);
  void settle(const Plane& plane, unsigned at);

  const EvProfile* profile_;
  FixedArray<TimeNs> due_;          // by EV
  FixedArray<Place> places_;        // by EV
  FixedArray<std::uint16_t> heap_;  // EVs: for each plane a binary heap by due time
  FixedArray<Plane> planes_;
  DurationNs base_ns_;
  DurationNs cap_ns_;
  ProbeTurns* turns_ = nullptr;  // none: a queue pair of its own
  TimeNs next_allowed_ = std::numeric_limits<TimeNs>::min();
};

}  // namespace mrc::core
