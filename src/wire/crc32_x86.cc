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

}  // namespace

MRC_TARGET_PCLMUL std::uint32_t update_x86_folded(std::uint32_t state,
                                                  std::span<const std::byte> bytes) {
  const std::byte* at = bytes.data();
  std::size_t left = bytes.size();
  if (left < kBlock) return update_table(state, bytes);

  // The register enters as if it were added to the first four bytes.
  __m128i lanes[4] = {_mm_xor_si128(load_lane(at), _mm_cvtsi32_si128(static_cast<int>(state))),
                      load_lane(at + kLane), load_lane(at + 2 * kLane), load_lane(at + 3 * kLane)};
  at += kBlock;
  left -= kBlock;
  const __m128i by_block = factors(kBlockFirst, kBlockSecond);
  for (; left >= kBlock; left -= kBlock, at += kBlock) {
    lanes[0] = fold(lanes[0], by_block, load_lane(at));
    lanes[1] = fold(lanes[1], by_block, load_lane(at + kLane));
    lanes[2] = fold(lanes[2], by_block, load_lane(at + 2 * kLane));
    lanes[3] = fold(lanes[3], by_block, load_lane(at + 3 * kLane));
  }
  const __m128i by_lane = factors(kLaneFirst, kLaneSecond);
  __m128i sum = fold(fold(fold(lanes[0], by_lane, lanes[1]), by_lane, lanes[2]), by_lane, lanes[3]);
  for (; left >= kLane; left -= kLane, at += kLane) {
    sum = fold(sum, by_lane, load_lane(at));
  }

  // What is left of all bytes so far behaves like sixteen bytes behind an empty register.
  std::array<std::byte, kLane> rest{};
  std::memcpy(rest.data(), &sum, kLane);
  return update_table(update_table(0, rest), {at, left});
}

}  // namespace mrc::wire::crc32

#endif  // __x86_64__
