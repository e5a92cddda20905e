// Carrier addresses and the text of addresses. Sixteen bytes of carrier, sixteen of segment, one of
// segments left, then text.
#include <array>
#include <string_view>
#include <vector>

#include "fuzz/fuzz_support.h"
#include "wire/ip_header.h"
#include "wire/srv6.h"

using mrc::DropReason;
using mrc::fuzz::require;
namespace wire = mrc::wire;

namespace {

wire::IpAddress take_address(mrc::fuzz::Input& input) {
  const std::uint64_t high = input.u64();
  return wire::ipv6_address(high, input.u64());
}

void check_text(const wire::IpAddress& address) {
  const wire::AddressText text = wire::format_address(address);
  const auto parsed = wire::parse_address(text.view());
  require(parsed.ok() && parsed.value() == address);
}

void check_carrier(const wire::IpAddress& carrier) {
  std::vector<wire::Usid> usids;
  for (unsigned i = 0; i < wire::usid_count(carrier); ++i) {
    usids.push_back(wire::usid_at(carrier, i));
    require(usids.back() != wire::kNoUsid);
  }
  const wire::IpAddress shifted = wire::shift_carrier(carrier);
  require(wire::carrier_block(shifted) == wire::carrier_block(carrier));
  require(wire::active_usid(shifted) == wire::usid_at(carrier, 1));
  if (usids.empty()) return;
  require(wire::usid_count(shifted) >= usids.size() - 1);

  const auto rebuilt = wire::build_carrier(wire::carrier_block(carrier), usids);
  require(rebuilt.ok());
  require(wire::usid_count(rebuilt.value()) == usids.size());
  // Walking the rebuilt carrier visits its uSIDs in order and ends at the last.
  wire::IpAddress at = rebuilt.value();
  wire::Segment none;
  for (std::size_t i = 0; i < usids.size(); ++i) {
    require(wire::active_usid(at) == usids[i]);
    const wire::UsidStep step = wire::advance(at, none);
    require(step == (i + 1 < usids.size() ? wire::UsidStep::kShifted : wire::UsidStep::kEnd));
  }
}

void check_routing_header(const wire::Segment& segment, std::uint8_t next) {
  std::array<std::byte, wire::kSrhLength> bytes{};
  require(wire::build_srh(segment, next, bytes) == bytes.size());
  wire::Segment parsed;
  std::uint8_t parsed_next = 0;
  require(wire::parse_srh(bytes, parsed, parsed_next) == DropReason::kNone);
  require(parsed == segment && parsed_next == next);
}

}  // namespace

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  mrc::fuzz::Input input(data, size);
  wire::IpAddress carrier = take_address(input);
  wire::Segment segment{.address = take_address(input)};
  const std::uint8_t left = input.u8();
  segment.left = left & 1;
  check_text(carrier);
  check_text(wire::ipv4_address(static_cast<std::uint32_t>(left) * 0x01030507u));
  check_carrier(carrier);
  check_routing_header(segment, left);

  // Every walk ends: six uSIDs, one change to the segment, six more.
  int steps = 0;
  while (wire::advance(carrier, segment) != wire::UsidStep::kEnd) {
    require(++steps <= 11);
  }

  const auto rest = input.rest();
  std::vector<char> text(rest.size());
  std::transform(rest.begin(), rest.end(), text.begin(),
                 [](std::byte b) { return static_cast<char>(b); });
  const auto parsed = wire::parse_address(std::string_view(text.data(), text.size()));
  if (parsed.ok()) check_text(parsed.value());

  wire::Segment raw;
  std::uint8_t next = 0;
  if (wire::parse_srh(rest, raw, next) == DropReason::kNone) check_routing_header(raw, next);
  return 0;
}
