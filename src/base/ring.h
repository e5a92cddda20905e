// A first-in first-out queue of fixed capacity. Storage is taken once, at construction.
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/assert.h"
#include "base/fixed_array.h"

namespace mrc {

template <typename T>
class Ring {
 public:
  Ring() = default;
  explicit Ring(std::size_t capacity) : items_(capacity) {}

  std::size_t capacity() const { return items_.size(); }
  std::size_t size() const { return size_; }
  bool empty() const { return size_ == 0; }
  bool full() const { return size_ == items_.size(); }

  // False when full.
  bool push_back(const T& item) {
    if (full()) return false;
    items_[position(size_)] = item;
    ++size_;
    return true;
  }
  T& front() {
    MRC_ASSERT(!empty());
    return items_[head_];
  }
  const T& front() const {
    MRC_ASSERT(!empty());
    return items_[head_];
  }
  T& at(std::size_t i) {
    MRC_ASSERT(i < size_);
    return items_[position(i)];
  }
  const T& at(std::size_t i) const {
    MRC_ASSERT(i < size_);
    return items_[position(i)];
  }
  void pop_front() {
    MRC_ASSERT(!empty());
    head_ = static_cast<std::uint32_t>(position(1));
    --size_;
  }
  void clear() { size_ = 0; }

 private:
  std::size_t position(std::size_t i) const {
    const std::size_t p = std::size_t{head_} + i;
    return p < items_.size() ? p : p - items_.size();
  }

  FixedArray<T> items_;
  std::uint32_t head_ = 0;
  std::uint32_t size_ = 0;
};

}  // namespace mrc
