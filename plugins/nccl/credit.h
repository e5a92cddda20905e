// What a receiver writes into the sender's memory to say where the next message may go, and what a
// sender writes back about grouped messages. Both ends have the same byte order.
#pragma once

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>

#include "nccl_net.h"

namespace mrc::nccl {

static_assert(std::endian::native == std::endian::little);

inline constexpr unsigned kMaxGroup = 8;  // receives in one request

struct CreditEntry {
  std::uint64_t address = 0;
  std::uint64_t size = 0;
  std::uint32_t key = 0;
  std::int32_t tag = 0;
};

// For one request of the receiver; sent with the low bits of its number as the immediate, so that
// its arrival is ordered and needs no flag in memory.
struct Credit {
  std::uint64_t count = 0;
  std::array<CreditEntry, kMaxGroup> entries{};
};
static_assert(sizeof(Credit) == 200);
inline constexpr std::size_t kCreditStride = 256;

// Bytes of each message of a group; 0 where the group ends earlier.
using GroupSizes = std::array<std::uint64_t, kMaxGroup>;

// Requests of a connection are numbered from 0 on; both ends keep as many slots as NCCL may have.
inline constexpr unsigned kSlots = kMaxRequests;

// Immediates: the low bits of the request's number, and what else there is to say.
inline constexpr std::uint32_t kSequenceMask = 0x00ff'ffff;
inline constexpr std::uint32_t kSizesWritten = 0x0100'0000;  // the sizes are in the receiver's ring
inline constexpr std::uint32_t kTooLong = 0x0200'0000;       // the message did not fit

constexpr bool same_sequence(std::uint32_t immediate, std::uint64_t number) {
  return (immediate & kSequenceMask) == (number & kSequenceMask);
}

}  // namespace mrc::nccl
