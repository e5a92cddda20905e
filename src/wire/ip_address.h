// An IPv4 or IPv6 address as bytes, and its text form. No help from the C library is used, so that
// the text of an address is the same everywhere.
#pragma once

#include <array>
#include <compare>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "base/result.h"

namespace mrc::wire {

// In network order. An IPv4 address occupies the first four bytes, the rest is zero.
struct IpAddress {
  std::array<std::uint8_t, 16> bytes{};
  bool is_v4 = false;
  // NOLINTNEXTLINE(modernize-use-nullptr): where it is used, the check takes its zero for a pointer
  friend constexpr auto operator<=>(const IpAddress&, const IpAddress&) = default;
};

// From numbers whose most significant byte comes first: ipv6_address(0xfc00000100000000, 1) is
// fc00:1::1.
[[nodiscard]] IpAddress ipv6_address(std::uint64_t high, std::uint64_t low);
[[nodiscard]] IpAddress ipv4_address(std::uint32_t value);

// Longest text: eight groups of four digits and seven colons.
inline constexpr std::size_t kMaxAddressText = 39;

struct AddressText {
  std::array<char, kMaxAddressText> characters{};
  std::size_t length = 0;
  std::string_view view() const { return {characters.data(), length}; }
};

// Reads dotted IPv4 ("10.0.0.1", no leading zeros) or IPv6 with at most one "::". IPv4 inside IPv6,
// zones and prefix lengths are not read.
[[nodiscard]] Result<IpAddress> parse_address(std::string_view text);

// Writes the canonical form of RFC 5952: lower case, no leading zeros, the longest run of at least
// two zero groups (the first of equals) as "::".
[[nodiscard]] AddressText format_address(const IpAddress& address);

}  // namespace mrc::wire
