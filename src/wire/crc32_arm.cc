// CRC-32 with the CRC instructions of aarch64.
#include "wire/crc32.h"

#if defined(__aarch64__)

// clang 14 declares these intrinsics only if the whole file is built for a CPU that has them. The
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

// Entry k moves a register over k words: multiplying by it and running the product through the CRC
// instruction as a word, which itself multiplies by x^33, is the same as k words of zeros.
constexpr auto make_shifts() {
  std::array<std::uint32_t, 2 * kMaxStreamWords + 1> shifts{};
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

}  // namespace

MRC_TARGET_CRC std::uint32_t update_arm(std::uint32_t state, std::span<const std::byte> bytes) {
  return one_stream(state, bytes.data(), bytes.size());
}

MRC_TARGET_CRC_PMULL std::uint32_t update_arm_folded(std::uint32_t state,
                                                     std::span<const std::byte> bytes) {
  const std::byte* at = bytes.data();
  std::size_t left = bytes.size();
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
