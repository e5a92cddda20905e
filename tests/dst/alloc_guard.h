// Counts allocations that happen while the engine is on its packet path. The program's operator new
// is replaced in alloc_guard.cc.
#pragma once

#include <cstdint>

namespace mrc::dst {

// Alive around a call into the engine that must not allocate.
class PacketPathGuard {
 public:
  PacketPathGuard();
  ~PacketPathGuard();
  PacketPathGuard(const PacketPathGuard&) = delete;
  PacketPathGuard& operator=(const PacketPathGuard&) = delete;
};

// Allocations made under a guard since the program started.
std::uint64_t packet_path_allocations();

}  // namespace mrc::dst
