// Whether the program's memory is still there.
//
// A network card holds on to registered pages; we read them when a packet leaves. A program that
// unmapped a buffer with work outstanding loses that work, not its life. Another thread that unmaps
// between the question and the reading is beyond help.
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
