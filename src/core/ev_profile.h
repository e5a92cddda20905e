// The paths a queue pair may use: a list of entropy values, each tied to a port (plane).
//
// A profile is made by the caller, shared by any number of queue pairs and endpoints, and must
// outlive them. What a path means on the wire (hash input, structured EV, SRv6 carrier) is the
// caller's business; the core deals in positions and in the 32-bit value that peers echo.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "base/result.h"
#include "base/types.h"

namespace mrc::core {

struct EvEntry {
  std::uint32_t entropy = 0;  // several entries may have the same, on one port or on many
  PortId port{1};
  bool denied = false;  // taken out of use by the controller

  bool same_path(const EvEntry& other) const {
    return entropy == other.entropy && port == other.port;
  }
};

// In which order queue pairs take the EVs of a plane.
enum class EvOrder : std::uint8_t {
  kDrawn,     // each in an order of its own, drawn anew now and then
  kAsListed,  // all of an endpoint together in that of the list
};

class EvProfile {
 public:
  // `entropy_mask` selects the bits the network carries: all 32 on IPv6, the low 16 on IPv4.
  // Refuses an empty list, more than 1,024 entries and a port outside 1..16. kAsListed is for who
  // knows which way each EV goes: hosts of a rack whose lists name the same uplinks in the same
  // order, each from another one on, do not meet there while they send at the same time.
  static Result<EvProfile> create(std::span<const EvEntry> entries,
                                  std::uint32_t entropy_mask = 0xFFFF'FFFF,
                                  EvOrder order = EvOrder::kDrawn);

  EvProfile() = default;

  unsigned size() const { return static_cast<unsigned>(entries_.size()); }
  const EvEntry& entry(EvIndex ev) const { return entries_[static_cast<std::size_t>(ev)]; }
  PortId port(EvIndex ev) const { return entry(ev).port; }
  PortMask ports() const { return ports_; }

  // Planes are the ports of the profile, numbered from 0 in order of port.
  unsigned plane_count() const { return ports_.count(); }
  unsigned plane(PortId port) const { return plane_of_port_[static_cast<unsigned>(port) - 1]; }
  unsigned plane(EvIndex ev) const { return plane(port(ev)); }

  // The EVs of a plane in the order of the list; none where the order is drawn.
  std::span<const EvIndex> listed(unsigned plane) const {
    if (listed_.empty()) return {};
    return std::span(listed_).subspan(first_listed_[plane],
                                      first_listed_[plane + 1] - first_listed_[plane]);
  }

  // Whether an echoed entropy value tells the two apart.
  bool differ(EvIndex a, EvIndex b) const { return !matches(a, entry(b).entropy); }
  // True when an echoed entropy value is that of `ev`, as far as the network carries it.
  bool matches(EvIndex ev, std::uint32_t entropy) const {
    return ((entry(ev).entropy ^ entropy) & entropy_mask_) == 0;
  }

  // The position of an echoed entropy value, kNoEv when it is none of ours or that of several.
  EvIndex find(std::uint32_t entropy) const;

  // A controller's standing order for queue pairs created later; see Endpoint::set_ev_denied.
  void set_denied(EvIndex ev, bool denied) {
    entries_[static_cast<std::size_t>(ev)].denied = denied;
  }

 private:
  void list_planes();
  std::uint32_t masked_entropy(std::uint16_t position) const {
    return entries_[position].entropy & entropy_mask_;
  }

  std::vector<EvEntry> entries_;
  std::vector<std::uint16_t> by_entropy_;                    // positions in order of masked entropy
  std::vector<EvIndex> listed_;                              // by plane
  std::array<std::uint16_t, kMaxPorts + 1> first_listed_{};  // of each plane, and behind the last
  std::uint32_t entropy_mask_ = 0xFFFF'FFFF;
  PortMask ports_;
  std::array<std::uint8_t, kMaxPorts> plane_of_port_{};
};

}  // namespace mrc::core
