// Whose turn it is to send: the round of queue pairs that want to, and the lines of those that wait
// for a congestion window.
//
// Owns, for each slot of the queue pair table, whether it is in the round or in a line, since when
// it waits, and how much of its turn it has used. The round keeps the order in which its members
// came, a line the order in which they began to wait. Who is woken and cannot send goes back to its
// place, and nobody who began to wait later sends before it: a packet of 4 kB needs more room than
// one of 8 bytes, of which there is always another. Who stands in a line may be in the round as
// well, to ask a question; that costs no place. Every step takes constant time, except remove(),
// which is for queue pairs that end, and park() of one that was woken, which passes those woken
// before it. Knows slots only: never asks a queue pair anything.
#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>

#include "base/assert.h"
#include "base/fixed_array.h"
#include "base/planted_bug.h"
#include "base/ring.h"
#include "core/slot.h"

namespace mrc::core {

class Scheduler {
 public:
  // Those that wait for one window, in the order they came.
  struct Line {
    std::uint32_t head = kNoSlot;
    std::uint32_t tail = kNoSlot;
  };

  explicit Scheduler(unsigned slots) : round_(slots), turns_(slots) {}

  // --- The round

  bool empty() const { return round_.empty(); }
  std::size_t size() const { return round_.size(); }
  std::uint32_t front() const { return round_.front(); }
  std::uint32_t at(std::size_t i) const { return round_.at(i); }
  bool is_active(std::uint32_t slot) const { return turns_[slot].active; }
  bool is_parked(std::uint32_t slot) const { return turns_[slot].parked; }
  // Whether a turn of it would begin before those who wait in this line.
  bool jumps(std::uint32_t slot, const Line& line) const {
    const Turn& turn = turns_[slot];
    if (line.head == kNoSlot || turn.used_bytes > 0) return false;
    return turn.waits_since == 0 || turns_[line.head].waits_since < turn.waits_since;
  }

  void activate(std::uint32_t slot) {
    Turn& turn = turns_[slot];
    if (!turn.active) turn.active = round_.push_back(slot);
  }
  // Moves the i-th to the front; those it passes keep their order.
  void prefer(std::size_t i) {
    for (; i > 0; --i)
      std::swap(round_.at(i), round_.at(i - 1));
  }
  // The first has sent so much; what it has used of its turn.
  std::uint32_t charge(std::uint32_t bytes) { return turns_[front()].used_bytes += bytes; }
  std::uint32_t used_bytes(std::uint32_t slot) const { return turns_[slot].used_bytes; }
  // The first leaves the round. Whether it still waits for a chance to send: with data sent, or
  // with none left to send, it has had its turn.
  void end_turn(bool waits_on) {
    Turn& turn = turns_[front()];
    turn.active = false;
    if (!turn.parked && (turn.used_bytes > 0 || !waits_on)) turn.waits_since = 0;
    turn.used_bytes = 0;
    round_.pop_front();
  }

  // --- Lines

  // To the end of the line, or back to its place after a turn that came to nothing; not while in
  // the round.
  void park(std::uint32_t slot, Line& line) {
    Turn& turn = turns_[slot];
    MRC_ASSERT(!turn.active && !turn.parked);
    if (turn.waits_since == 0 || MRC_BUG(kWokenGoesLast)) turn.waits_since = ++last_wait_;
    turn.parked = true;
    turn.previous = line.tail;
    turn.next = kNoSlot;
    if (line.tail != kNoSlot && turns_[line.tail].waits_since > turn.waits_since) {
      turn.next = line.head;
      while (turns_[turn.next].waits_since < turn.waits_since)
        turn.next = turns_[turn.next].next;
      turn.previous = turns_[turn.next].previous;
    }
    (turn.previous == kNoSlot ? line.head : turns_[turn.previous].next) = slot;
    (turn.next == kNoSlot ? line.tail : turns_[turn.next].previous) = slot;
  }
  // Out of the line, wherever it stands, and into the round. Nothing when it is in no line.
  void unpark(std::uint32_t slot, Line& line) {
    Turn& turn = turns_[slot];
    if (!turn.parked) return;
    if (MRC_BUG(kQuestionsCostAPlace) && turn.previous != kNoSlot) turn.waits_since = 0;
    (turn.previous == kNoSlot ? line.head : turns_[turn.previous].next) = turn.next;
    (turn.next == kNoSlot ? line.tail : turns_[turn.next].previous) = turn.previous;
    turn.parked = false;
    activate(slot);
  }
  // The window has room again: the first of the line gets a chance.
  void wake_first(Line& line) {
    if (line.head != kNoSlot) unpark(line.head, line);
  }

  // A queue pair that is in no line any more ends.
  void remove(std::uint32_t slot) {
    MRC_ASSERT(!turns_[slot].parked);
    for (std::size_t n = round_.size(); n > 0; --n) {
      const std::uint32_t other = round_.front();
      round_.pop_front();
      if (other != slot) round_.push_back(other);
    }
    turns_[slot] = {};
  }

 private:
  struct Turn {
    std::uint32_t next = kNoSlot;  // in a line
    std::uint32_t previous = kNoSlot;
    std::uint32_t used_bytes = 0;
    bool active = false;
    bool parked = false;
    std::uint64_t waits_since = 0;  // in the order of all who wait; 0 = it does not
  };

  Ring<std::uint32_t> round_;
  FixedArray<Turn> turns_;
  std::uint64_t last_wait_ = 0;
};

}  // namespace mrc::core
