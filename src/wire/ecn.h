// The two ECN bits of an IP header and what a tunnel does with them (RFC 6040, normal mode).
#pragma once

#include <cstdint>
#include <optional>

namespace mrc::wire {

enum class Ecn : std::uint8_t { kNotEct = 0, kEct1 = 1, kEct0 = 2, kCe = 3 };

// The outer bits when a packet enters a tunnel: a copy.
constexpr Ecn encapsulate_ecn(Ecn inner) { return inner; }

// The bits of the packet that leaves the tunnel; none if it must be dropped, which is when the
// tunnel marked a packet whose sender does not understand marks.
constexpr std::optional<Ecn> decapsulate_ecn(Ecn inner, Ecn outer) {
  if (inner == Ecn::kNotEct) {
    if (outer == Ecn::kCe) return std::nullopt;
    return Ecn::kNotEct;
  }
  if (inner == Ecn::kCe || outer == Ecn::kCe) return Ecn::kCe;
  if (outer == Ecn::kEct1) return Ecn::kEct1;
  return inner;
}

}  // namespace mrc::wire
