#include "core/ev_profile.h"

#include <algorithm>

namespace mrc::core {

Result<EvProfile> EvProfile::create(std::span<const EvEntry> entries, std::uint32_t entropy_mask,
                                    EvOrder order) {
  if (entries.empty()) return Status(ErrorCode::kInvalidArgument, "the EV profile is empty");
  if (entries.size() > kMaxEvsPerQp) {
    return Status(ErrorCode::kTooLong, "the EV profile has more than 1024 entries");
  }
  EvProfile profile;
  for (const EvEntry& entry : entries) {
    const auto port = static_cast<unsigned>(entry.port);
    if (port < 1 || port > kMaxPorts) {
      return Status(ErrorCode::kInvalidArgument, "the port of an EV is not in 1..16");
    }
    profile.ports_ = profile.ports_.with(entry.port);
  }
  for (unsigned number = 1, plane = 0; number <= kMaxPorts; ++number) {
    if (!profile.ports_.contains(PortId{static_cast<std::uint8_t>(number)})) continue;
    profile.plane_of_port_[number - 1] = static_cast<std::uint8_t>(plane++);
  }
  profile.entries_.assign(entries.begin(), entries.end());
  profile.entropy_mask_ = entropy_mask;
  profile.by_entropy_.resize(entries.size());
  for (std::size_t i = 0; i < entries.size(); ++i) {
    profile.by_entropy_[i] = static_cast<std::uint16_t>(i);
  }
  if (order == EvOrder::kAsListed) profile.list_planes();
  auto& by_entropy = profile.by_entropy_;
  std::sort(by_entropy.begin(), by_entropy.end(), [&profile](std::uint16_t a, std::uint16_t b) {
    return profile.masked_entropy(a) < profile.masked_entropy(b);
  });
  return profile;
}

void EvProfile::list_planes() {
  for (unsigned plane = 0; plane < plane_count(); ++plane) {
    for (unsigned i = 0; i < size(); ++i) {
      const auto ev = static_cast<EvIndex>(i);
      if (this->plane(ev) == plane) listed_.push_back(ev);
    }
    first_listed_[plane + 1] = static_cast<std::uint16_t>(listed_.size());
  }
}

EvIndex EvProfile::find(std::uint32_t entropy) const {
  const std::uint32_t wanted = entropy & entropy_mask_;
  const auto at = std::lower_bound(by_entropy_.begin(), by_entropy_.end(), wanted,
                                   [this](std::uint16_t position, std::uint32_t value) {
                                     return masked_entropy(position) < value;
                                   });
  if (at == by_entropy_.end() || masked_entropy(*at) != wanted) return kNoEv;
  const auto next = at + 1;
  if (next != by_entropy_.end() && masked_entropy(*next) == wanted) return kNoEv;
  return EvIndex{*at};
}

}  // namespace mrc::core
