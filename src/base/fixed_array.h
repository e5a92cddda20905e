// An array whose length is chosen once. Two words where a vector has three, which counts where
// there are hundreds of thousands of them; indices are checked.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <type_traits>
#include <utility>

#include "base/assert.h"

namespace mrc {

template <typename T>
class FixedArray {
  static_assert(std::is_trivially_destructible_v<T>);

 public:
  FixedArray() = default;
  explicit FixedArray(std::size_t size) : FixedArray(size, T{}) {}
  FixedArray(std::size_t size, const T& value) : size_(static_cast<std::uint32_t>(size)) {
    MRC_ASSERT(size == size_);
    if (size == 0) return;
    items_ = std::allocator<T>().allocate(size);
    std::uninitialized_fill_n(items_, size, value);
  }
  FixedArray(FixedArray&& other) noexcept
      : items_(std::exchange(other.items_, nullptr)), size_(std::exchange(other.size_, 0)) {}
  FixedArray& operator=(FixedArray&& other) noexcept {
    std::swap(items_, other.items_);
    std::swap(size_, other.size_);
    return *this;
  }
  ~FixedArray() {
    if (items_ != nullptr) std::allocator<T>().deallocate(items_, size_);
  }

  bool empty() const { return size_ == 0; }
  std::size_t size() const { return size_; }
  std::size_t memory_bytes() const { return size_ * sizeof(T); }
  T& operator[](std::size_t i) {
    MRC_ASSERT(i < size_);
    return items_[i];
  }
  const T& operator[](std::size_t i) const {
    MRC_ASSERT(i < size_);
    return items_[i];
  }
  T* begin() { return items_; }
  T* end() { return items_ + size_; }
  const T* begin() const { return items_; }
  const T* end() const { return items_ + size_; }

 private:
  T* items_ = nullptr;
  std::uint32_t size_ = 0;
};

}  // namespace mrc
