// An array that only grows, for millions of small records. Growth moves pages instead of copying
// bytes where the system can, so the peak stays at what is in use. Growing invalidates references.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <new>
#include <type_traits>

#include "base/assert.h"

namespace mrc::sim {

template <typename T>
class GrowingArray {
  static_assert(std::is_trivially_copyable_v<T> && std::is_trivially_destructible_v<T>);

 public:
  GrowingArray() = default;
  ~GrowingArray() { std::free(items_); }
  GrowingArray(const GrowingArray&) = delete;
  GrowingArray& operator=(const GrowingArray&) = delete;

  std::uint32_t size() const { return size_; }
  T& operator[](std::uint32_t i) { return items_[i]; }
  const T& operator[](std::uint32_t i) const { return items_[i]; }

  // The position of a new item, whose value is that of a default T.
  std::uint32_t add() {
    if (size_ == capacity_) grow();
    new (items_ + size_) T{};
    return size_++;
  }

 private:
  // Large enough to get pages of its own from the start: what is not used costs nothing, and a
  // small one would grow among other things and leave holes as large as itself.
  static constexpr std::size_t kFirstBytes = std::size_t{1} << 20;

  void grow() {
    const std::size_t wanted =
        capacity_ == 0 ? kFirstBytes / sizeof(T) : std::size_t{capacity_} + capacity_ / 2;
    MRC_ASSERT(wanted < 0xFFFF'FFFF);
    void* bigger = std::realloc(static_cast<void*>(items_), wanted * sizeof(T));
    if (bigger == nullptr) throw std::bad_alloc();
    items_ = static_cast<T*>(bigger);
    capacity_ = static_cast<std::uint32_t>(wanted);
  }

  T* items_ = nullptr;
  std::uint32_t size_ = 0;
  std::uint32_t capacity_ = 0;
};

}  // namespace mrc::sim
