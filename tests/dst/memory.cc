#include "dst/memory.h"

#include <algorithm>
#include <cinttypes>

#include "dst/failure.h"
#include "dst/pattern.h"
#include "dst/random.h"

namespace mrc::dst {

std::size_t HostMemory::add_region(const core::MemoryRegion& region) {
  const std::size_t index = regions_.size();
  Region added{.what = region, .key = std::nullopt, .image = {}, .reference = {}};
  added.image.resize(region.length + 2 * kGuardBytes);
  fill_pattern(mix64(background_key_ + index), 0, added.image);
  added.reference = added.image;
  regions_.push_back(std::move(added));
  return index;
}

void HostMemory::set_key(std::size_t index, Rkey key) { regions_[index].key = key; }

void HostMemory::invalidate(std::size_t index) { regions_[index].key.reset(); }

bool HostMemory::allows_write(ProtectionDomain domain, Rkey key, std::uint64_t address,
                              std::uint32_t length) const {
  return std::any_of(regions_.begin(), regions_.end(), [&](const Region& r) {
    const std::uint64_t into = address - r.what.address;
    return r.key == key && r.what.domain == domain && r.what.remote_write &&
           address >= r.what.address && into <= r.what.length && length <= r.what.length - into;
  });
}

std::optional<HostMemory::Location> HostMemory::locate(std::uint64_t address,
                                                       std::uint32_t length) const {
  for (std::size_t i = 0; i < regions_.size(); ++i) {
    const auto& what = regions_[i].what;
    const std::uint64_t into = address - what.address;
    if (address >= what.address && into <= what.length && length <= what.length - into) {
      return Location{i, static_cast<std::size_t>(kGuardBytes + into)};
    }
  }
  return std::nullopt;
}

std::span<std::byte> HostMemory::placement(std::uint64_t address, std::uint32_t length) {
  const auto at = locate(address, length);
  MRC_CHECK(at.has_value(), "placement of %u bytes at %#" PRIx64 " lies in no region", length,
            address);
  return std::span(regions_[at->region].image).subspan(at->offset, length);
}

std::span<std::byte> HostMemory::reference(std::uint64_t address, std::uint32_t length) {
  const auto at = locate(address, length);
  MRC_CHECK(at.has_value(), "model: %u bytes at %#" PRIx64 " lie in no region", length, address);
  return std::span(regions_[at->region].reference).subspan(at->offset, length);
}

std::span<const std::byte> HostMemory::bytes(std::uint64_t address, std::uint32_t length) const {
  const auto at = locate(address, length);
  MRC_CHECK(at.has_value(), "model: %u bytes at %#" PRIx64 " lie in no region", length, address);
  return std::span(regions_[at->region].image).subspan(at->offset, length);
}

void HostMemory::check_image(unsigned host) const {
  for (const Region& region : regions_) {
    const auto at =
        std::mismatch(region.image.begin(), region.image.end(), region.reference.begin()).first;
    const auto offset = at - region.image.begin();
    MRC_CHECK(at == region.image.end(),
              "memory of host %u differs from the reference at %#" PRIx64 " (byte %td of region)",
              host, region.what.address + static_cast<std::uint64_t>(offset) - kGuardBytes,
              static_cast<std::ptrdiff_t>(offset) - static_cast<std::ptrdiff_t>(kGuardBytes));
  }
}

void HostMemory::check_guards(unsigned host) const {
  for (const Region& region : regions_) {
    const auto& image = region.image;
    const auto guard = static_cast<std::ptrdiff_t>(kGuardBytes);
    const bool intact =
        std::equal(image.begin(), image.begin() + guard, region.reference.begin()) &&
        std::equal(image.end() - guard, image.end(), region.reference.end() - guard);
    MRC_CHECK(intact, "guard zone of region %#" PRIx64 " of host %u was written",
              region.what.address, host);
  }
}

}  // namespace mrc::dst
