// The ways to compute CRC-32 that icrc.cc chooses among. Internal to the wire module.
#pragma once

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>

namespace mrc::wire::crc32 {

// The polynomial in the bit order CRC-32 works in: the coefficient of x^31 is the lowest bit.
inline constexpr std::uint32_t kPolynomial = 0xEDB8'8320;

// Multiplies by x modulo the polynomial.
constexpr std::uint32_t times_x(std::uint32_t value) {
  return (value >> 1) ^ ((value & 1) != 0 ? kPolynomial : 0);
}

// x^n modulo the polynomial.
constexpr std::uint32_t power_of_x(unsigned n) {
  std::uint32_t value = 0x8000'0000;
  for (; n > 0; --n) {
    value = times_x(value);
  }
  return value;
}

// Eight bytes of memory, the first one lowest.
inline std::uint64_t load_word(const std::byte* at) {
  std::uint64_t word = 0;
  std::memcpy(&word, at, sizeof word);
  if constexpr (std::endian::native == std::endian::big) word = __builtin_bswap64(word);
  return word;
}

std::uint32_t update_table(std::uint32_t state, std::span<const std::byte> bytes);

#if defined(__aarch64__)
std::uint32_t update_arm(std::uint32_t state, std::span<const std::byte> bytes);
std::uint32_t update_arm_folded(std::uint32_t state, std::span<const std::byte> bytes);
#elif defined(__x86_64__)
std::uint32_t update_x86_folded(std::uint32_t state, std::span<const std::byte> bytes);
std::uint32_t update_x86_wide(std::uint32_t state, std::span<const std::byte> bytes);
#endif

}  // namespace mrc::wire::crc32
