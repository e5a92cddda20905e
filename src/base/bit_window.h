// A bitmap over a sliding range of sequence numbers, kept in a ring of words.
//
// The owner keeps the range in use at most `capacity` long and clears bits as the range moves past
// them, so that a position is zero when a new sequence number comes to stand on it. Bitmaps over
// the same range are lanes of one window.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>

#include "base/fixed_array.h"

namespace mrc {

template <unsigned kLanes = 1>
class BitWindow {
 public:
  BitWindow() = default;
  // `capacity` is rounded up to a power of two, and to one word more than a word at least, so that
  // an unaligned 64-bit read never meets itself.
  explicit BitWindow(std::uint32_t capacity)
      : mask_(std::bit_ceil(capacity < 128 ? 128U : capacity) / 64 - 1),
        words_((std::size_t{mask_} + 1) * kLanes) {}

  std::uint64_t capacity() const { return words_.size() / kLanes * 64; }

  bool test(std::uint64_t seq, unsigned lane = 0) const {
    return (words_[word(seq, lane)] >> (seq & 63)) & 1;
  }
  void set(std::uint64_t seq, unsigned lane = 0) {
    words_[word(seq, lane)] |= std::uint64_t{1} << (seq & 63);
  }
  void clear(std::uint64_t seq, unsigned lane = 0) {
    words_[word(seq, lane)] &= ~(std::uint64_t{1} << (seq & 63));
  }

  // Sets `count` bits (at most 64) from `seq` on.
  void set_run(std::uint64_t seq, unsigned count, unsigned lane = 0) {
    const unsigned shift = seq & 63;
    words_[word(seq, lane)] |= run_of(count) << shift;
    if (shift + count > 64) words_[word(seq + 64, lane)] |= run_of(count) >> (64 - shift);
  }
  // Clears `count` bits (at most 64) from `seq` on, in all lanes.
  void clear_run(std::uint64_t seq, unsigned count) {
    const std::uint64_t run = run_of(count);
    const unsigned shift = seq & 63;
    clear_in_lanes(seq, run << shift);
    if (shift + count > 64) clear_in_lanes(seq + 64, run >> (64 - shift));
  }

  // The 64 bits from `seq` on; bit i stands for seq + i.
  std::uint64_t bits64(std::uint64_t seq, unsigned lane = 0) const {
    const unsigned shift = seq & 63;
    const std::uint64_t low = words_[word(seq, lane)] >> shift;
    return shift == 0 ? low : low | (words_[word(seq + 64, lane)] << (64 - shift));
  }

  // The first set bit in [from, end), or `end`.
  std::uint64_t find_first(std::uint64_t from, std::uint64_t end, unsigned lane = 0) const {
    while (from < end) {
      const std::uint64_t bits = words_[word(from, lane)] >> (from & 63);
      if (bits != 0) {
        const std::uint64_t found = from + static_cast<unsigned>(std::countr_zero(bits));
        return found < end ? found : end;
      }
      from = (from | 63) + 1;
    }
    return end;
  }

  std::size_t memory_bytes() const { return words_.memory_bytes(); }

 private:
  static std::uint64_t run_of(unsigned count) {
    return count >= 64 ? ~std::uint64_t{0} : (std::uint64_t{1} << count) - 1;
  }
  void clear_in_lanes(std::uint64_t seq, std::uint64_t bits) {
    const std::size_t first = word(seq, 0);
    for (unsigned lane = 0; lane < kLanes; ++lane)
      words_[first + lane] &= ~bits;
  }
  // The words of all lanes for the same 64 numbers lie side by side.
  std::size_t word(std::uint64_t seq, unsigned lane) const {
    return ((seq >> 6) & mask_) * kLanes + lane;
  }

  std::uint32_t mask_ = 0;  // of the words of a lane, whose number is a power of two
  FixedArray<std::uint64_t> words_;
};

}  // namespace mrc
