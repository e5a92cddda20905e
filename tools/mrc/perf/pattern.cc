#include "perf/pattern.h"

#include <fmt/core.h>

#include <algorithm>
#include <cstring>

#include "base/prng.h"

namespace mrc::tool::perf {
namespace {

// Different messages start at different lines of the reference; this many starts there are.
constexpr std::size_t kLineBytes = 64;
constexpr std::uint64_t kStarts = 1'021;  // prime, so that rings of slots do not fall in step
constexpr std::size_t kSamples = 8;

}  // namespace

Pattern::Pattern(std::uint64_t seed, std::uint64_t max_bytes) {
  const std::size_t lines = (max_bytes + kLineBytes - 1) / kLineBytes + kStarts;
  bytes_.resize(lines * kLineBytes);
  Prng random(seed);
  for (std::size_t at = 0; at < bytes_.size(); at += sizeof(std::uint64_t)) {
    const std::uint64_t word = random.next64();
    std::memcpy(&bytes_[at], &word, sizeof(word));
  }
}

std::size_t Pattern::offset_of(unsigned qp, std::uint64_t message) {
  return (message + std::uint64_t{qp} * 7) % kStarts * kLineBytes;
}

std::span<const std::byte> Pattern::message(unsigned qp, std::uint64_t number,
                                            std::size_t bytes) const {
  return std::span(bytes_).subspan(offset_of(qp, number), bytes);
}

std::string Pattern::difference(unsigned qp, std::uint64_t number,
                                std::span<const std::byte> found) const {
  const auto expected = message(qp, number, found.size());
  if (std::memcmp(expected.data(), found.data(), found.size()) == 0) return {};
  const auto at = std::mismatch(found.begin(), found.end(), expected.begin());
  return fmt::format("message {} of queue pair {}: byte {} of {} is {:#04x}, expected {:#04x}",
                     number, qp, at.first - found.begin(), found.size(),
                     std::to_integer<unsigned>(*at.first), std::to_integer<unsigned>(*at.second));
}

std::string Pattern::sampled_difference(unsigned qp, std::uint64_t number,
                                        std::span<const std::byte> found) const {
  if (found.size() <= kSamples * kLineBytes) return difference(qp, number, found);
  const auto expected = message(qp, number, found.size());
  const std::size_t step = (found.size() - kLineBytes) / (kSamples - 1);
  for (std::size_t sample = 0; sample < kSamples; ++sample) {
    const std::size_t at = sample + 1 == kSamples ? found.size() - kLineBytes : sample * step;
    if (std::memcmp(&expected[at], &found[at], kLineBytes) != 0)
      return difference(qp, number, found);
  }
  return {};
}

void fill_guard(std::span<std::byte> memory) { std::fill(memory.begin(), memory.end(), kGuard); }

bool guard_intact(std::span<const std::byte> memory) {
  return std::all_of(memory.begin(), memory.end(), [](std::byte b) { return b == kGuard; });
}

}  // namespace mrc::tool::perf
