// The memory of one host: registered regions with guard zones, a reference image beside them, and
// an independent statement of which remote writes are legal.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "base/types.h"
#include "core/memory_table.h"

namespace mrc::dst {

// Bytes on either side of a region that nobody may ever touch.
inline constexpr std::uint64_t kGuardBytes = 64;

class HostMemory {
 public:
  explicit HostMemory(std::uint64_t background_key) : background_key_(background_key) {}

  // Makes room for a region; returns its index. The caller registers it and tells the key.
  std::size_t add_region(const core::MemoryRegion& region);
  void set_key(std::size_t index, Rkey key);
  void invalidate(std::size_t index);

  struct Region {
    core::MemoryRegion what;
    std::optional<Rkey> key;       // while registered
    std::vector<std::byte> image;  // guard, region, guard
    std::vector<std::byte> reference;
  };
  const Region& region(std::size_t index) const { return regions_[index]; }
  std::size_t size() const { return regions_.size(); }

  // Whether a peer of `domain` that shows `key` may write there now.
  bool allows_write(ProtectionDomain domain, Rkey key, std::uint64_t address,
                    std::uint32_t length) const;

  // What the driver of the engine does with a placement. Fails when it leaves all regions.
  std::span<std::byte> placement(std::uint64_t address, std::uint32_t length);
  // The same bytes in the reference image, for the model to fill.
  std::span<std::byte> reference(std::uint64_t address, std::uint32_t length);
  std::span<const std::byte> bytes(std::uint64_t address, std::uint32_t length) const;

  // Fails unless both images are equal, guard zones included.
  void check_image(unsigned host) const;
  void check_guards(unsigned host) const;

 private:
  // The region that holds the range, and where in its image the range starts.
  struct Location {
    std::size_t region;
    std::size_t offset;
  };
  std::optional<Location> locate(std::uint64_t address, std::uint32_t length) const;

  std::vector<Region> regions_;
  std::uint64_t background_key_;
};

}  // namespace mrc::dst
