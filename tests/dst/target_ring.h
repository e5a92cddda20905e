// Where in the peer's region messages go: each outstanding message has a range of its own, so that
// what it must have written can be checked to the byte for as long as it is outstanding.
#pragma once

#include <cstdint>
#include <deque>
#include <optional>

#include "dst/random.h"

namespace mrc::dst {

class TargetRing {
 public:
  // Offsets 0 .. size - 1 of a region.
  explicit TargetRing(std::uint64_t size) : size_(size) {}

  // Room for the next message, if there is any; ranges are given back in the same order. A length
  // of 0 takes no room.
  std::optional<std::uint64_t> take(std::uint32_t length, Random& random) {
    const std::uint64_t gap = random.below(24);
    std::uint64_t begin = head_ + gap;
    const bool wrapped = !live_.empty() && live_.front().begin > head_;
    const std::uint64_t limit = wrapped ? live_.front().begin : size_;
    // One byte always stays free, so that a full ring does not look like an empty one.
    if (begin + length >= limit) {
      const std::uint64_t room = live_.empty() ? size_ : live_.front().begin;
      if (wrapped || gap + length >= room) return std::nullopt;
      begin = gap;
    }
    live_.push_back({begin, begin + length});
    head_ = begin + length;
    return begin;
  }
  void release() { live_.pop_front(); }

 private:
  struct Range {
    std::uint64_t begin;
    std::uint64_t end;
  };

  std::uint64_t size_;
  std::uint64_t head_ = 0;
  std::deque<Range> live_;
};

}  // namespace mrc::dst
