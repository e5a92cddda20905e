// CRC-32 with the CRC instructions of aarch64.
#include "wire/crc32.h"

#if defined(__aarch64__)

// clang declares these intrinsics only if the whole file is built for a CPU that has them. The
// compiler builtins behind them obey the target of each function, so they are called directly.
#include <arm_neon.h>

#if defined(__clang__)
#define MRC_TARGET_CRC __attribute__((target("crc")))
#define MRC_TARGET_CRC_PMULL __attribute__((target("crc,crypto")))
#define MRC_CRC32_WORD(state, word) __builtin_arm_crc32d(state, word)
#define MRC_CRC32_HALF(state, half) __builtin_arm_crc32w(state, half)
#define MRC_CRC32_BYTE(state, byte) __builtin_arm_crc32b(state, byte)
#else
#define MRC_TARGET_CRC __attribute__((target("+crc")))
#define MRC_TARGET_CRC_PMULL __attribute__((target("+crc+crypto")))
#define MRC_CRC32_WORD(state, word) __builtin_aarch64_crc32x(state, word)
#define MRC_CRC32_HALF(state, half) __builtin_aarch64_crc32w(state, half)
#define MRC_CRC32_BYTE(state, byte) __builtin_aarch64_crc32b(state, byte)
#endif

namespace mrc::wire::crc32 {
namespace {

static_assert(std::endian::native == std::endian::little);

constexpr std::size_t kWord = 8;
// Below this length a single stream is as fast.
constexpr std::size_t kFoldFrom = 256;
// Words in each of three streams at most; a payload of 4 KiB takes one round.
constexpr std::size_t kMaxStreamWords = 170;

// The CRC instructions and the carry-less multiplication run in different units of the processor,
// so long input is shared between them: in each step four words of each of three streams, and as
// many bytes in six lanes that are folded.
constexpr std::size_t kBothFrom = 768;
constexpr std::size_t kStepWords = 4;
constexpr std::size_t kLane = 16;
constexpr std::size_t kLanes = 6;
constexpr std::size_t kLaneBytes = kLanes * kLane;
constexpr std::size_t kMaxSteps = 28;  // 5,376 bytes
static_assert(3 * kStepWords * kWord == kLaneBytes);
static_assert(5 * kStepWords * kMaxSteps >= 2 * kMaxStreamWords);

// Entry k moves a register over k words: multiplying by it and running the product through the CRC
// instruction as a word, which itself multiplies by x^33, is the same as k words of zeros.
constexpr auto make_shifts() {
  std::array<std::uint32_t, 5 * kStepWords * kMaxSteps + 1> shifts{};
  std::uint32_t value = power_of_x(64 - 33);
  for (std::size_t k = 1; k < shifts.size(); ++k) {
    shifts[k] = value;
    for (int bit = 0; bit < 64; ++bit) {
      value = times_x(value);
    }
  }
  return shifts;
}

constexpr auto kShifts = make_shifts();

MRC_TARGET_CRC inline std::uint32_t one_stream(std::uint32_t state, const std::byte* at,
                                               std::size_t left) {
  for (; left >= kWord; left -= kWord, at += kWord) {
    state = MRC_CRC32_WORD(state, load_word(at));
  }
  if (left >= kWord / 2) {
    std::uint32_t half = 0;
    std::memcpy(&half, at, sizeof half);
    state = MRC_CRC32_HALF(state, half);
    left -= kWord / 2;
    at += kWord / 2;
  }
  for (; left > 0; --left, ++at) {
    state = MRC_CRC32_BYTE(state, std::to_integer<std::uint8_t>(*at));
  }
  return state;
}

MRC_TARGET_CRC_PMULL inline std::uint64_t multiply(std::uint32_t a, std::uint32_t b) {
  const poly128_t product = vmull_p64(poly64_t{a}, poly64_t{b});
  return vgetq_lane_u64(vreinterpretq_u64_p128(product), 0);
}

// Three neighbouring streams of `words` words each, as one.
MRC_TARGET_CRC_PMULL inline std::uint32_t three_streams(std::uint32_t state, const std::byte* at,
                                                        std::size_t words) {
  const std::size_t stride = words * kWord;
  std::uint32_t first = state;
  std::uint32_t second = 0;
  std::uint32_t third = 0;
  for (std::size_t i = 0; i + 1 < words; ++i, at += kWord) {
    first = MRC_CRC32_WORD(first, load_word(at));
    second = MRC_CRC32_WORD(second, load_word(at + stride));
    third = MRC_CRC32_WORD(third, load_word(at + 2 * stride));
  }
  first = MRC_CRC32_WORD(first, load_word(at));
  second = MRC_CRC32_WORD(second, load_word(at + stride));
  const std::uint64_t carried =
      multiply(first, kShifts[2 * words]) ^ multiply(second, kShifts[words]);
  return MRC_CRC32_WORD(third, load_word(at + 2 * stride) ^ carried);
}

// A factor for one half of a lane: x^n in the top of 64 bits, where the lowest bit is the highest
// power. Moving a lane over n bits multiplies its first half by x^(n+64) and its second by x^n; the
// product of two reflected halves is one bit short of a lane, hence one power less.
constexpr std::uint64_t factor(std::size_t n) {
  return std::uint64_t{power_of_x(static_cast<unsigned>(n))} << 32;
}
constexpr std::uint64_t kByBlock[2] = {factor(8 * kLaneBytes + 64 - 1), factor(8 * kLaneBytes - 1)};
constexpr std::uint64_t kByLane[2] = {factor(8 * kLane + 64 - 1), factor(8 * kLane - 1)};

MRC_TARGET_CRC_PMULL inline uint64x2_t load_lane(const std::byte* at) {
  return vreinterpretq_u64_u8(vld1q_u8(reinterpret_cast<const std::uint8_t*>(at)));
}

// `lane` moved on by the distance of `by`, plus `next`.
MRC_TARGET_CRC_PMULL inline uint64x2_t fold(uint64x2_t lane, poly64x2_t by, uint64x2_t next) {
  const poly64x2_t value = vreinterpretq_p64_u64(lane);
  const poly128_t first = vmull_p64(vgetq_lane_p64(value, 0), vgetq_lane_p64(by, 0));
  const poly128_t second = vmull_high_p64(value, by);
  return veorq_u64(veorq_u64(vreinterpretq_u64_p128(first), vreinterpretq_u64_p128(second)), next);
}

// 2 * kLaneBytes * steps bytes: the first half in three streams, the second in lanes.
MRC_TARGET_CRC_PMULL inline std::uint32_t both_units(std::uint32_t state, const std::byte* at,
                                                     std::size_t steps) {
  const std::size_t words = kStepWords * steps;
  const std::size_t stride = words * kWord;
  const std::byte* folded = at + 3 * stride;
  std::uint32_t first = state;
  std::uint32_t second = 0;
  std::uint32_t third = 0;
  uint64x2_t lanes[kLanes] = {};
  const poly64x2_t by_block = vreinterpretq_p64_u64(vld1q_u64(kByBlock));
  for (std::size_t i = 0; i < steps; ++i, folded += kLaneBytes) {
#pragma GCC unroll 6  // at -O2 the compiler would not
    for (std::size_t lane = 0; lane < kLanes; ++lane) {
      lanes[lane] = fold(lanes[lane], by_block, load_lane(folded + lane * kLane));
    }
#pragma GCC unroll 4
    for (std::size_t word = 0; word < kStepWords; ++word, at += kWord) {
      first = MRC_CRC32_WORD(first, load_word(at));
      second = MRC_CRC32_WORD(second, load_word(at + stride));
      third = MRC_CRC32_WORD(third, load_word(at + 2 * stride));
    }
  }
  const poly64x2_t by_lane = vreinterpretq_p64_u64(vld1q_u64(kByLane));
  uint64x2_t sum = lanes[0];
  for (std::size_t lane = 1; lane < kLanes; ++lane) {
    sum = fold(sum, by_lane, lanes[lane]);
  }
  // What is left of the lanes behaves like two words behind an empty register. The streams join at
  // the second: each is moved over all words behind it.
  const std::uint64_t carried = multiply(first, kShifts[5 * words]) ^
                                multiply(second, kShifts[4 * words]) ^
                                multiply(third, kShifts[3 * words]);
  const std::uint32_t half = MRC_CRC32_WORD(0, vgetq_lane_u64(sum, 0));
  return MRC_CRC32_WORD(half, vgetq_lane_u64(sum, 1) ^ carried);
}

}  // namespace

MRC_TARGET_CRC std::uint32_t update_arm(std::uint32_t state, std::span<const std::byte> bytes) {
  return one_stream(state, bytes.data(), bytes.size());
}

MRC_TARGET_CRC_PMULL std::uint32_t update_arm_folded(std::uint32_t state,
                                                     std::span<const std::byte> bytes) {
  const std::byte* at = bytes.data();
  std::size_t left = bytes.size();
  while (left >= kBothFrom) {
    const std::size_t fitting = left / (2 * kLaneBytes);
    const std::size_t steps = fitting < kMaxSteps ? fitting : kMaxSteps;
    state = both_units(state, at, steps);
    at += 2 * kLaneBytes * steps;
    left -= 2 * kLaneBytes * steps;
  }
  while (left >= kFoldFrom) {
    const std::size_t fitting = left / (3 * kWord);
    const std::size_t words = fitting < kMaxStreamWords ? fitting : kMaxStreamWords;
    state = three_streams(state, at, words);
    at += 3 * kWord * words;
    left -= 3 * kWord * words;
  }
  return one_stream(state, at, left);
}

}  // namespace mrc::wire::crc32

#endif  // __aarch64__
