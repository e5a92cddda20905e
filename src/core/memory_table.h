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

class MemoryTable {
 public:
  explicit MemoryTable(unsigned capacity);

  // Refuses a region that wraps around the address space and a full table.
  Result<Rkey> add(const MemoryRegion& region, RandomSource& random);
  Status remove(Rkey key);

  // True when `length` bytes at `address` may be written by a peer of `domain` that shows `key`.
  // A length of 0 touches nothing and needs no key.
  bool allows_write(ProtectionDomain domain, Rkey key, std::uint64_t address,
                    std::uint32_t length) const;

  unsigned size() const { return size_; }

 private:
  struct Slot {
    MemoryRegion region;
    Rkey key{};
    bool used = false;
  };
  const Slot* find(Rkey key) const;

  // Open addressing with linear probing; at most half full.
  std::vector<Slot> slots_;
  unsigned capacity_;
  unsigned size_ = 0;
};

}  // namespace mrc::core
