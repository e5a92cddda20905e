// A small deterministic generator (splitmix64 steps). Not for keys; seeds come from the caller.
#pragma once

#include <cstdint>

namespace mrc {

// Spreads the bits of a number over all of the result; a good hash of integer keys.
constexpr std::uint64_t mix64(std::uint64_t x) {
  x = (x ^ (x >> 30)) * 0xBF58'476D'1CE4'E5B9;
  x = (x ^ (x >> 27)) * 0x94D0'49BB'1331'11EB;
  return x ^ (x >> 31);
}

class Prng {
 public:
  constexpr explicit Prng(std::uint64_t seed) : state_(seed) {}

  constexpr std::uint64_t next64() {
    state_ += 0x9E37'79B9'7F4A'7C15;
    return mix64(state_);
  }
  constexpr std::uint32_t next32() { return static_cast<std::uint32_t>(next64() >> 32); }

  // Uniform in [0, bound); bound > 0. The bias of the multiply method is below bound / 2^32.
  constexpr std::uint32_t below(std::uint32_t bound) {
    return static_cast<std::uint32_t>((std::uint64_t{next32()} * bound) >> 32);
  }

 private:
  std::uint64_t state_;
};

}  // namespace mrc
