#include "nic/region_table.h"

#include "base/assert.h"

namespace mrc::nic {

RegionTable::~RegionTable() {
  for (auto& chunk : chunks_)
    delete chunk.load(std::memory_order_relaxed);
}

std::uint32_t RegionTable::add(const Region& region, os::KernelRandom& random) {
  if (free_.empty()) {
    if (made_ == kMaxRegions) return 0;
    free_.reserve(made_ + 1);  // removing must not allocate
    auto& chunk = chunks_[made_ / kChunk];
    if (chunk.load(std::memory_order_relaxed) == nullptr) {
      chunk.store(new Chunk(), std::memory_order_release);
    }
    free_.push_back(made_++);
  }
  const std::uint32_t index = free_.back();
  const auto here = reinterpret_cast<std::uintptr_t>(region.address);
  if (region.io_address != here) moved_.emplace(region.remote_key, here - region.io_address);
  free_.pop_back();
  ++used_;
  Slot* place = slot_of(index);
  MRC_ASSERT(place != nullptr);
  Slot& slot = *place;
  slot.address.store(region.address, std::memory_order_relaxed);
  slot.length.store(region.length, std::memory_order_relaxed);
  slot.domain.store(region.domain, std::memory_order_relaxed);
  slot.local_write.store(region.local_write, std::memory_order_relaxed);
  slot.io_address = region.io_address;
  slot.remote_key = region.remote_key;
  std::uint32_t tag = 0;
  while (tag == 0)
    tag = random.next32() << kIndexBits;
  slot.key.store(tag | index, std::memory_order_release);
  return tag | index;
}

bool RegionTable::find(std::uint32_t local_key, Region& out) const {
  const Slot* slot = slot_of(local_key);
  if (slot == nullptr || local_key == 0 || slot->key.load() != local_key) return false;
  out = {.address = slot->address.load(std::memory_order_relaxed),
         .length = slot->length.load(std::memory_order_relaxed),
         .domain = slot->domain.load(std::memory_order_relaxed),
         .local_write = slot->local_write.load(std::memory_order_relaxed),
         .io_address = slot->io_address,
         .remote_key = slot->remote_key};
  return true;
}

bool RegionTable::remove(std::uint32_t local_key) {
  Slot* slot = slot_of(local_key);
  if (slot == nullptr || local_key == 0 || slot->key.load() != local_key) return false;
  slot->key.store(0);
  moved_.erase(slot->remote_key);
  free_.push_back(local_key & (kMaxRegions - 1));
  --used_;
  return true;
}

bool RegionTable::covers(std::uint32_t local_key, std::uint32_t domain, const std::byte* address,
                         std::uint32_t length, bool for_writing) const {
  const Slot* slot = slot_of(local_key);
  if (slot == nullptr || local_key == 0) return false;
  if (slot->key.load(std::memory_order_acquire) != local_key) return false;
  const auto start =
      reinterpret_cast<std::uintptr_t>(slot->address.load(std::memory_order_relaxed));
  const std::size_t size = slot->length.load(std::memory_order_relaxed);
  const auto at = reinterpret_cast<std::uintptr_t>(address);
  if (slot->domain.load(std::memory_order_relaxed) != domain) return false;
  if (for_writing && !slot->local_write.load(std::memory_order_relaxed)) return false;
  return at >= start && length <= size && at - start <= size - length;
}

std::byte* RegionTable::locate(std::uint32_t remote_key, std::uint64_t io_address) const {
  std::uint64_t address = io_address;
  if (!moved_.empty()) {
    const auto found = moved_.find(remote_key);
    if (found != moved_.end()) address += found->second;
  }
  // NOLINTNEXTLINE(performance-no-int-to-ptr): addresses travel as numbers.
  return reinterpret_cast<std::byte*>(static_cast<std::uintptr_t>(address));
}

}  // namespace mrc::nic
