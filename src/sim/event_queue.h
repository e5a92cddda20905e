// What happens next, in a total order that does not depend on the order of insertion.
//
// A calendar: a ring of buckets, each a span of time. The near future, which is nearly everything,
// goes straight to its bucket; the far future waits in a heap. A bucket is sorted when its turn
// comes, so the events about to happen are known and their data can be fetched ahead.
#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>
#include <vector>

#include "base/assert.h"
#include "fabric/topology.h"
#include "sim/growing_array.h"

namespace mrc::sim {

using Time = fabric::Picoseconds;
inline constexpr Time kEndOfTime = INT64_MAX;

enum class EventKind : std::uint8_t {
  kFault,
  kCarrier,     // a host port noticed that its link went down or came back
  kLinkPause,   // PFC
  kLinkResume,  // PFC
  kArrival,     // payload: packet
  kLinkFree,    // end of a transmission, where somebody must know at once
  kHostWake,    // a host port became free
  kHostTimer,
  kTask,
  kSample,
  kPause,  // whoever runs the simulation wants it to stop here for a while
};

// Events of one time are ordered by kind, then by `subject`: the link, host or task concerned. No
// two events of one kind and subject that matter fall on one time.
struct Event {
  static constexpr unsigned kSubjectBits = 28;

  Event() = default;
  Event(Time at, EventKind kind, std::uint32_t subject, std::uint32_t data = 0)
      : time(at),
        order((static_cast<std::uint32_t>(kind) << kSubjectBits) | subject),
        payload(data) {}

  EventKind kind() const { return static_cast<EventKind>(order >> kSubjectBits); }
  std::uint32_t subject() const { return order & ((1u << kSubjectBits) - 1); }
  bool before(const Event& other) const {
    return time != other.time ? time < other.time : order < other.order;
  }

  Time time = 0;
  std::uint32_t order = 0;
  std::uint32_t payload = 0;
};
static_assert(sizeof(Event) == 16);

class EventQueue {
 public:
  // Buckets of 2^width_bits picoseconds, 2^count_bits of them.
  EventQueue(unsigned width_bits, unsigned count_bits)
      : width_bits_(width_bits),
        mask_((std::uint64_t{1} << count_bits) - 1),
        heads_(std::size_t{1} << count_bits, kNone),
        occupied_((std::size_t{1} << count_bits) / 64 + 1, 0) {}

  bool empty() const { return size_ == 0; }
  std::uint64_t size() const { return size_; }

  void push(const Event& event) {
    ++size_;
    const std::uint64_t slot = slot_of(event.time);
    if (slot <= current_slot_) {
      late_.push_back(event);
      std::push_heap(late_.begin(), late_.end(), later);
    } else if (slot - current_slot_ <= mask_) {
      add_to_bucket(slot, event);
    } else {
      far_.push_back(event);
      std::push_heap(far_.begin(), far_.end(), later);
    }
  }

  // The earliest event; the queue must not be empty.
  Event pop() {
    MRC_ASSERT(size_ > 0);
    --size_;
    if (position_ == current_.size() && late_.empty()) open_next_bucket();
    if (!late_.empty() && (position_ == current_.size() || late_[0].before(current_[position_]))) {
      std::pop_heap(late_.begin(), late_.end(), later);
      const Event event = late_.back();
      late_.pop_back();
      return event;
    }
    return current_[position_++];
  }

  // The n-th event from now on as far as it is known already, null otherwise.
  const Event* upcoming(std::size_t n) const {
    return position_ + n < current_.size() ? &current_[position_ + n] : nullptr;
  }

 private:
  static constexpr std::uint32_t kNone = 0xFFFF'FFFF;
  struct Chunk {
    std::uint32_t next = kNone;
    std::uint32_t count = 0;
    Event events[15];
  };

  static bool later(const Event& a, const Event& b) { return b.before(a); }
  std::uint64_t slot_of(Time time) const { return static_cast<std::uint64_t>(time) >> width_bits_; }

  void add_to_bucket(std::uint64_t slot, const Event& event) {
    const std::uint64_t bucket = slot & mask_;
    std::uint32_t head = heads_[bucket];
    if (head == kNone || chunks_[head].count == 15) {
      const std::uint32_t fresh = take_chunk();
      chunks_[fresh].next = head;
      chunks_[fresh].count = 0;
      heads_[bucket] = head = fresh;
      occupied_[bucket / 64] |= std::uint64_t{1} << (bucket % 64);
    }
    Chunk& chunk = chunks_[head];
    chunk.events[chunk.count++] = event;
  }

  std::uint32_t take_chunk() {
    if (free_ == kNone) return chunks_.add();
    const std::uint32_t chunk = free_;
    free_ = chunks_[chunk].next;
    return chunk;
  }

  void open_next_bucket() {
    current_.clear();
    position_ = 0;
    const std::uint64_t next = next_occupied();
    current_slot_ = next != kNowhere ? next : slot_of(far_[0].time);
    while (!far_.empty() && slot_of(far_[0].time) - current_slot_ <= mask_) {
      std::pop_heap(far_.begin(), far_.end(), later);
      add_to_bucket(slot_of(far_.back().time), far_.back());
      far_.pop_back();
    }
    empty_bucket(current_slot_ & mask_);
    std::sort(current_.begin(), current_.end(),
              [](const Event& a, const Event& b) { return a.before(b); });
  }

  void empty_bucket(std::uint64_t bucket) {
    std::uint32_t chunk = heads_[bucket];
    while (chunk != kNone) {
      Chunk& c = chunks_[chunk];
      current_.insert(current_.end(), c.events, c.events + c.count);
      const std::uint32_t next = c.next;
      c.next = free_;
      free_ = chunk;
      chunk = next;
    }
    heads_[bucket] = kNone;
    occupied_[bucket / 64] &= ~(std::uint64_t{1} << (bucket % 64));
  }

  // The next slot behind the current one whose bucket has events. The ring never holds an event
  // later than one in far_, so it comes first.
  static constexpr std::uint64_t kNowhere = ~std::uint64_t{0};
  std::uint64_t next_occupied() const {
    const std::uint64_t start = (current_slot_ + 1) & mask_;
    const std::size_t words = (mask_ + 1 + 63) / 64;
    std::size_t word = start / 64;
    std::uint64_t bits = occupied_[word] & (~std::uint64_t{0} << (start % 64));
    for (std::size_t n = 0; n <= words; ++n) {
      if (bits != 0) {
        const std::uint64_t bucket = word * 64 + static_cast<unsigned>(std::countr_zero(bits));
        return current_slot_ + 1 + ((bucket - start) & mask_);
      }
      word = word + 1 == words ? 0 : word + 1;
      bits = occupied_[word];
    }
    return kNowhere;
  }

  unsigned width_bits_;
  std::uint64_t mask_;
  std::uint64_t size_ = 0;
  std::uint64_t current_slot_ = 0;
  std::vector<Event> current_;  // of the open bucket, sorted
  std::size_t position_ = 0;
  std::vector<Event> late_;  // heap: came in for the open bucket
  std::vector<Event> far_;   // heap: beyond the ring
  std::vector<std::uint32_t> heads_;
  std::vector<std::uint64_t> occupied_;
  GrowingArray<Chunk> chunks_;
  std::uint32_t free_ = kNone;
};

}  // namespace mrc::sim
