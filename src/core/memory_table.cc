#include "core/memory_table.h"

#include <algorithm>
#include <bit>
#include <limits>

#include "base/planted_bug.h"
#include "core/work.h"

namespace mrc::core {

namespace {

bool wraps(const MemoryRegion& region) {
  return region.length != 0 &&
         region.address > std::numeric_limits<std::uint64_t>::max() - (region.length - 1);
}

// Written without any sum of address and length, which could pass 2^64.
bool covers(const MemoryRegion& region, std::uint64_t address, std::uint64_t length) {
  if (address < region.address) return false;
  const std::uint64_t offset = address - region.address;
  if (MRC_BUG(kMemoryOffByOneEnd) && length > 0) length -= 1;
  return offset <= region.length && length <= region.length - offset;
}

}  // namespace

MemoryTable::MemoryTable(unsigned capacity)
    : slots_(std::bit_ceil(std::size_t{2} * std::max(capacity, 1U))), capacity_(capacity) {}

Status MemoryTable::check(const MemoryRegion& region) const {
  if (wraps(region)) {
    return {ErrorCode::kInvalidArgument, "the region wraps around the address space"};
  }
  if (size_ == capacity_) return {ErrorCode::kNoSpace, "the memory table is full"};
  return {};
}

Result<Rkey> MemoryTable::add(const MemoryRegion& region, Rkey key) {
  const Status valid = check(region);
  if (!valid.ok()) return valid;
  if (is_send_key(key) || find(key) != nullptr) {
    return Status(ErrorCode::kAlreadyExists, "the key is in use");
  }
  insert(key, region);
  return key;
}

Result<Rkey> MemoryTable::add(const MemoryRegion& region, RandomSource& random) {
  const Status valid = check(region);
  if (!valid.ok()) return valid;
  for (unsigned draw = 0; draw < kMaxKeyDraws; ++draw) {
    const Rkey key{random.next32()};
    if (is_send_key(key) || find(key) != nullptr) continue;
    insert(key, region);
    return key;
  }
  return Status(ErrorCode::kInvalidArgument, "the random source only repeats keys in use");
}

Status MemoryTable::remove(Rkey key) {
  const Slot* slot = find(key);
  if (slot == nullptr) return {ErrorCode::kNotFound, "no region has this key"};
  if (MRC_BUG(kMemoryStaleKeyAccepted)) return {};
  close_gap(static_cast<std::size_t>(slot - slots_.data()));
  --size_;
  return {};
}

bool MemoryTable::allows_write(ProtectionDomain domain, Rkey key, std::uint64_t address,
                               std::uint32_t length) const {
  if (length == 0 && MRC_BUG(kEmptyNeedsNoKey)) return true;
  const Slot* slot = find(key);
  if (slot == nullptr) return false;
  const MemoryRegion& region = slot->region;
  if (region.domain != domain && !MRC_BUG(kMemoryIgnoresDomain)) return false;
  if (!region.remote_write && !MRC_BUG(kMemoryIgnoresRight)) return false;
  return covers(region, address, length);
}

const MemoryTable::Slot* MemoryTable::find(Rkey key) const {
  // Ends because at least half of the slots are free.
  for (std::size_t i = home(key); slots_[i].used; i = next(i)) {
    if (slots_[i].key == key) return &slots_[i];
  }
  return nullptr;
}

// Spreads the keys of a poor generator too; with a good one it changes nothing.
std::size_t MemoryTable::home(Rkey key) const {
  const std::uint64_t mixed = static_cast<std::uint64_t>(key) * 0x9E37'79B9'7F4A'7C15;
  return static_cast<std::size_t>(mixed >> 32) & (slots_.size() - 1);
}

void MemoryTable::insert(Rkey key, const MemoryRegion& region) {
  std::size_t index = home(key);
  while (slots_[index].used)
    index = next(index);
  slots_[index] = {region, key, true};
  ++size_;
}

// Moves later entries of the chain back, so that no search stops early and no tombstone is left.
void MemoryTable::close_gap(std::size_t gap) {
  const std::size_t mask = slots_.size() - 1;
  for (std::size_t i = next(gap); slots_[i].used; i = next(i)) {
    const std::size_t from_home = (i - home(slots_[i].key)) & mask;
    const std::size_t from_gap = (i - gap) & mask;
    if (from_home < from_gap) continue;  // it would land before its home
    slots_[gap] = slots_[i];
    gap = i;
  }
  slots_[gap] = Slot{};
}

}  // namespace mrc::core
