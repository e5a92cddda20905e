// Places in the endpoint's tables of queue pairs and peers.
#pragma once

#include <cstdint>

namespace mrc::core {

inline constexpr std::uint32_t kNoSlot = 0xFFFF'FFFF;

}  // namespace mrc::core
