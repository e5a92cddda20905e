// Payload that depends on its position: every byte of every message of a run is different noise, so
// that misplaced, swapped or stale data cannot pass for the right data.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace mrc::dst {

// The bytes of the stream `key` from `offset` on.
void fill_pattern(std::uint64_t key, std::uint64_t offset, std::span<std::byte> out);

// The first position in `bytes` that differs from the pattern, bytes.size() when none does.
std::size_t first_difference(std::uint64_t key, std::uint64_t offset,
                             std::span<const std::byte> bytes);

}  // namespace mrc::dst
