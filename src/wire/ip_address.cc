#include "wire/ip_address.h"

namespace mrc::wire {
namespace {

constexpr unsigned kGroups = 8;
constexpr unsigned kNoGap = kGroups + 1;
constexpr Status kBadIpv4{ErrorCode::kInvalidArgument, "not an IPv4 address"};
constexpr Status kBadIpv6{ErrorCode::kInvalidArgument, "not an IPv6 address"};

int hex_digit(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return -1;
}

// Takes digits from the front of `text`; returns how many there were, at most `most` + 1.
unsigned take_number(std::string_view& text, unsigned base, unsigned most, unsigned& value) {
  unsigned count = 0;
  value = 0;
  while (!text.empty() && count <= most) {
    const int digit = hex_digit(text.front());
    if (digit < 0 || static_cast<unsigned>(digit) >= base) break;
    value = value * base + static_cast<unsigned>(digit);
    text.remove_prefix(1);
    ++count;
  }
  return count;
}

Result<IpAddress> parse_ipv4(std::string_view text) {
  IpAddress address;
  address.is_v4 = true;
  for (unsigned i = 0; i < 4; ++i) {
    if (i > 0) {
      if (text.empty() || text.front() != '.') return kBadIpv4;
      text.remove_prefix(1);
    }
    const bool leading_zero = !text.empty() && text.front() == '0';
    unsigned value = 0;
    const unsigned digits = take_number(text, 10, 3, value);
    if (digits == 0 || digits > 3 || value > 255) return kBadIpv4;
    if (leading_zero && digits > 1) return kBadIpv4;
    address.bytes[i] = static_cast<std::uint8_t>(value);
  }
  if (!text.empty()) return kBadIpv4;
  return address;
}

bool take_double_colon(std::string_view& text) {
  if (text.size() < 2 || text[0] != ':' || text[1] != ':') return false;
  text.remove_prefix(2);
  return true;
}

// Groups in the order of the text; `gap` is how many stand before "::".
struct GroupList {
  std::array<std::uint16_t, kGroups> groups{};
  unsigned count = 0;
  unsigned gap = kNoGap;
};

bool read_groups(std::string_view text, GroupList& list) {
  if (take_double_colon(text)) list.gap = 0;
  while (!text.empty()) {
    unsigned value = 0;
    const unsigned digits = take_number(text, 16, 4, value);
    if (digits == 0 || digits > 4 || list.count == kGroups) return false;
    list.groups[list.count++] = static_cast<std::uint16_t>(value);
    if (text.empty()) break;
    if (take_double_colon(text)) {
      if (list.gap != kNoGap) return false;
      list.gap = list.count;
    } else {
      if (text.front() != ':' || text.size() == 1) return false;
      text.remove_prefix(1);
    }
  }
  // "::" must stand for at least one group.
  return list.gap == kNoGap ? list.count == kGroups : list.count < kGroups;
}

Result<IpAddress> parse_ipv6(std::string_view text) {
  GroupList list;
  if (!read_groups(text, list)) return kBadIpv6;
  const unsigned skipped = kGroups - list.count;
  IpAddress address;
  for (unsigned i = 0; i < list.count; ++i) {
    const unsigned at = i < list.gap ? i : i + skipped;
    address.bytes[2 * at] = static_cast<std::uint8_t>(list.groups[i] >> 8);
    address.bytes[2 * at + 1] = static_cast<std::uint8_t>(list.groups[i] & 0xFF);
  }
  return address;
}

void put(AddressText& text, char c) { text.characters[text.length++] = c; }

void put_number(AddressText& text, unsigned value, unsigned base) {
  unsigned scale = 1;
  while (value / scale >= base) {
    scale *= base;
  }
  for (; scale > 0; scale /= base) {
    const unsigned digit = value / scale % base;
    put(text, static_cast<char>(digit < 10 ? '0' + digit : 'a' + (digit - 10)));
  }
}

unsigned group(const IpAddress& address, unsigned i) {
  return static_cast<unsigned>(address.bytes[2 * i]) << 8 | address.bytes[2 * i + 1];
}

struct Run {
  unsigned start = kGroups;
  unsigned length = 0;
};

Run longest_zero_run(const IpAddress& address) {
  Run best;
  for (unsigned start = 0; start < kGroups; ++start) {
    unsigned end = start;
    while (end < kGroups && group(address, end) == 0) {
      ++end;
    }
    if (end - start > best.length) best = {start, end - start};
  }
  return best.length >= 2 ? best : Run{};
}

AddressText format_ipv6(const IpAddress& address) {
  AddressText text;
  const Run run = longest_zero_run(address);
  for (unsigned i = 0; i < kGroups; ++i) {
    if (i == run.start) {
      put(text, ':');
      put(text, ':');
      i += run.length - 1;
      continue;
    }
    if (i > 0 && i != run.start + run.length) put(text, ':');
    put_number(text, group(address, i), 16);
  }
  return text;
}

}  // namespace

IpAddress ipv6_address(std::uint64_t high, std::uint64_t low) {
  IpAddress address;
  for (unsigned i = 0; i < 8; ++i) {
    address.bytes[i] = static_cast<std::uint8_t>(high >> (56 - 8 * i) & 0xFF);
    address.bytes[8 + i] = static_cast<std::uint8_t>(low >> (56 - 8 * i) & 0xFF);
  }
  return address;
}

IpAddress ipv4_address(std::uint32_t value) {
  IpAddress address;
  address.is_v4 = true;
  for (unsigned i = 0; i < 4; ++i) {
    address.bytes[i] = static_cast<std::uint8_t>(value >> (24 - 8 * i) & 0xFF);
  }
  return address;
}

Result<IpAddress> parse_address(std::string_view text) {
  const bool colon = text.find(':') != std::string_view::npos;
  return colon ? parse_ipv6(text) : parse_ipv4(text);
}

AddressText format_address(const IpAddress& address) {
  if (!address.is_v4) return format_ipv6(address);
  AddressText text;
  for (unsigned i = 0; i < 4; ++i) {
    if (i > 0) put(text, '.');
    put_number(text, address.bytes[i], 10);
  }
  return text;
}

}  // namespace mrc::wire
