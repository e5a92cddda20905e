// CRC-32 for any machine: eight bytes a step through eight tables.
#include "wire/crc32.h"

namespace mrc::wire::crc32 {
namespace {

constexpr std::size_t kStep = 8;
using Tables = std::array<std::array<std::uint32_t, 256>, kStep>;

// Entry [k][b] is what byte b contributes when k more bytes follow it.
constexpr Tables make_tables() {
  Tables tables{};
  for (std::uint32_t b = 0; b < 256; ++b) {
    std::uint32_t value = b;
    for (int bit = 0; bit < 8; ++bit) {
      value = times_x(value);
    }
    tables[0][b] = value;
  }
  for (std::size_t k = 1; k < kStep; ++k) {
    for (std::size_t b = 0; b < 256; ++b) {
      const std::uint32_t before = tables[k - 1][b];
      tables[k][b] = (before >> 8) ^ tables[0][before & 0xFF];
    }
  }
  return tables;
}

constexpr Tables kTables = make_tables();

}  // namespace

std::uint32_t update_table(std::uint32_t state, std::span<const std::byte> bytes) {
  const std::byte* at = bytes.data();
  std::size_t left = bytes.size();
  for (; left >= kStep; left -= kStep, at += kStep) {
    const std::uint64_t word = load_word(at) ^ state;
    const auto byte = [word](unsigned i) { return (word >> (8 * i)) & 0xFF; };
    state = kTables[7][byte(0)] ^ kTables[6][byte(1)] ^ kTables[5][byte(2)] ^ kTables[4][byte(3)] ^
            kTables[3][byte(4)] ^ kTables[2][byte(5)] ^ kTables[1][byte(6)] ^ kTables[0][byte(7)];
  }
  for (; left > 0; --left, ++at) {
    state = (state >> 8) ^ kTables[0][(state ^ std::to_integer<std::uint32_t>(*at)) & 0xFF];
  }
  return state;
}

}  // namespace mrc::wire::crc32
