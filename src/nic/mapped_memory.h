// Whether the program's memory is still there.
//
// A network card holds on to registered pages; we read and write them when packets leave and
// arrive. A program that unmapped a buffer which is still registered or has work outstanding loses
// that work, not its life. Whoever unmaps between the question and the use is beyond help
// (docs/adr/0018-unmapped-memory.md).
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace mrc::nic {

class MappedMemory {
 public:
  // Asks the kernel, some pages ahead, and remembers the answer until forget().
  bool holds(std::span<const std::byte> bytes);
  void forget() { end_ = begin_ = 0; }

 private:
  std::uintptr_t begin_ = 0;
  std::uintptr_t end_ = 0;
};

}  // namespace mrc::nic
