// How the memory of the simulated hosts is laid out: the same for all, so that addresses alone tell
// which bytes of which task they hold.
#pragma once

#include <cstdint>

#include "base/types.h"

namespace mrc::sim {

using TaskId = std::uint32_t;

// Task t owns the addresses from task_address(t) on.
inline constexpr unsigned kTaskAddressBits = 36;
constexpr std::uint64_t task_address(TaskId task) {
  return (std::uint64_t{task} + 1) << kTaskAddressBits;
}
constexpr TaskId task_of_address(std::uint64_t address) {
  return static_cast<TaskId>((address >> kTaskAddressBits) - 1);
}

// All memory of a host is one region with this key.
inline constexpr Rkey kMemoryKey{0x6D72'6321};

}  // namespace mrc::sim
