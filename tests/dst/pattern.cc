#include "dst/pattern.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>

namespace mrc::dst {
namespace {

constexpr std::size_t kWord = sizeof(std::uint64_t);

constexpr std::uint64_t word_at(std::uint64_t key, std::uint64_t index) {
  std::uint64_t word = key + index * 0x9E37'79B9'7F4A'7C15;
  word ^= word >> 29;
  word *= 0xBF58'476D'1CE4'E5B9;
  return word ^ (word >> 32);
}

// Little-endian on every machine.
void store_word(std::uint64_t word, std::byte* out) {
  if constexpr (std::endian::native == std::endian::big) word = __builtin_bswap64(word);
  std::memcpy(out, &word, kWord);
}

// Bytes of the word at `index`, from its byte `skip` on.
void fill_part(std::uint64_t key, std::uint64_t index, std::size_t skip, std::span<std::byte> out) {
  std::array<std::byte, kWord> bytes{};
  store_word(word_at(key, index), bytes.data());
  std::memcpy(out.data(), bytes.data() + skip, out.size());
}

}  // namespace

// Whole words in a loop of their own: this is a third of what a run costs.
void fill_pattern(std::uint64_t key, std::uint64_t offset, std::span<std::byte> out) {
  std::uint64_t index = offset / kWord;
  const std::size_t skip = offset % kWord;
  if (skip != 0) {
    const std::size_t length = std::min(kWord - skip, out.size());
    fill_part(key, index++, skip, out.first(length));
    out = out.subspan(length);
  }
  for (; out.size() >= kWord; out = out.subspan(kWord))
    store_word(word_at(key, index++), out.data());
  if (!out.empty()) fill_part(key, index, 0, out);
}

std::size_t first_difference(std::uint64_t key, std::uint64_t offset,
                             std::span<const std::byte> bytes) {
  std::array<std::byte, 1024> expected{};
  for (std::size_t done = 0; done < bytes.size();) {
    const std::size_t length = std::min(expected.size(), bytes.size() - done);
    fill_pattern(key, offset + done, std::span(expected).first(length));
    if (std::memcmp(expected.data(), bytes.data() + done, length) != 0) {
      const auto part = bytes.subspan(done, length);
      const auto at = std::mismatch(part.begin(), part.end(), expected.begin()).first;
      return done + static_cast<std::size_t>(at - part.begin());
    }
    done += length;
  }
  return bytes.size();
}

}  // namespace mrc::dst
