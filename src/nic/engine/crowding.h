// Whether a thread that polls shares its processor with others.
//
// A program that polls in vain keeps a processor busy. Where somebody else wants it, the kernel
// takes it away for a time slice, some milliseconds, in which packets wait; a thread that sleeps
// until a packet comes gets it at once instead, and leaves it to others meanwhile. So once a thread
// that polls without pause finds that it was away for long, and not by its own will, its polls in
// vain wait for a packet a little (engine.cc) for the next kLastsNs.
//
// Many programs on few processors may also give them to each other after each poll in vain, as
// NCCL's do. Each is then back after 100 us or so, and nobody needs another thread beside it.
//
// One for each thread. Reads no clock and asks the kernel nothing itself.
#pragma once

#include "base/types.h"

namespace mrc::nic {

class Crowding {
 public:
  static constexpr unsigned kStreak = 64;                      // polls in a row
  static constexpr DurationNs kPauseNs = 20 * kMicrosecondNs;  // no longer between them
  static constexpr DurationNs kAwayNs = 500 * kMicrosecondNs;  // a time slice of somebody else
  static constexpr DurationNs kLastsNs = 100 * kMillisecondNs;
  static constexpr unsigned kTurns = 64;                       // polls that are looked at together
  static constexpr DurationNs kTurnsNs = 40 * kMillisecondNs;  // in which they come

  // A poll was in vain. `lost_processor()` tells how often the thread lost its processor so far; it
  // is called once in a streak, at the end of one, and once in kTurns polls.
  template <typename LostProcessor>
  bool notice(TimeNs now, LostProcessor lost_processor) {
    const DurationNs pause = now - polled_at_;
    polled_at_ = now;
    if (pause >= kAwayNs && streak_ >= kStreak && lost_processor() > lost_before_) {
      crowded_until_ = now + kLastsNs;
    }
    streak_ = pause < kPauseNs ? streak_ + 1 : 0;
    if (streak_ == kStreak) lost_before_ = lost_processor();
    if (++polls_ == kTurns) count_turns(now, lost_processor());
    return now < crowded_until_;
  }
  // The thread polls often and its processor was somebody else's after every other poll at least.
  bool takes_turns() const { return takes_turns_; }

 private:
  void count_turns(TimeNs now, long lost) {
    takes_turns_ = now - turns_since_ <= kTurnsNs && lost - lost_at_turns_ >= kTurns / 2;
    turns_since_ = now;
    lost_at_turns_ = lost;
    polls_ = 0;
  }

  TimeNs polled_at_ = 0;
  TimeNs crowded_until_ = 0;
  long lost_before_ = 0;
  unsigned streak_ = 0;
  TimeNs turns_since_ = 0;
  long lost_at_turns_ = 0;
  unsigned polls_ = 0;
  bool takes_turns_ = false;
};

}  // namespace mrc::nic
