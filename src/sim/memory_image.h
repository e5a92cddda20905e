// The receivers' memory. With bytes it holds what was written and compares it with what was sent;
// without, it checks that every byte of a task arrived once and where it belongs.
#pragma once

#include <cstdint>
#include <vector>

#include "sim/host.h"

namespace mrc::sim {

class MemoryImage {
 public:
  MemoryImage() = default;
  MemoryImage(std::size_t tasks, bool with_bytes)
      : placed_(tasks), with_bytes_(with_bytes), bytes_(with_bytes ? tasks : 0) {}

  // Payload lands. `task_bytes` is the size of the task it belongs to.
  void place(const Placed& placed, std::uint64_t task_bytes);
  // The task is complete: counts what is wrong with it and forgets its bytes.
  void check(TaskId task, std::uint64_t task_bytes);

  std::uint64_t wrong() const { return wrong_; }

  // What the sender of a task has at an offset.
  static std::uint8_t pattern(TaskId task, std::uint64_t offset);

 private:
  std::vector<std::uint64_t> placed_;  // bytes per task
  bool with_bytes_ = false;
  std::vector<std::vector<std::uint8_t>> bytes_;
  std::uint64_t wrong_ = 0;
};

}  // namespace mrc::sim
