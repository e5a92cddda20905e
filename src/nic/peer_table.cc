#include "nic/peer_table.h"

#include <iterator>

#include "base/assert.h"

namespace mrc::nic {
namespace {

// The high half says which of the two kinds an address is.
constexpr std::uint64_t kResident = 1;
constexpr std::uint64_t kGuest = 2;

}  // namespace

Result<Address> PeerTable::acquire(const PeerName& name) {
  const auto found = index_.find(name);
  if (found != index_.end()) {
    ++entries_[found->second].users;
    return Address{kResident, found->second};
  }
  if (index_.size() >= capacity_) return Status{ErrorCode::kNoSpace, "no room for another peer"};
  if (free_.empty()) {
    free_.reserve(entries_.size() + 1);
    entries_.emplace_back();
    free_.push_back(static_cast<std::uint32_t>(entries_.size() - 1));
  }
  const std::uint32_t slot = free_.back();
  index_.emplace(name, slot);
  free_.pop_back();
  entries_[slot] = {name, 1};
  return Address{kResident, slot};
}

void PeerTable::release(const Address& address) {
  MRC_ASSERT(address.high == kResident && address.low < entries_.size());
  Entry& entry = entries_[address.low];
  MRC_ASSERT(entry.users > 0);
  if (--entry.users > 0) return;
  index_.erase(entry.name);
  free_.push_back(static_cast<std::uint32_t>(address.low));
}

Address PeerTable::find_or_lend(const PeerName& name) {
  const auto found = index_.find(name);
  if (found != index_.end()) return {kResident, found->second};
  Guest& guest = guests_[next_serial_ % kTransient];
  guest = {name, next_serial_};
  return {kGuest, next_serial_++};
}

Address PeerTable::only_one_of(const wire::IpAddress& gid) const {
  const auto first = index_.lower_bound({.gid = gid, .process = 0});
  if (first == index_.end() || first->first.gid != gid) return {};
  const auto second = std::next(first);
  const bool alone = second == index_.end() || second->first.gid != gid;
  return alone ? Address{kResident, first->second} : Address{};
}

const PeerName* PeerTable::name_of(const Address& address) const {
  if (address.high == kResident) {
    if (address.low >= entries_.size() || entries_[address.low].users == 0) return nullptr;
    return &entries_[address.low].name;
  }
  if (address.high != kGuest) return nullptr;
  const Guest& guest = guests_[address.low % kTransient];
  return guest.serial == address.low && guest.serial != 0 ? &guest.name : nullptr;
}

}  // namespace mrc::nic
