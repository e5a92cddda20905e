// CRC-32 with the carry-less multiplication of x86-64.
#include "wire/crc32.h"

#if defined(__x86_64__)

#include <emmintrin.h>
#include <wmmintrin.h>

#define MRC_TARGET_PCLMUL __attribute__((target("sse2,pclmul")))

namespace mrc::wire::crc32 {
namespace {

constexpr std::size_t kLane = 16;
constexpr std::size_t kBlock = 4 * kLane;

// A factor for one half of a lane: x^n in the top of 64 bits, where the lowest bit is the highest
// power.
constexpr std::uint64_t factor(unsigned n) { return std::uint64_t{power_of_x(n)} << 32; }

// Moving a lane over n bits multiplies its first half, which stands 64 bits higher, by x^(n+64) and
// its second by x^n. The product of two reflected halves is one bit short of a lane, hence one
// power less.
constexpr std::uint64_t kBlockFirst = factor(8 * kBlock + 64 - 1);
constexpr std::uint64_t kBlockSecond = factor(8 * kBlock - 1);
constexpr std::uint64_t kLaneFirst = factor(8 * kLane + 64 - 1);
constexpr std::uint64_t kLaneSecond = factor(8 * kLane - 1);

MRC_TARGET_PCLMUL inline __m128i factors(std::uint64_t first, std::uint64_t second) {
  return _mm_set_epi64x(static_cast<long long>(second), static_cast<long long>(first));
}

MRC_TARGET_PCLMUL inline __m128i load_lane(const std::byte* at) {
  __m128i lane;
  std::memcpy(&lane, at, sizeof lane);
  return lane;
}

// `lane` moved on by the distance of `by`, plus `next`.
MRC_TARGET_PCLMUL inline __m128i fold(__m128i lane, __m128i by, __m128i next) {
  const __m128i first = _mm_clmulepi64_si128(lane, by, 0x00);
  const __m128i second = _mm_clmulepi64_si128(lane, by, 0x11);
  return _mm_xor_si128(_mm_xor_si128(first, second), next);
}

// The polynomial with its x^32, and x^64 divided by it; lowest bit highest power.
constexpr std::uint64_t kDivisor = std::uint64_t{kPolynomial} << 1 | 1;
constexpr std::uint64_t kQuotient = 0x1'F701'1641;

// The register behind sixteen bytes that an empty one was fed with.
MRC_TARGET_PCLMUL inline std::uint32_t reduce(__m128i lane) {
  // The first half moves on by 96 bits, the second by 32: 96 bits are left.
  const __m128i by = factors(factor(96 - 1), factor(64 - 1));
  __m128i sum = _mm_xor_si128(_mm_clmulepi64_si128(lane, by, 0x00),
                              _mm_slli_si128(_mm_srli_si128(lane, 8), 4));
  // Their top 32 move on by 64: 64 are left, in the second half.
  sum = _mm_xor_si128(_mm_clmulepi64_si128(sum, by, 0x10), sum);
  const __m128i left = _mm_srli_si128(sum, 8);
  // Less the multiple of the polynomial that the top 32 of these stand for.
  const __m128i division = factors(kDivisor, kQuotient);
  const __m128i low_word = _mm_cvtsi32_si128(-1);
  const __m128i multiple =
      _mm_and_si128(_mm_clmulepi64_si128(_mm_and_si128(left, low_word), division, 0x10), low_word);
  const __m128i rest = _mm_xor_si128(_mm_clmulepi64_si128(multiple, division, 0x00), left);
  return static_cast<std::uint32_t>(_mm_cvtsi128_si64(rest) >> 32);
}

}  // namespace

// Bytes that fill no lane come first: zeros before them change nothing, and no tail is left.
MRC_TARGET_PCLMUL std::uint32_t update_x86_folded(std::uint32_t state,
                                                  std::span<const std::byte> bytes) {
  const std::byte* at = bytes.data();
  std::size_t left = bytes.size();
  if (left < kLane) return update_table(state, bytes);

  // The register enters as if it were added to the first four bytes.
  const __m128i by_lane = factors(kLaneFirst, kLaneSecond);
  const std::size_t odd = left % kLane;
  __m128i sum;
  if (odd == 0) {
    sum = _mm_xor_si128(load_lane(at), _mm_cvtsi32_si128(static_cast<int>(state)));
  } else {
    std::array<std::byte, 2 * kLane> first{};
    std::byte* const begin = first.data() + kLane - odd;
    std::memcpy(begin, at, odd + kLane);
    std::uint32_t word = 0;
    std::memcpy(&word, begin, sizeof word);
    word ^= state;
    std::memcpy(begin, &word, sizeof word);
    sum = fold(load_lane(first.data()), by_lane, load_lane(first.data() + kLane));
  }
  at += odd + kLane;
  left -= odd + kLane;

  if (left >= kBlock) {
    __m128i lanes[4] = {sum, load_lane(at), load_lane(at + kLane), load_lane(at + 2 * kLane)};
    at += kBlock - kLane;
    left -= kBlock - kLane;
    const __m128i by_block = factors(kBlockFirst, kBlockSecond);
    for (; left >= kBlock; left -= kBlock, at += kBlock) {
      lanes[0] = fold(lanes[0], by_block, load_lane(at));
      lanes[1] = fold(lanes[1], by_block, load_lane(at + kLane));
      lanes[2] = fold(lanes[2], by_block, load_lane(at + 2 * kLane));
      lanes[3] = fold(lanes[3], by_block, load_lane(at + 3 * kLane));
    }
    sum = fold(fold(fold(lanes[0], by_lane, lanes[1]), by_lane, lanes[2]), by_lane, lanes[3]);
  }
  for (; left >= kLane; left -= kLane, at += kLane) {
    sum = fold(sum, by_lane, load_lane(at));
  }
  return reduce(sum);
}

}  // namespace mrc::wire::crc32

#endif  // __x86_64__
