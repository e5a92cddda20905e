// Writes received bytes into the program's memory.
//
// Like the writes of a network card these are ordered with nothing a program does until a
// completion (or the last byte of a write, where that is asked for) says so; a program may well
// watch the memory meanwhile. They go from the lowest address to the highest in whole 16-byte
// stores, so that on machines which keep stores in order the end of a block never shows before its
// beginning.
#pragma once

#include <cstddef>

namespace mrc::nic {

// Sixteen bytes at any address, stored at once.
struct [[gnu::packed, gnu::may_alias]] PlacedUnit {
  using Bytes [[gnu::vector_size(16)]] = unsigned char;
  Bytes bytes;
};
static_assert(alignof(PlacedUnit) == 1 && sizeof(PlacedUnit) == 16);

// Thread sanitizers are told to look away: see above.
__attribute__((no_sanitize("thread"))) inline void place_bytes(std::byte* to, const std::byte* from,
                                                               std::size_t length) {
  constexpr std::size_t kStep = 4 * sizeof(PlacedUnit);
  for (; length >= kStep; length -= kStep, from += kStep, to += kStep) {
    const auto* in = reinterpret_cast<const PlacedUnit*>(from);
    auto* out = reinterpret_cast<PlacedUnit*>(to);
    const PlacedUnit first = in[0];
    const PlacedUnit second = in[1];
    const PlacedUnit third = in[2];
    const PlacedUnit fourth = in[3];
    out[0] = first;
    out[1] = second;
    out[2] = third;
    out[3] = fourth;
    // Neither the order of the steps nor the loop is the compiler's to improve on.
    asm volatile("" ::: "memory");
  }
  for (; length > 0; --length) {
    *to++ = *from++;
    asm volatile("" ::: "memory");
  }
}

}  // namespace mrc::nic
