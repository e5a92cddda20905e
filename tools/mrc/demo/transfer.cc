#include "demo/transfer.h"

#include <algorithm>
#include <cstring>

#include "base/assert.h"
#include "base/prng.h"

namespace mrc::demo {
namespace {

constexpr std::size_t kGuardBytes = 64;
constexpr std::byte kGuard{0xA5};
// An address is the number of the peer and an offset.
constexpr unsigned kPeerShift = 40;
constexpr std::uint64_t kOffsetMask = (std::uint64_t{1} << kPeerShift) - 1;

void fill(std::vector<std::byte>& bytes, Prng& prng) {
  for (std::size_t i = 0; i < bytes.size(); i += sizeof(std::uint64_t)) {
    const std::uint64_t value = prng.next64();
    std::memcpy(&bytes[i], &value, std::min(sizeof value, bytes.size() - i));
  }
}

}  // namespace

HostMemory::HostMemory(const TransferPlan& plan, unsigned self, std::uint64_t seed)
    : outgoing_(plan.hosts()), incoming_(plan.hosts()) {
  Prng prng(seed);
  for (unsigned peer = 0; peer < plan.hosts(); ++peer) {
    if (peer == self) continue;
    outgoing_[peer].resize(plan.flow_bytes());
    fill(outgoing_[peer], prng);
    incoming_[peer].assign(plan.flow_bytes() + 2 * kGuardBytes, kGuard);
  }
}

std::uint64_t HostMemory::send_address(unsigned peer, std::uint64_t offset) {
  return (std::uint64_t{peer} << kPeerShift) + offset;
}

std::uint64_t HostMemory::receive_address(unsigned peer, std::uint64_t offset) {
  return (std::uint64_t{peer + 1} << kPeerShift) + offset;
}

std::span<const std::byte> HostMemory::payload(std::uint64_t address, std::uint32_t length) const {
  return std::span(outgoing_.at(address >> kPeerShift)).subspan(address & kOffsetMask, length);
}

void HostMemory::place(std::uint64_t address, std::span<const std::byte> bytes) {
  std::vector<std::byte>& area = incoming_.at((address >> kPeerShift) - 1);
  const std::size_t at = kGuardBytes + (address & kOffsetMask);
  MRC_ASSERT(at + bytes.size() <= area.size());
  std::memcpy(&area[at], bytes.data(), bytes.size());
}

std::uint64_t HostMemory::wrong_bytes(unsigned peer, std::uint64_t offset,
                                      std::span<const std::byte> expected) const {
  const std::byte* found = &incoming_[peer][kGuardBytes + offset];
  if (std::memcmp(found, expected.data(), expected.size()) == 0) return 0;
  std::uint64_t wrong = 0;
  for (std::size_t i = 0; i < expected.size(); ++i)
    wrong += found[i] != expected[i] ? 1 : 0;
  return wrong;
}

std::uint64_t HostMemory::damaged_guards() const {
  std::uint64_t damaged = 0;
  for (const std::vector<std::byte>& area : incoming_) {
    if (area.empty()) continue;
    const auto bytes = std::span(area);
    for (const auto guard : {bytes.first(kGuardBytes), bytes.last(kGuardBytes)}) {
      for (const std::byte b : guard)
        damaged += b != kGuard ? 1 : 0;
    }
  }
  return damaged;
}

}  // namespace mrc::demo
