#include "dst/alloc_guard.h"

#include <cstdlib>
#include <new>

namespace {

// The program has one thread per process.
bool on_packet_path = false;
std::uint64_t allocations = 0;

// A place for a debugger's breakpoint: who was it?
[[gnu::noinline]] void note_allocation() { ++allocations; }

void* allocate(std::size_t size) {
  if (on_packet_path) note_allocation();
  void* memory = std::malloc(size == 0 ? 1 : size);
  if (memory == nullptr) std::abort();
  return memory;
}

void* allocate_aligned(std::size_t size, std::align_val_t alignment) {
  if (on_packet_path) note_allocation();
  const auto align = static_cast<std::size_t>(alignment);
  void* memory = std::aligned_alloc(align, (size + align - 1) / align * align);
  if (memory == nullptr) std::abort();
  return memory;
}

void release(void* memory) { std::free(memory); }

}  // namespace

void* operator new(std::size_t size) { return allocate(size); }
void* operator new[](std::size_t size) { return allocate(size); }
void* operator new(std::size_t size, std::align_val_t align) {
  return allocate_aligned(size, align);
}
void* operator new[](std::size_t size, std::align_val_t align) {
  return allocate_aligned(size, align);
}
void operator delete(void* memory) noexcept { release(memory); }
void operator delete[](void* memory) noexcept { release(memory); }
void operator delete(void* memory, std::size_t) noexcept { release(memory); }
void operator delete[](void* memory, std::size_t) noexcept { release(memory); }
void operator delete(void* memory, std::align_val_t) noexcept { release(memory); }
void operator delete[](void* memory, std::align_val_t) noexcept { release(memory); }
void operator delete(void* memory, std::size_t, std::align_val_t) noexcept { release(memory); }
void operator delete[](void* memory, std::size_t, std::align_val_t) noexcept { release(memory); }

namespace mrc::dst {

PacketPathGuard::PacketPathGuard() { on_packet_path = true; }
PacketPathGuard::~PacketPathGuard() { on_packet_path = false; }

std::uint64_t packet_path_allocations() { return allocations; }

}  // namespace mrc::dst
