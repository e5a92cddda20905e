// One deadline per slot, and the earliest of all of them: an indexed binary heap of fixed capacity.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "base/assert.h"
#include "base/types.h"

namespace mrc {

class TimerHeap {
 public:
  TimerHeap() = default;
  explicit TimerHeap(std::uint32_t slots) : position_(slots, kAbsent), key_(slots, kNever) {
    heap_.reserve(slots);
  }

  bool empty() const { return heap_.empty(); }
  TimeNs earliest() const { return heap_.empty() ? kNever : key_[heap_[0]]; }
  std::uint32_t earliest_slot() const {
    MRC_ASSERT(!heap_.empty());
    return heap_[0];
  }
  TimeNs deadline(std::uint32_t slot) const { return key_[slot]; }

  // kNever removes the slot.
  void set(std::uint32_t slot, TimeNs deadline) {
    if (deadline == key_[slot]) return;
    if (deadline == kNever) return remove(slot);
    const bool earlier = deadline < key_[slot];
    key_[slot] = deadline;
    if (position_[slot] == kAbsent) {
      position_[slot] = static_cast<std::uint32_t>(heap_.size());
      heap_.push_back(slot);
      sift_up(position_[slot]);
    } else if (earlier) {
      sift_up(position_[slot]);
    } else {
      sift_down(position_[slot]);
    }
  }

 private:
  static constexpr std::uint32_t kAbsent = 0xFFFF'FFFF;

  void remove(std::uint32_t slot) {
    key_[slot] = kNever;
    const std::uint32_t at = std::exchange(position_[slot], kAbsent);
    if (at == kAbsent) return;
    const std::uint32_t moved = heap_.back();
    heap_.pop_back();
    if (moved == slot) return;
    place(at, moved);
    sift_up(at);
    sift_down(position_[moved]);
  }
  bool before(std::uint32_t a, std::uint32_t b) const {
    return key_[a] != key_[b] ? key_[a] < key_[b] : a < b;
  }
  void place(std::uint32_t at, std::uint32_t slot) {
    heap_[at] = slot;
    position_[slot] = at;
  }
  void sift_up(std::uint32_t at) {
    const std::uint32_t slot = heap_[at];
    while (at > 0 && before(slot, heap_[(at - 1) / 2])) {
      place(at, heap_[(at - 1) / 2]);
      at = (at - 1) / 2;
    }
    place(at, slot);
  }
  void sift_down(std::uint32_t at) {
    const std::uint32_t slot = heap_[at];
    const auto size = static_cast<std::uint32_t>(heap_.size());
    for (;;) {
      std::uint32_t child = 2 * at + 1;
      if (child >= size) break;
      if (child + 1 < size && before(heap_[child + 1], heap_[child])) ++child;
      if (!before(heap_[child], slot)) break;
      place(at, heap_[child]);
      at = child;
    }
    place(at, slot);
  }

  std::vector<std::uint32_t> heap_;      // slots
  std::vector<std::uint32_t> position_;  // of each slot in heap_
  std::vector<TimeNs> key_;
};

}  // namespace mrc
