// Random numbers from the kernel, for keys and numbers that peers must not guess.
#pragma once

#include <cstdint>

#include "core/memory_table.h"

namespace mrc::nic {

class KernelRandom final : public core::RandomSource {
 public:
  std::uint32_t next32() override;
  std::uint64_t next64() { return (std::uint64_t{next32()} << 32) | next32(); }
};

}  // namespace mrc::nic
