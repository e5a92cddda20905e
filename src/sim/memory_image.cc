#include "sim/memory_image.h"

#include "base/prng.h"

namespace mrc::sim {

std::uint8_t MemoryImage::pattern(TaskId task, std::uint64_t offset) {
  const std::uint64_t word = mix64((std::uint64_t{task} << 40) ^ (offset >> 3));
  // Never zero, which is what memory holds that nobody wrote.
  return static_cast<std::uint8_t>((word >> (8 * (offset & 7))) | 1);
}

void MemoryImage::place(const Placed& placed, std::uint64_t task_bytes) {
  const TaskId task = task_of_address(placed.to);
  const std::uint64_t offset = placed.to - task_address(task);
  if (placed.from != placed.to || task >= placed_.size() || offset + placed.bytes > task_bytes) {
    wrong_ += placed.bytes;
    return;
  }
  placed_[task] += placed.bytes;
  if (!with_bytes_) return;
  std::vector<std::uint8_t>& memory = bytes_[task];
  memory.resize(task_bytes);
  const TaskId sent = task_of_address(placed.from);
  const std::uint64_t sent_offset = placed.from - task_address(sent);
  for (std::uint32_t i = 0; i < placed.bytes; ++i)
    memory[offset + i] = pattern(sent, sent_offset + i);
}

void MemoryImage::check(TaskId task, std::uint64_t task_bytes) {
  const std::uint64_t placed = placed_[task];
  wrong_ += placed > task_bytes ? placed - task_bytes : task_bytes - placed;
  if (!with_bytes_) return;
  std::vector<std::uint8_t> memory;
  memory.swap(bytes_[task]);
  for (std::uint64_t i = 0; i < memory.size(); ++i)
    wrong_ += memory[i] != pattern(task, i) ? 1 : 0;
}

}  // namespace mrc::sim
