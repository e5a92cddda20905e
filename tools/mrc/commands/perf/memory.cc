#include "commands/perf/memory.h"

#include <fmt/core.h>
#include <sys/mman.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "base/prng.h"
#include "failure.h"

namespace mrc::tool::perf {
namespace {

constexpr std::size_t kLineBytes = 64;
constexpr std::size_t kGuardBytes = 64;
// In flight per queue pair: covers 400 Gb/s and 80 us, and stays in the caches of most machines.
constexpr std::uint64_t kInFlightBytes = std::uint64_t{4} << 20;
constexpr std::uint64_t kMaxAreaBytes = std::uint64_t{4} << 30;

// Different messages start at different lines of the reference; this many starts there are.
constexpr std::uint64_t kStarts = 1'021;  // prime, so that rings of slots do not fall in step
constexpr std::size_t kSamples = 8;

// `slot` is the number of a place, and of the first message that belongs there.
std::string check_slot(std::span<const std::byte> area, const Layout& layout,
                       const Pattern& expected, unsigned qp, std::uint64_t slot,
                       std::uint64_t count) {
  if (!guard_intact(layout.guard_in(area, qp, slot)))
    return fmt::format("bytes behind place {} of queue pair {} were written to", slot, qp);
  const auto found = layout.message_in(area, qp, slot);
  if (count > slot) {
    const std::uint64_t rounds = (count - 1 - slot) / layout.slots();
    return expected.difference(qp, slot + rounds * layout.slots(), found);
  }
  if (guard_intact(found)) return {};
  return fmt::format("place {} of queue pair {} was written to without a message", slot, qp);
}

}  // namespace

Area::Area(std::size_t bytes) : size_(bytes) {
  void* const got =
      mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (got == MAP_FAILED)
    throw Failure(fmt::format("no memory for {} bytes: {}", bytes, std::strerror(errno)));
  data_ = static_cast<std::byte*>(got);
}

Area::~Area() { munmap(data_, size_); }

Layout::Layout(const Plan& plan, std::uint64_t message_bytes)
    : message_bytes_(message_bytes),
      qps_(plan.qps),
      stride_((message_bytes + kLineBytes - 1) / kLineBytes * kLineBytes + kGuardBytes),
      slots_(1) {
  if (plan.test == Test::kWriteLatency) return;
  const std::uint64_t fitting = std::max<std::uint64_t>(kInFlightBytes / message_bytes, 2);
  slots_ = static_cast<unsigned>(std::min<std::uint64_t>(fitting, plan.depth));
}

std::size_t area_bytes(const Plan& plan) {
  std::size_t most = 0;
  for (const std::uint64_t size : plan.sizes)
    most = std::max(most, Layout(plan, size).total_bytes());
  if (most > kMaxAreaBytes)
    throw Failure(fmt::format("{} queue pairs with messages of {} bytes need {:.1f} GiB of memory; "
                              "ask for fewer or smaller ones",
                              plan.qps, plan.sizes.back(), static_cast<double>(most) / (1U << 30)),
                  FailureKind::kUsage);
  return most;
}

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

void prepare_area(std::span<std::byte> area, const Layout& layout) {
  fill_guard(area.first(layout.total_bytes()));
}

std::string check_area(std::span<const std::byte> area, const Layout& layout,
                       const Pattern& expected, const std::vector<std::uint64_t>& counts) {
  for (unsigned qp = 0; qp < counts.size(); ++qp) {
    for (std::uint64_t slot = 0; slot < layout.slots(); ++slot) {
      std::string wrong = check_slot(area, layout, expected, qp, slot, counts[qp]);
      if (!wrong.empty()) return wrong;
    }
  }
  return {};
}

}  // namespace mrc::tool::perf
