#include "alloc/counting_new.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <new>

namespace {

std::uint64_t allocations = 0;
std::size_t live = 0;

// The size stands right in front of the block, in a place as large as its alignment.
void* allocate(std::size_t size, std::size_t alignment) {
  const std::size_t front = std::max(alignment, alignof(std::max_align_t));
  const std::size_t whole = (front + size + front - 1) / front * front;
  char* memory = static_cast<char*>(std::aligned_alloc(front, whole));
  if (memory == nullptr) std::abort();
  std::memcpy(memory + front - sizeof size, &size, sizeof size);
  ++allocations;
  live += size;
  return memory + front;
}

void release(void* block, std::size_t alignment) {
  if (block == nullptr) return;
  const std::size_t front = std::max(alignment, alignof(std::max_align_t));
  std::size_t size = 0;
  std::memcpy(&size, static_cast<char*>(block) - sizeof size, sizeof size);
  live -= size;
  std::free(static_cast<char*>(block) - front);
}

}  // namespace

void* operator new(std::size_t size) { return allocate(size, 1); }
void* operator new[](std::size_t size) { return allocate(size, 1); }
void* operator new(std::size_t size, std::align_val_t align) {
  return allocate(size, static_cast<std::size_t>(align));
}
void* operator new[](std::size_t size, std::align_val_t align) {
  return allocate(size, static_cast<std::size_t>(align));
}
void operator delete(void* block) noexcept { release(block, 1); }
void operator delete[](void* block) noexcept { release(block, 1); }
void operator delete(void* block, std::size_t) noexcept { release(block, 1); }
void operator delete[](void* block, std::size_t) noexcept { release(block, 1); }
void operator delete(void* block, std::align_val_t align) noexcept {
  release(block, static_cast<std::size_t>(align));
}
void operator delete[](void* block, std::align_val_t align) noexcept {
  release(block, static_cast<std::size_t>(align));
}
void operator delete(void* block, std::size_t, std::align_val_t align) noexcept {
  release(block, static_cast<std::size_t>(align));
}
void operator delete[](void* block, std::size_t, std::align_val_t align) noexcept {
  release(block, static_cast<std::size_t>(align));
}

namespace mrc::test {

std::uint64_t allocation_count() { return allocations; }
std::size_t live_bytes() { return live; }

}  // namespace mrc::test
