// Registered memory: who may write where. Checked for the whole packet before its first byte lands.
#pragma once

#include <cstdint>
#include <vector>

#include "base/result.h"
#include "base/types.h"

namespace mrc::core {

// The caller's generator. Keys must not be guessable, so the source should be cryptographic.
class RandomSource {
 public:
  virtual ~RandomSource() = default;
  virtual std::uint32_t next32() = 0;
};

struct MemoryRegion {
  std::uint64_t address = 0;  // as peers name it
  std::uint64_t length = 0;
  ProtectionDomain domain{};
  bool remote_write = false;
};

// All memory is taken by the constructor. Keys use all 32 bits, 0 included: a peer that guesses
// hits one of size() live keys with a chance of size() / 2^32 per packet.
class MemoryTable {
 public:
  explicit MemoryTable(unsigned capacity);

  // Refuses a region that wraps around the address space (its last byte may be the last of all) and
  // a full table. A region of length 0 is registered like any other and lets nobody write anything.
  // A key in use, or one that marks sends, is drawn again, at most kMaxKeyDraws times in all; after
  // that the generator is not random and the region is refused.
  Result<Rkey> add(const MemoryRegion& region, RandomSource& random);
  // With a key that the caller has: one that another table drew. Refused when it is in use here.
  Result<Rkey> add(const MemoryRegion& region, Rkey key);
  Status remove(Rkey key);

  // True when `length` bytes at `address` may be written by a peer of `domain` that shows `key`.
  // A length of 0 needs the key as well; its address may be the end of the region.
  bool allows_write(ProtectionDomain domain, Rkey key, std::uint64_t address,
                    std::uint32_t length) const;

  unsigned size() const { return size_; }

  static constexpr unsigned kMaxKeyDraws = 16;

 private:
  struct Slot {
    MemoryRegion region;
    Rkey key{};
    bool used = false;
  };
  Status check(const MemoryRegion& region) const;
  const Slot* find(Rkey key) const;
  std::size_t home(Rkey key) const;
  std::size_t next(std::size_t index) const { return (index + 1) & (slots_.size() - 1); }
  void insert(Rkey key, const MemoryRegion& region);
  void close_gap(std::size_t gap);

  // Open addressing with linear probing; a power of two, at most half full.
  std::vector<Slot> slots_;
  unsigned capacity_;
  unsigned size_ = 0;
};

}  // namespace mrc::core
