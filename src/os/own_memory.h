// What this process may do with its own memory, as the kernel has it.
#pragma once

#include <cstddef>
#include <cstdint>

namespace mrc::os {

enum class MemoryUse : std::uint8_t { kRead, kWrite };

// Whether all of it is mapped and may be used so at this moment; touches none of it. Where /proc
// is missing, rights are taken for granted. Reads the list of mappings: for set-up, not for
// packets.
bool may_use(const void* start, std::size_t length, MemoryUse use);

}  // namespace mrc::os
