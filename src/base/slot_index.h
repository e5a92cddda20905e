// From a key to a slot number: open addressing, fixed capacity, no allocation after construction.
#pragma once

#include <bit>
#include <cstdint>

#include "base/assert.h"
#include "base/fixed_array.h"

namespace mrc {

// `Key` needs == and a hash given as `Hash{}(key) -> uint64_t`. The table is at most half full, so
// probe chains stay short; removal shifts later entries back and leaves no tombstones.
template <typename Key, typename Hash>
class SlotIndex {
 public:
  static constexpr std::uint32_t kNone = 0xFFFF'FFFF;

  SlotIndex() = default;
  explicit SlotIndex(std::uint32_t capacity)
      : entries_(std::bit_ceil(capacity * 2)), capacity_(capacity) {}

  std::uint32_t find(const Key& key) const {
    for (std::size_t i = home(key);; i = next(i)) {
      if (entries_[i].slot == kNone) return kNone;
      if (entries_[i].key == key) return entries_[i].slot;
    }
  }

  // The key must not be present.
  void insert(const Key& key, std::uint32_t slot) {
    MRC_ASSERT(size_ < capacity_);
    std::size_t i = home(key);
    while (entries_[i].slot != kNone)
      i = next(i);
    entries_[i] = {key, slot};
    ++size_;
  }

  void erase(const Key& key) {
    std::size_t hole = home(key);
    while (entries_[hole].slot != kNone && !(entries_[hole].key == key))
      hole = next(hole);
    if (entries_[hole].slot == kNone) return;
    for (std::size_t i = next(hole); entries_[i].slot != kNone; i = next(i)) {
      if (distance(home(entries_[i].key), i) >= distance(hole, i)) {
        entries_[hole] = entries_[i];
        hole = i;
      }
    }
    entries_[hole].slot = kNone;
    --size_;
  }

 private:
  struct Entry {
    Key key{};
    std::uint32_t slot = kNone;
  };

  std::size_t home(const Key& key) const { return Hash{}(key) & (entries_.size() - 1); }
  std::size_t next(std::size_t i) const { return (i + 1) & (entries_.size() - 1); }
  std::size_t distance(std::size_t from, std::size_t to) const {
    return (to - from) & (entries_.size() - 1);
  }

  FixedArray<Entry> entries_;
  std::uint32_t capacity_ = 0;
  std::uint32_t size_ = 0;
};

}  // namespace mrc
