// Registered memory of this process by local key.
//
// Posting threads look keys up without a lock; adding and removing happen under the engine lock. A
// look-up that races with the removal of its region fails or succeeds as if it had come before or
// after. The engine checks a key once more, under its lock, when it is about to read or write the
// memory, so a region that is gone is never touched.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <unordered_map>
#include <vector>

#include "os/kernel_random.h"

namespace mrc::nic {

struct Region {
  const std::byte* address = nullptr;
  std::size_t length = 0;
  std::uint32_t domain = 0;
  bool local_write = false;
  std::uint64_t io_address = 0;  // as peers name it
  std::uint32_t remote_key = 0;
};

class RegionTable {
 public:
  static constexpr unsigned kMaxRegions = 1U << 15;

  ~RegionTable();

  // A local key, never 0; 0 when the table is full.
  std::uint32_t add(const Region& region, os::KernelRandom& random);
  // False: no such key.
  bool find(std::uint32_t local_key, Region& out) const;
  bool remove(std::uint32_t local_key);

  // Any thread: whether the key covers these bytes, for reading or for writing.
  bool covers(std::uint32_t local_key, std::uint32_t domain, const std::byte* address,
              std::uint32_t length, bool for_writing) const;
  // Whether the key is still the one that passed covers().
  bool alive(std::uint32_t local_key) const {
    const Slot* slot = slot_of(local_key);
    return slot != nullptr && slot->key.load(std::memory_order_relaxed) == local_key;
  }

  // Where a peer's address lies in this process. Regions registered under their own addresses need
  // no entry here.
  std::byte* locate(std::uint32_t remote_key, std::uint64_t io_address) const;

  unsigned size() const { return used_; }

 private:
  static constexpr unsigned kIndexBits = 15;
  static constexpr unsigned kChunk = 256;
  static_assert(kMaxRegions == 1U << kIndexBits);

  struct Slot {
    std::atomic<std::uint32_t> key{0};  // 0 = free
    std::atomic<const std::byte*> address{nullptr};
    std::atomic<std::size_t> length{0};
    std::atomic<std::uint32_t> domain{0};
    std::atomic<bool> local_write{false};
    std::uint64_t io_address = 0;
    std::uint32_t remote_key = 0;
  };
  using Chunk = std::array<Slot, kChunk>;

  Slot* slot_of(std::uint32_t local_key) const {
    const std::uint32_t index = local_key & (kMaxRegions - 1);
    Chunk* chunk = chunks_[index / kChunk].load(std::memory_order_acquire);
    return chunk == nullptr ? nullptr : &(*chunk)[index % kChunk];
  }

  std::array<std::atomic<Chunk*>, kMaxRegions / kChunk> chunks_{};
  std::vector<std::uint32_t> free_;
  std::uint32_t made_ = 0;  // indexes handed out so far
  unsigned used_ = 0;
  std::unordered_map<std::uint32_t, std::uint64_t> moved_;  // remote key -> what to add
};

}  // namespace mrc::nic
