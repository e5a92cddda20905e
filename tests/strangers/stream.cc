#include "strangers/stream.h"

#include <algorithm>
#include <cstring>

#include "strangers/tally.h"

namespace mrc::strangers {
namespace {

constexpr std::size_t kMemory = test::Pair::kMemoryBytes;
constexpr std::uint64_t kBase = 0x10000;  // of the memory, as peers name it
constexpr std::uint32_t kMessageBytes = Stream::kMtu * Stream::kPacketsEach;
constexpr std::uint64_t kUnderWay = 4;
// Messages are read from the first half of a memory and land in places of the second.
constexpr std::uint64_t kPlaces = 64;
constexpr std::size_t kFirstPlace = kMemory / 2;
constexpr std::size_t kSources = kMemory / 2 - kMessageBytes;
constexpr std::size_t kRemembered = 1 << 16;
constexpr std::uint32_t kLostOneIn = 1000;
constexpr unsigned kEvs = 32;

test::PairOptions options(Psn first) {
  return {.evs = kEvs,
          .mtu = Stream::kMtu,
          .window_units = Stream::kWindow / core::kWindowUnitPsns,
          .first_psn = first};
}

// Longer than any packet is under way.
constexpr DurationNs kArrivesWithin = 20 * kMicrosecondNs;

std::size_t source_of(std::uint64_t message) { return message * 4096 % kSources; }

bool is_empty(const std::byte* bytes, std::size_t length) {
  return bytes[0] == std::byte{0} && std::memcmp(bytes, bytes + 1, length - 1) == 0;
}

}  // namespace

Stream::Stream(std::uint64_t seed, Psn first)
    : first_(first), losses_(seed), pair_(options(first)) {
  for (const int side : {0, 1}) {
    std::vector<std::byte>& memory = pair_.side(side).memory;
    Prng pattern(seed + static_cast<std::uint64_t>(side));
    std::generate_n(memory.begin(), kFirstPlace,
                    [&] { return static_cast<std::byte>(pattern.next32() | 1); });
    std::fill(memory.begin() + kFirstPlace, memory.end(), std::byte{0});
  }
  seen_.reserve(kRemembered);
  pair_.deliver = [this](int from, const core::TxPacket& packet) {
    if (losses_.below(kLostOneIn) == 0) return false;
    Seen seen{.at = pair_.now() + kArrivesWithin,
              .to = 1 - from,
              .arrival = test::arrival_of(packet, address_of(from)),
              .packet = packet.packet};
    if (seen_.size() < kRemembered) {
      seen_.push_back(seen);
    } else {
      seen_[next_seen_++ % kRemembered] = seen;
    }
    return true;
  };
}

core::Arrival Stream::arrival_at(int side, Prng& prng) {
  const std::uint32_t ev = prng.below(kEvs);
  return {.source = address_of(1 - side),
          .port = static_cast<PortId>(ev % test::PairOptions{}.ports + 1),
          .entropy = 0x1000 + ev,
          .payload_length = 0};
}

std::byte* Stream::place(int side, std::uint64_t message) {
  return pair_.side(side).memory.data() + kFirstPlace + message % kPlaces * kMessageBytes;
}

void Stream::post(int side) {
  End& end = ends_[side];
  while (!over_ && end.posted < end.completed + kUnderWay) {
    const std::uint64_t message = end.posted;
    std::byte* target = place(1 - side, message);
    if (!is_empty(target, kMessageBytes)) broken("a byte landed after its message was complete");
    const auto offset = static_cast<std::uint64_t>(target - pair_.side(1 - side).memory.data());
    const Status posted = pair_.endpoint(side).post_send(pair_.now(), test::Pair::kQp,
                                                         {.id = message,
                                                          .local_address = source_of(message),
                                                          .length = kMessageBytes,
                                                          .remote_address = kBase + offset,
                                                          .remote_key = pair_.side(1 - side).key});
    if (!posted.ok()) broken(std::string("a message cannot be posted: ") + posted.what());
    ++end.posted;
  }
  settle(side);
}

void Stream::collect(int side) {
  auto& completions = pair_.side(side).completions;
  for (const core::Completion& completion : completions) {
    End& end = ends_[side];
    if (completion.status != core::CompletionStatus::kSuccess)
      broken("a message failed, or a queue pair was ended");
    if (completion.id != end.completed) broken("a completion came twice or out of its turn");
    std::byte* target = place(1 - side, completion.id);
    const std::byte* source = pair_.side(side).memory.data() + source_of(completion.id);
    if (std::memcmp(target, source, kMessageBytes) != 0) broken("a message has a wrong byte");
    std::memset(target, 0, kMessageBytes);
    ++end.completed;
  }
  completions.clear();
  pair_.side(side).events.clear();
}

void Stream::advance(DurationNs duration) {
  for (const int side : {0, 1}) {
    collect(side);
    post(side);
  }
  pair_.run_until(pair_.now() + duration);
}

DropReason Stream::hand(int to, const core::Arrival& arrival, const wire::Packet& packet) {
  DropReason drop = DropReason::kNone;
  pair_.side(to).driver.deliver(pair_.now(), arrival, packet, [&](const core::RxResult& result) {
    if (result.placement.length != 0) broken("a byte of a stranger would land");
    drop = result.drop;
  });
  return drop;
}

void Stream::finish() {
  over_ = true;
  for (int round = 0; round < 1'000 && (ends_[0].completed < ends_[0].posted ||
                                        ends_[1].completed < ends_[1].posted);
       ++round) {
    advance(kMillisecondNs);
  }
  for (const int side : {0, 1}) {
    if (ends_[side].completed < ends_[side].posted) broken("a message is held up for a second");
    if (status(side).state != core::QpState::kReadyToSend) broken("a queue pair was ended");
    const std::vector<std::byte>& memory = pair_.side(side).memory;
    if (!is_empty(memory.data() + kFirstPlace, kMemory - kFirstPlace))
      broken("a byte landed where no message was sent to");
  }
}

const Stream::Seen* Stream::old_packet(Prng& prng) const {
  if (seen_.empty()) return nullptr;
  const Seen& seen = seen_[prng.below(static_cast<std::uint32_t>(seen_.size()))];
  return seen.at <= pair_.now() ? &seen : nullptr;
}

}  // namespace mrc::strangers
