#include "perf/memory.h"

#include <fmt/core.h>
#include <sys/mman.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "failure.h"

namespace mrc::tool::perf {
namespace {

constexpr std::size_t kLineBytes = 64;
constexpr std::size_t kGuardBytes = 64;
// In flight per queue pair: covers 400 Gb/s and 80 us, and stays in the caches of most machines.
constexpr std::uint64_t kInFlightBytes = std::uint64_t{4} << 20;
constexpr std::uint64_t kMaxAreaBytes = std::uint64_t{4} << 30;

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

}  // namespace mrc::tool::perf
