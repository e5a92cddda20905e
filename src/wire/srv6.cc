#include "wire/srv6.h"

#include <array>

namespace mrc::wire {
namespace {

constexpr std::size_t kBlockBytes = 4;
constexpr std::size_t kUsidBytes = 2;
static_assert(kBlockBytes + kMaxUsids * kUsidBytes == sizeof(IpAddress::bytes));

bool range_is_sound(const UsidRange& range) {
  return range.first != 0 && range.count != 0 && range.first + range.count <= 0x1'0000;
}

bool overlap(const UsidRange& a, const UsidRange& b) {
  return a.first < b.first + b.count && b.first < a.first + a.count;
}

}  // namespace

Result<IpAddress> build_carrier(UsidBlock block, std::span<const Usid> usids) {
  if (usids.empty()) return Status(ErrorCode::kInvalidArgument, "a path needs at least one uSID");
  if (usids.size() > kMaxUsids) {
    return Status(ErrorCode::kTooLong, "more than six uSIDs do not fit one address");
  }
  IpAddress carrier = ipv6_address(std::uint64_t{static_cast<std::uint32_t>(block)} << 32, 0);
  for (std::size_t i = 0; i < usids.size(); ++i) {
    if (usids[i] == kNoUsid) {
      return Status(ErrorCode::kInvalidArgument, "uSID zero ends a path and cannot be part of it");
    }
    const auto value = static_cast<std::uint16_t>(usids[i]);
    carrier.bytes[kBlockBytes + kUsidBytes * i] = static_cast<std::uint8_t>(value >> 8);
    carrier.bytes[kBlockBytes + kUsidBytes * i + 1] = static_cast<std::uint8_t>(value & 0xFF);
  }
  return carrier;
}

UsidBlock carrier_block(const IpAddress& carrier) {
  std::uint32_t block = 0;
  for (std::size_t i = 0; i < kBlockBytes; ++i)
    block = block << 8 | carrier.bytes[i];
  return UsidBlock{block};
}

Usid usid_at(const IpAddress& carrier, unsigned position) {
  if (position >= kMaxUsids) return kNoUsid;
  const std::size_t at = kBlockBytes + kUsidBytes * position;
  return Usid{static_cast<std::uint16_t>(carrier.bytes[at] << 8 | carrier.bytes[at + 1])};
}

Usid active_usid(const IpAddress& carrier) { return usid_at(carrier, 0); }

unsigned usid_count(const IpAddress& carrier) {
  unsigned count = 0;
  while (count < kMaxUsids && usid_at(carrier, count) != kNoUsid) {
    ++count;
  }
  return count;
}

IpAddress shift_carrier(const IpAddress& carrier) {
  IpAddress shifted = carrier;
  for (std::size_t i = kBlockBytes; i < shifted.bytes.size(); ++i) {
    const std::size_t from = i + kUsidBytes;
    shifted.bytes[i] = from < carrier.bytes.size() ? carrier.bytes[from] : std::uint8_t{0};
  }
  return shifted;
}

bool at_last_usid(const IpAddress& carrier) { return usid_at(carrier, 1) == kNoUsid; }

UsidStep advance(IpAddress& carrier, Segment& segment) {
  if (!at_last_usid(carrier)) {
    carrier = shift_carrier(carrier);
    return UsidStep::kShifted;
  }
  if (segment.left == 0) return UsidStep::kEnd;
  carrier = segment.address;
  --segment.left;
  return UsidStep::kNextSegment;
}

Status check_usid_plan(const UsidPlan& plan) {
  const UsidRange ranges[] = {plan.host_port, plan.t0, plan.t1, plan.t2};
  for (std::size_t i = 0; i < std::size(ranges); ++i) {
    if (!range_is_sound(ranges[i])) {
      return {ErrorCode::kInvalidArgument, "a uSID range is empty, starts at 0 or exceeds 16 bits"};
    }
    for (std::size_t j = 0; j < i; ++j) {
      if (overlap(ranges[i], ranges[j]))
        return {ErrorCode::kInvalidArgument, "uSID ranges overlap"};
    }
  }
  return {};
}

UsidBlock plane_block(const UsidPlan& plan, PortId plane) {
  return UsidBlock{plan.first_block + static_cast<std::uint32_t>(plane) - 1};
}

Result<Usid> usid_in(const UsidRange& range, unsigned index) {
  if (index >= range.count) {
    return Status(ErrorCode::kInvalidArgument, "the uSID plan has no number for this device");
  }
  return Usid{static_cast<std::uint16_t>(range.first + index)};
}

Result<IpAddress> path_carrier(const UsidPlan& plan, const PathAcrossT1& path) {
  const Result<Usid> hops[] = {usid_in(plan.t0, path.source_t0), usid_in(plan.t1, path.t1),
                               usid_in(plan.t0, path.destination_t0),
                               usid_in(plan.host_port, path.host_port)};
  std::array<Usid, std::size(hops)> usids{};
  for (std::size_t i = 0; i < usids.size(); ++i) {
    if (!hops[i].ok()) return hops[i].status();
    usids[i] = hops[i].value();
  }
  return build_carrier(plane_block(plan, path.plane), usids);
}

Result<IpAddress> path_carrier(const UsidPlan& plan, const PathWithinT0& path) {
  const Result<Usid> t0 = usid_in(plan.t0, path.t0);
  if (!t0.ok()) return t0.status();
  const Result<Usid> host_port = usid_in(plan.host_port, path.host_port);
  if (!host_port.ok()) return host_port.status();
  return build_carrier(plane_block(plan, path.plane), std::array{t0.value(), host_port.value()});
}

}  // namespace mrc::wire
