// SipHash-2-4 (Aumasson and Bernstein, 2012): a keyed hash of short inputs that only holders of the
// key can compute. 64 bits, a few nanoseconds for every eight bytes.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>

#include "base/assert.h"

namespace mrc::seal {

// A hash under construction. Copying forks the computation, so that what many inputs begin with is
// taken in once.
class SipHash {
 public:
  static constexpr std::size_t kKeyLength = 16;

  explicit SipHash(std::span<const std::byte, kKeyLength> key) {
    const std::uint64_t k0 = word(key.data());
    const std::uint64_t k1 = word(key.data() + 8);
    v0_ ^= k0;
    v1_ ^= k1;
    v2_ ^= k0;
    v3_ ^= k1;
  }

  // A multiple of eight bytes.
  void add(std::span<const std::byte> bytes) {
    MRC_ASSERT(bytes.size() % 8 == 0);
    for (std::size_t at = 0; at < bytes.size(); at += 8)
      absorb(word(bytes.data() + at));
    length_ += bytes.size();
  }

  // The hash of all that was added and of `rest`, which may be any number of bytes.
  [[nodiscard]] std::uint64_t finish(std::span<const std::byte> rest) const {
    SipHash state = *this;
    const std::size_t whole = rest.size() / 8 * 8;
    state.add(rest.first(whole));
    std::uint64_t last = (length_ + rest.size()) << 56;
    for (std::size_t i = whole; i < rest.size(); ++i)
      last |= std::to_integer<std::uint64_t>(rest[i]) << (8 * (i - whole));
    state.absorb(last);
    state.v2_ ^= 0xFF;
    for (int i = 0; i < 4; ++i)
      state.round();
    return state.v0_ ^ state.v1_ ^ state.v2_ ^ state.v3_;
  }

 private:
  static std::uint64_t word(const std::byte* at) {
    std::uint64_t value = 0;
    std::memcpy(&value, at, sizeof value);
    if constexpr (std::endian::native == std::endian::big) value = __builtin_bswap64(value);
    return value;
  }
  void absorb(std::uint64_t value) {
    v3_ ^= value;
    round();
    round();
    v0_ ^= value;
  }
  void round() {
    v0_ += v1_;
    v1_ = std::rotl(v1_, 13) ^ v0_;
    v0_ = std::rotl(v0_, 32);
    v2_ += v3_;
    v3_ = std::rotl(v3_, 16) ^ v2_;
    v0_ += v3_;
    v3_ = std::rotl(v3_, 21) ^ v0_;
    v2_ += v1_;
    v1_ = std::rotl(v1_, 17) ^ v2_;
    v2_ = std::rotl(v2_, 32);
  }

  // The constants of the published algorithm.
  std::uint64_t v0_ = 0x736f'6d65'7073'6575;
  std::uint64_t v1_ = 0x646f'7261'6e64'6f6d;
  std::uint64_t v2_ = 0x6c79'6765'6e65'7261;
  std::uint64_t v3_ = 0x7465'6462'7974'6573;
  std::uint64_t length_ = 0;
};

}  // namespace mrc::seal
