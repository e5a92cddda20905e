// Random numbers from the kernel, for keys and numbers that peers must not guess.
#pragma once

#include <cstdint>

namespace mrc::os {

class KernelRandom {
 public:
  std::uint32_t next32();
  std::uint64_t next64() { return (std::uint64_t{next32()} << 32) | next32(); }
};

}  // namespace mrc::os
